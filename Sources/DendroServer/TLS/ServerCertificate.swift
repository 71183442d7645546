import CDendroCrypto

/// What OpenSSL has made of a certificate and its key.
///
/// Unchecked: it is not changed any more, and OpenSSL counts its references by itself.
final class ServerCertificate: @unchecked Sendable {
  private let context: OpaquePointer
  /// The second since 1970 until which clients take it.
  let expiry: Int64
  private static let transport = Transport()

  private struct Transport: @unchecked Sendable { let method = dendro_tls_transport() }

  init(
    _ certificates: [UInt8], from file: String, key: [UInt8], from keyFile: String
  ) throws(DatabaseServerError) {
    var refusal: Int32 = 0
    let context = dendro_tls_server(
      certificates, Int32(certificates.count), key, Int32(key.count), &refusal)
    guard let context else {
      switch UInt32(bitPattern: refusal) {
      case dendro_tls_unusable.rawValue:
        throw DatabaseServerError(
          "OpenSSL does not take the certificate in \(file): its key may be too short")
      case dendro_tls_no_key.rawValue:
        throw DatabaseServerError("\(keyFile) has no private key in PEM without a password")
      case dendro_tls_mismatch.rawValue:
        throw DatabaseServerError("the key in \(keyFile) is not that of the certificate in \(file)")
      default: throw DatabaseServerError("\(file) has no certificate in PEM")
      }
    }
    self.context = context
    expiry = dendro_tls_expiry(context)
  }

  deinit { SSL_CTX_free(context) }

  /// The server's side of a connection over a socket; nil if there is no memory.
  func accept(_ socket: Int32) -> OpaquePointer? {
    dendro_tls_accept(context, Self.transport.method, socket)
  }
}
