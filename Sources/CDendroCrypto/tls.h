#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "shim.h"

// TLS over sockets that do not block. Errors leave nothing in the thread's queue.

static inline int dendro_tls_receive(BIO *bio, char *bytes, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t count = recv((int)(intptr_t)BIO_get_data(bio), bytes, (size_t)size, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return (int)count;
}

static inline int dendro_tls_transmit(BIO *bio, const char *bytes, int size) {
  BIO_clear_retry_flags(bio);
  // OpenSSL's own transport would end the process if the client has left.
  ssize_t count = send((int)(intptr_t)BIO_get_data(bio), bytes, (size_t)size, MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return (int)count;
}

static inline long dendro_tls_control(BIO *bio, int command, long number, void *pointer) {
  (void)number, (void)pointer;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return command == BIO_CTRL_FLUSH;
}

static inline BIO_METHOD *dendro_tls_transport(void) {
  dendro_crypto_start();
  BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  if (method == NULL) return NULL;
  BIO_meth_set_read(method, dendro_tls_receive);
  BIO_meth_set_write(method, dendro_tls_transmit);
  BIO_meth_set_ctrl(method, dendro_tls_control);
  return method;
}

// A key that needs a password cannot be used: the server asks for none.
static inline int dendro_tls_no_password(char *bytes, int size, int flag, void *pointer) {
  (void)bytes, (void)size, (void)flag, (void)pointer;
  return -1;
}

enum dendro_tls_refusal {
  dendro_tls_no_certificate = 1, dendro_tls_unusable, dendro_tls_no_key, dendro_tls_mismatch
};

// What servers need: the certificate, those that vouch for it, and its key, in PEM. NULL with the reason.
static inline SSL_CTX *dendro_tls_server(
    const uint8_t *certificates, int certificates_size, const uint8_t *key_text, int key_size,
    int *refusal) {
  dendro_crypto_start();
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  BIO *source = BIO_new_mem_buf(certificates, certificates_size);
  BIO *key_source = BIO_new_mem_buf(key_text, key_size);
  X509 *certificate = NULL;
  EVP_PKEY *key = NULL;
  *refusal = dendro_tls_no_certificate;
  if (context == NULL || source == NULL || key_source == NULL) goto failed;
  certificate = PEM_read_bio_X509(source, NULL, dendro_tls_no_password, NULL);
  if (certificate == NULL) goto failed;
  *refusal = dendro_tls_unusable;
  if (SSL_CTX_use_certificate(context, certificate) != 1) goto failed;
  for (X509 *next; (next = PEM_read_bio_X509(source, NULL, dendro_tls_no_password, NULL)) != NULL;) {
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      goto failed;
    }
  }
  *refusal = dendro_tls_no_key;
  key = PEM_read_bio_PrivateKey(key_source, NULL, dendro_tls_no_password, NULL);
  if (key == NULL) goto failed;
  *refusal = dendro_tls_mismatch;
  if (X509_check_private_key(certificate, key) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1) {
    goto failed;
  }
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(
      context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                   | SSL_MODE_RELEASE_BUFFERS);
  *refusal = 0;
  goto done;
failed:
  SSL_CTX_free(context);
  context = NULL;
done:
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(source);
  BIO_free(key_source);
  ERR_clear_error();
  return context;
}

// TLS over a socket, which stays the caller's. Frees it and gives NULL if there is no memory.
static inline SSL *dendro_tls_over(SSL *tls, BIO_METHOD *transport, int socket) {
  BIO *bio = tls == NULL ? NULL : BIO_new(transport);
  if (bio == NULL) {
    SSL_free(tls);
    ERR_clear_error();
    return NULL;
  }
  BIO_set_data(bio, (void *)(intptr_t)socket);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls, bio, bio);
  return tls;
}

// The server's side of a connection over a socket, which stays the caller's.
static inline SSL *dendro_tls_accept(SSL_CTX *context, BIO_METHOD *transport, int socket) {
  SSL *tls = dendro_tls_over(SSL_new(context), transport, socket);
  if (tls != NULL) SSL_set_accept_state(tls);
  return tls;
}

enum {
  dendro_tls_ended = 0,
  dendro_tls_wants_read = -1,
  dendro_tls_wants_write = -2,
  dendro_tls_lost = -3
};

static inline int dendro_tls_outcome(SSL *tls, int result) {
  if (result > 0) return result;
  int error = SSL_get_error(tls, result);
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_ZERO_RETURN: return dendro_tls_ended;
    case SSL_ERROR_WANT_READ: return dendro_tls_wants_read;
    case SSL_ERROR_WANT_WRITE: return dendro_tls_wants_write;
    default: return dendro_tls_lost;
  }
}

// The number of bytes, or one of the outcomes above.
static inline int dendro_tls_read(SSL *tls, void *bytes, int size) {
  return dendro_tls_outcome(tls, SSL_read(tls, bytes, size));
}

static inline int dendro_tls_write(SSL *tls, const void *bytes, int size) {
  return dendro_tls_outcome(tls, SSL_write(tls, bytes, size));
}

