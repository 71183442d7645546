import CDendroCrypto

/// Whose certificates clients believe: those that the system trusts, and those of a file.
///
/// Unchecked: OpenSSL's contexts may be used by any thread once they are made.
final class TrustedCertificates: @unchecked Sendable {
  /// Nil if the file cannot be read.
  let context: OpaquePointer?
  let transport = dendro_tls_transport()
  let file: String?

  /// - Parameter file: of certificates in PEM; nil for those of the system alone.
  init(file: String? = nil) {
    self.file = file
    context = dendro_tls_client(file)
  }

  deinit {
    if let context { SSL_CTX_free(context) }
    BIO_meth_free(transport)
  }

  static let system = TrustedCertificates()
}
