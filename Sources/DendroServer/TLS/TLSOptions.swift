/// With which certificate a server speaks TLS. Both files are PEM, and are read again when they change: connections that
/// begin afterwards get the new certificate. While what they have cannot be used, the old one stays.
public struct TLSOptions: Sendable {
  /// The file with the certificate, and behind it those that vouch for it, but for the one that clients trust already.
  public var certificateFile: String
  /// The file with the certificate's private key, without a password.
  public var keyFile: String

  /// Makes options from the names of both files.
  public init(certificateFile: String, keyFile: String) {
    self.certificateFile = certificateFile
    self.keyFile = keyFile
  }
}