// Tells the client that nothing follows.
static inline void dendro_tls_close(SSL *tls) {
  if (SSL_is_init_finished(tls)) SSL_shutdown(tls);
  ERR_clear_error();
}

// What clients need: the certificates that the system trusts, and those of a file in PEM unless that is NULL. NULL if the file
// cannot be read, or there is no memory.
static inline SSL_CTX *dendro_tls_client(const char *file) {
  dendro_crypto_start();
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (context == NULL) return NULL;
  SSL_CTX_set_default_verify_paths(context);
  if (file != NULL && SSL_CTX_load_verify_locations(context, file, NULL) != 1) {
    SSL_CTX_free(context);
    ERR_clear_error();
    return NULL;
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(
      context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                   | SSL_MODE_RELEASE_BUFFERS);
  ERR_clear_error();
  return context;
}

// The client's side of a connection over a socket, which stays the caller's. The server has to prove that it is the host, a
// name or an address.
static inline SSL *dendro_tls_connect(
    SSL_CTX *context, BIO_METHOD *transport, int socket, const char *host) {
  SSL *tls = dendro_tls_over(SSL_new(context), transport, socket);
  if (tls == NULL) return NULL;
  X509_VERIFY_PARAM *parameters = SSL_get0_param(tls);
  int is_meant = X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1
      || (SSL_set_tlsext_host_name(tls, host) == 1
          && X509_VERIFY_PARAM_set1_host(parameters, host, 0) == 1);
  ERR_clear_error();
  if (!is_meant) {
    SSL_free(tls);
    return NULL;
  }
  SSL_set_connect_state(tls);
  return tls;
}

// 1 once both sides agree, or one of the outcomes above.
static inline int dendro_tls_handshake(SSL *tls) {
  return dendro_tls_outcome(tls, SSL_do_handshake(tls));
}

// Why they do not agree.
static inline void dendro_tls_failure(SSL *tls, char *text, size_t size) {
  long result = SSL_get_verify_result(tls);
  const char *reason =
      result == X509_V_OK ? "the handshake failed" : X509_verify_cert_error_string(result);
  snprintf(text, size, "%s", reason);
}

// Connections whose ends prove to each other that they have the same key, and that have no certificates.

enum { dendro_tls_key_size = 32 };

static inline unsigned int dendro_tls_given_key(SSL *tls, unsigned char *key, unsigned int size) {
  const unsigned char *given = SSL_get_app_data(tls);
  if (given == NULL || size < dendro_tls_key_size) return 0;
  memcpy(key, given, dendro_tls_key_size);
  return dendro_tls_key_size;
}

static inline unsigned int dendro_tls_client_key(
    SSL *tls, const char *hint, char *identity, unsigned int identity_size, unsigned char *key,
    unsigned int size) {
  (void)hint;
  snprintf(identity, identity_size, "dendro");
  return dendro_tls_given_key(tls, key, size);
}

static inline unsigned int dendro_tls_server_key(
    SSL *tls, const char *identity, unsigned char *key, unsigned int size) {
  (void)identity;
  return dendro_tls_given_key(tls, key, size);
}

// What both ends of such connections need. NULL if there is no memory.
static inline SSL_CTX *dendro_tls_keyed(void) {
  dendro_crypto_start();
  SSL_CTX *context = SSL_CTX_new(TLS_method());
  if (context == NULL) return NULL;
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  // The hash of the others is not that of such keys.
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_psk_client_callback(context, dendro_tls_client_key);
  SSL_CTX_set_psk_server_callback(context, dendro_tls_server_key);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET
                   | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(
      context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                   | SSL_MODE_RELEASE_BUFFERS);
  ERR_clear_error();
  return context;
}

// The second since 1970 until which the certificate counts; INT64_MAX if it does not say.
static inline int64_t dendro_tls_expiry(SSL_CTX *context) {
  struct tm moment;
  X509 *certificate = SSL_CTX_get0_certificate(context);
  if (certificate == NULL) return INT64_MAX;
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &moment) != 1) {
    ERR_clear_error();
    return INT64_MAX;
  }
  return timegm(&moment);
}

// One end of such a connection over a socket, which stays the caller's, and so does the key, which has to last as long. NULL if
// there is no memory.
static inline SSL *dendro_tls_with_key(
    SSL_CTX *context, BIO_METHOD *transport, int socket, const uint8_t *key, int accepts) {
  SSL *tls = dendro_tls_over(SSL_new(context), transport, socket);
  if (tls == NULL) return NULL;
  SSL_set_app_data(tls, (void *)key);
  if (accepts) {
    SSL_set_accept_state(tls);
  } else {
    // A server with a certificate would not need the key: none is trusted.
    SSL_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_set_connect_state(tls);
  }
  return tls;
}

// Whether the other end has proved that it has the key.
static inline int dendro_tls_has_proved_key(SSL *tls) {
  return SSL_is_init_finished(tls) && SSL_session_reused(tls);
}
