import CDendroCrypto
import DendroProtocol
import DendroTree

/// A public RSA key, which is freed with its last reference.
///
/// Unchecked: OpenSSL's keys may be used on any thread for checking signatures.
final class RSAKey: @unchecked Sendable {
  private let key: OpaquePointer
  private static let bitMin: Int32 = 2048

  /// - Returns: nil if it is no RSA key of at least 2048 bits.
  private init?(taking key: OpaquePointer?) {
    guard let key else { return nil }
    guard dendro_rsa_bits(key) >= Self.bitMin else {
      dendro_key_free(key)
      return nil
    }
    self.key = key
  }

  deinit { dendro_key_free(key) }

  convenience init?(modulus: [UInt8], exponent: [UInt8]) {
    self.init(
      taking: dendro_rsa_key(modulus, Int32(modulus.count), exponent, Int32(exponent.count)))
  }

  convenience init?(pem: [UInt8]) { self.init(taking: dendro_pem_key(pem, Int32(pem.count))) }

  func hasSigned(_ text: [UInt8], _ signature: [UInt8]) -> Bool {
    dendro_is_signed_rs256(key, text, text.count, signature, signature.count) == 1
  }
}

/// Public keys by their names.
struct KeySet: Sendable {
  /// No set needs as many.
  static let byteLimit = 1 << 20

  private var keys: [String: RSAKey] = [:]
  /// The only key, which tokens need not name.
  private var only: RSAKey?

  /// - Returns: nil if the bytes have no usable key.
  init?(_ bytes: [UInt8]) {
    if let members = JSONMembers(bytes[...]) {
      if let list = members["keys"], let set = JSONMembers.objects(list) {
        for key in set { addWebKey(key) }
      } else {
        for name in members.names {
          keys[name] = members.string(name).flatMap { RSAKey(pem: Array($0.utf8)) }
        }
      }
      only = keys.count == 1 ? keys.values.first : nil
    } else {
      only = RSAKey(pem: bytes)
    }
    if keys.isEmpty, only == nil { return nil }
  }

  private mutating func addWebKey(_ key: JSONMembers) {
    guard key.string("kty") == "RSA", key.string("alg") ?? "RS256" == "RS256",
      key.string("use") ?? "sig" == "sig",
      let modulus = key.string("n").flatMap({ Base64.decode($0.utf8) }),
      let exponent = key.string("e").flatMap({ Base64.decode($0.utf8) }),
      let new = RSAKey(modulus: modulus, exponent: exponent)
    else { return }
    keys[key.string("kid") ?? ""] = new
  }

  /// The key of a token; nil if none is meant without doubt.
  func key(_ name: String?) -> RSAKey? {
    guard let name else { return only }
    return keys.isEmpty ? only : keys[name]
  }
}
