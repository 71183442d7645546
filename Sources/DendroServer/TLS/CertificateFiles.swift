import Synchronization

/// The certificate of a server and its key, as their files have them now.
final class CertificateFiles: Sendable {
  private let options: TLSOptions
  private let report: @Sendable (String) -> Void
  private let reader: BoundedFile.Reader
  private let state: Mutex<State>
  private static let byteLimit = 1 << 20

  private struct State {
    var certificate: ServerCertificate
    /// Of the files that it was read from.
    var known: Versions
    /// Why others could not be taken at the last look; nil if there are none.
    var refusal: Refusal?
    /// What was seen at the last look; nil if a file was not there.
    var seen: Versions?
    /// How often in succession a file was not there.
    var missingCount = 0
    /// Whether it was said that the certificate has expired.
    var isExpiryReported = false
  }

  private struct Refusal: Equatable {
    let versions: Versions
    let reason: String
  }

  private struct Versions: Hashable {
    let certificate: FileVersion
    let key: FileVersion

    init?(_ options: TLSOptions) {
      guard let certificate = FileVersion(of: options.certificateFile),
        let key = FileVersion(of: options.keyFile)
      else { return nil }
      self.certificate = certificate
      self.key = key
    }
  }

  /// - Parameters:
  ///   - now: in seconds since 1970.
  ///   - reader: how a file is read.
  init(
    _ options: TLSOptions, now: Int64 = systemSeconds(),
    reader: @escaping BoundedFile.Reader = BoundedFile.contents,
    report: @escaping @Sendable (String) -> Void
  ) throws(DatabaseServerError) {
    self.options = options
    self.report = report
    self.reader = reader
    let versions = Versions(options)
    let certificate = try Self.read(options, reader)
    guard let versions else {
      throw DatabaseServerError("the files of the certificate have vanished")
    }
    state = Mutex(State(certificate: certificate, known: versions, seen: versions))
    reportExpiry(now)
  }

  var certificate: ServerCertificate { state.withLock { $0.certificate } }

  /// Looks whether the files have changed. To be called about once a second.
  ///
  /// One of them is written before the other, so they are read once they have stayed the same from one look to the next.
  ///
  /// - Parameter now: in seconds since 1970.
  func refresh(now: Int64 = systemSeconds()) {
    readChanged()
    reportExpiry(now)
  }

  /// Says once of each certificate that it has expired.
  private func reportExpiry(_ now: Int64) {
    let isNews = state.withLock { state in
      let isExpired = now > state.certificate.expiry
      defer { state.isExpiryReported = isExpired }
      return isExpired && !state.isExpiryReported
    }
    if isNews {
      report("the certificate in \(options.certificateFile) has expired: clients refuse it")
    }
  }

  private func readChanged() {
    guard let versions = Versions(options) else {
      let missing = [options.certificateFile, options.keyFile].first { FileVersion(of: $0) == nil }
      // Between two renamings one may be missing for a moment.
      let isNews = state.withLock { state in
        state.missingCount += 1
        state.seen = nil
        return state.missingCount == 2
      }
      if isNews {
        report("the certificate of before stays: \(missing ?? "a file") cannot be read")
      }
      return
    }
    let isNew = state.withLock { state in
      defer { state.seen = versions }
      state.missingCount = 0
      if versions == state.known { state.refusal = nil }
      return versions == state.seen && versions != state.known
    }
    guard isNew else { return }
    do throws(DatabaseServerError) {
      let certificate = try Self.read(options, reader)
      state.withLock { state in
        state.certificate = certificate
        state.known = versions
        state.refusal = nil
        state.isExpiryReported = false
      }
    } catch {
      // Tried again at the next look: what cannot be read now may be readable then, though nothing of it has changed.
      let refusal = Refusal(versions: versions, reason: error.message)
      let isNews = state.withLock { state in
        defer { state.refusal = refusal }
        return state.refusal != refusal
      }
      if isNews { report("the certificate of before stays: \(error.message)") }
    }
  }

  private static func read(
    _ options: TLSOptions, _ reader: BoundedFile.Reader
  ) throws(DatabaseServerError) -> ServerCertificate {
    try ServerCertificate(
      try contents(of: options.certificateFile, reader), from: options.certificateFile,
      key: try contents(of: options.keyFile, reader), from: options.keyFile)
  }

  private static func contents(
    of path: String, _ reader: BoundedFile.Reader
  ) throws(DatabaseServerError) -> [UInt8] {
    guard let bytes = reader(path, byteLimit, true) else {
      throw DatabaseServerError("\(path) cannot be read")
    }
    return bytes
  }
}
