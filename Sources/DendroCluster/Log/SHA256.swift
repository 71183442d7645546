import CDendroCrypto

/// A SHA-256 hash that is computed piece by piece.
struct SHA256: ~Copyable {
  static let byteCount = 32

  private let context: OpaquePointer

  init() {
    dendro_crypto_start()
    guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      preconditionFailure("no memory for a hash")
    }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  func update(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    EVP_DigestUpdate(context, start, bytes.count)
  }

  func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

  func update(_ text: String) { update(Array(text.utf8)) }

  func update(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { update($0) } }

  /// The hash of all that was given. Nothing may be given any more.
  consuming func finish() -> [UInt8] {
    var count: UInt32 = 0
    return [UInt8](unsafeUninitializedCapacity: Self.byteCount) { bytes, filled in
      EVP_DigestFinal_ex(context, bytes.baseAddress, &count)
      filled = Int(count)
    }
  }
}
