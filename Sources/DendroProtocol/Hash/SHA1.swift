import CDendroCrypto

/// SHA-1, for the hashes that the protocol prescribes; nothing here is meant to be secret.
package enum SHA1 {
  /// Looked up once: OpenSSL searches its providers at each use otherwise.
  private nonisolated(unsafe) static let algorithm: OpaquePointer? = {
    dendro_crypto_start()
    return EVP_MD_fetch(nil, "SHA1", nil)
  }()

  /// The 20 bytes of the digest.
  package static func digest(of text: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 20) { digest, count in
      let isDone = EVP_Digest(text, text.count, digest.baseAddress, nil, algorithm, nil) == 1
      precondition(isDone, "this build of OpenSSL has no SHA-1, which WebSockets need")
      count = 20
    }
  }
}
