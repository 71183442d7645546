import CDendroCrypto
import DendroPlatform
import DendroProtocol
import DendroTree
import Synchronization

/// A public RSA key, which is freed with its last reference.
///
/// Unchecked: OpenSSL's keys may be used on any thread for checking signatures.
final class RSAKey: @unchecked Sendable {
  private let key: OpaquePointer
  private static let bitMin: Int32 = 2048

  /// - Returns: nil where it is no RSA key of at least 2048 bits.
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

/// The keys of a file, by their names.
struct KeySet: Sendable {
  private var keys: [String: RSAKey] = [:]
  /// The only key, which tokens need not name.
  private var only: RSAKey?

  /// - Returns: nil where the bytes have no usable key.
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

  /// The key of a token; nil where none is meant without doubt.
  func key(_ name: String?) -> RSAKey? {
    guard let name else { return only }
    return keys.isEmpty ? only : keys[name]
  }
}

/// The keys of a file as it is now.
final class KeySetFile: Sendable {
  private let path: String
  private let state: Mutex<State>

  private struct State {
    var keys: KeySet
    var version: Version
  }

  /// By what a change of the file shows.
  private struct Version: Equatable {
    var inode: UInt64
    var size: Int
    var seconds: Int
    var nanoseconds: Int
  }

  private static let byteLimit = 1 << 20

  init(_ path: String) throws(DatabaseServerError) {
    self.path = path
    guard let version = Self.version(of: path), let bytes = Self.contents(of: path) else {
      throw DatabaseServerError("the keys in \(path) cannot be read")
    }
    guard let keys = KeySet(bytes) else {
      throw DatabaseServerError("\(path) has no public RSA key of at least 2048 bits")
    }
    state = Mutex(State(keys: keys, version: version))
  }

  var keys: KeySet {
    let version = Self.version(of: path)
    return state.withLock { state in
      if let version, version != state.version, let bytes = Self.contents(of: path) {
        state.version = version
        if let keys = KeySet(bytes) { state.keys = keys }
      }
      return state.keys
    }
  }

  private static func version(of path: String) -> Version? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Version(
      inode: UInt64(status.st_ino), size: Int(status.st_size), seconds: status.st_mtim.tv_sec,
      nanoseconds: status.st_mtim.tv_nsec)
  }

  private static func contents(of path: String) -> [UInt8]? {
    BoundedFile.contents(of: path, byteLimit: byteLimit, followsLink: true)
  }
}
