#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

// To be called before all else of OpenSSL. At the end of the process OpenSSL would free what threads that go on still use; so
// it frees nothing then. It has no effect if the program has used OpenSSL before. Any thread may call it, more than once.
static inline void dendro_crypto_start(void) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

// What tokens need, without OpenSSL's types. Errors leave nothing in the thread's queue.

// Made of the modulus and the exponent, both big-endian. NULL if they make no key.
static inline EVP_PKEY *dendro_rsa_key(
    const uint8_t *modulus, int modulus_size, const uint8_t *exponent, int exponent_size) {
  dendro_crypto_start();
  EVP_PKEY *key = NULL;
  BIGNUM *n = BN_bin2bn(modulus, modulus_size, NULL);
  BIGNUM *e = BN_bin2bn(exponent, exponent_size, NULL);
  OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
  OSSL_PARAM *parameters = NULL;
  if (n != NULL && e != NULL && builder != NULL && context != NULL
      && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1
      && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1
      && (parameters = OSSL_PARAM_BLD_to_param(builder)) != NULL
      && EVP_PKEY_fromdata_init(context) == 1
      && EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    key = NULL;
  }
  OSSL_PARAM_free(parameters);
  EVP_PKEY_CTX_free(context);
  OSSL_PARAM_BLD_free(builder);
  BN_free(e);
  BN_free(n);
  ERR_clear_error();
  return key;
}

// The key of the first certificate or public key in a PEM text. NULL if there is none.
static inline EVP_PKEY *dendro_pem_key(const uint8_t *text, int size) {
  dendro_crypto_start();
  EVP_PKEY *key = NULL;
  BIO *source = BIO_new_mem_buf(text, size);
  if (source == NULL) return NULL;
  X509 *certificate = PEM_read_bio_X509(source, NULL, NULL, NULL);
  if (certificate != NULL) {
    key = X509_get_pubkey(certificate);
    X509_free(certificate);
  } else {
    BIO_free(source);
    source = BIO_new_mem_buf(text, size);
    if (source != NULL) key = PEM_read_bio_PUBKEY(source, NULL, NULL, NULL);
  }
  BIO_free(source);
  ERR_clear_error();
  return key;
}

// The size of an RSA key in bits; 0 for any other key.
static inline int dendro_rsa_bits(EVP_PKEY *key) {
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? EVP_PKEY_get_bits(key) : 0;
}

static inline void dendro_key_free(EVP_PKEY *key) { EVP_PKEY_free(key); }

// Whether the signature (PKCS #1, SHA-256) is that of the text.
static inline int dendro_is_signed_rs256(
    EVP_PKEY *key, const uint8_t *text, size_t size, const uint8_t *signature,
    size_t signature_size) {
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  if (context == NULL) return 0;
  int result = EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1
      && EVP_DigestVerify(context, signature, signature_size, text, size) == 1;
  EVP_MD_CTX_free(context);
  ERR_clear_error();
  return result;
}

// Whether the code (HMAC with SHA-256) is that of the text. It takes the same time wherever they differ.
static inline int dendro_is_signed_hs256(
    const uint8_t *secret, int secret_size, const uint8_t *text, size_t size, const uint8_t *code,
    size_t code_size) {
  dendro_crypto_start();
  uint8_t expected[EVP_MAX_MD_SIZE];
  unsigned int count = 0;
  if (HMAC(EVP_sha256(), secret, secret_size, text, size, expected, &count) == NULL) return 0;
  return count == code_size && CRYPTO_memcmp(expected, code, count) == 0;
}
