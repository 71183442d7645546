import Synchronization

/// The keys of a file as it is now. While the file cannot be used, the previous keys stay in use.
final class KeySetFile: KeySource {
  private let path: String
  private let report: @Sendable (String) -> Void
  private let reader: BoundedFile.Reader
  private let state: Mutex<State>

  private struct State {
    var keys: KeySet
    /// Of the file from which the keys are.
    var version: FileVersion
    /// Of a file that can be read and has no keys: it is not read for each token.
    var unusable: FileVersion?
    /// Why the file could not be used at the last refresh; nil if it could.
    var refusal: String?
    /// Whether that was said.
    var isReported = false
  }

  /// - Parameter reader: how the file is read.
  init(
    _ path: String, reader: @escaping BoundedFile.Reader = BoundedFile.contents,
    report: @escaping @Sendable (String) -> Void
  ) throws(DatabaseServerError) {
    self.path = path
    self.reader = reader
    self.report = report
    guard let version = FileVersion(of: path), let bytes = reader(path, KeySet.byteLimit, true)
    else {
      throw DatabaseServerError(Self.unreadable(path))
    }
    guard let keys = KeySet(bytes) else { throw DatabaseServerError(Self.unusable(path)) }
    state = Mutex(State(keys: keys, version: version))
  }

  var keys: KeySet? {
    state.withLock { state in
      _ = look(&state)
      return state.keys
    }
  }

  /// Reads the file if it has changed.
  ///
  /// - Returns: why it cannot be used; nil if it can.
  private func look(_ state: inout State) -> String? {
    guard let version = FileVersion(of: path) else { return Self.unreadable(path) }
    if version == state.version { return nil }
    if version == state.unusable { return Self.unusable(path) }
    guard let bytes = reader(path, KeySet.byteLimit, true) else {
      if version.byteCount > KeySet.byteLimit { state.unusable = version }
      return Self.unreadable(path)
    }
    guard let keys = KeySet(bytes) else {
      state.unusable = version
      return Self.unusable(path)
    }
    state.keys = keys
    state.version = version
    return nil
  }

  func miss(at now: Int64) {}

  /// Says once why the file cannot be used, if that stays so from one look to the next: it may just be written.
  func refresh(at now: Int64) {
    let complaint = state.withLock { state -> String? in
      let before = state.refusal
      state.refusal = look(&state)
      guard let refusal = state.refusal, refusal == before else {
        state.isReported = false
        return nil
      }
      defer { state.isReported = true }
      return state.isReported ? nil : refusal
    }
    if let complaint { report("the previous keys stay in use: \(complaint)") }
  }

  func end() {}

  private static func unreadable(_ path: String) -> String { "the keys in \(path) cannot be read" }

  private static func unusable(_ path: String) -> String {
    "\(path) has no public RSA key of at least 2048 bits"
  }
}
