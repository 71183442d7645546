import Synchronization

/// The keys of a file as it is now. While the file cannot be used, the keys before stay.
final class KeySetFile: KeySource {
  private let path: String
  private let report: @Sendable (String) -> Void
  private let state: Mutex<State>

  private struct State {
    var keys: KeySet
    /// Of what was read last; nil if the file was not there.
    var version: FileVersion?
  }

  init(_ path: String, report: @escaping @Sendable (String) -> Void) throws(DatabaseServerError) {
    self.path = path
    self.report = report
    guard let version = FileVersion(of: path), let bytes = Self.contents(of: path) else {
      throw DatabaseServerError("the keys in \(path) cannot be read")
    }
    guard let keys = KeySet(bytes) else { throw DatabaseServerError(Self.unusable(path)) }
    state = Mutex(State(keys: keys, version: version))
  }

  var keys: KeySet? {
    let version = FileVersion(of: path)
    let (keys, complaint) = state.withLock { state -> (KeySet, String?) in
      guard version != state.version else { return (state.keys, nil) }
      state.version = version
      guard version != nil, let bytes = Self.contents(of: path) else {
        return (state.keys, "\(path) cannot be read")
      }
      guard let keys = KeySet(bytes) else { return (state.keys, Self.unusable(path)) }
      state.keys = keys
      return (keys, nil)
    }
    if let complaint { report("the keys of before stay: \(complaint)") }
    return keys
  }

  func miss(at now: Int64) {}
  /// Says soon that the file cannot be used, whether tokens come or not.
  func refresh(at now: Int64) { _ = keys }
  func end() {}

  private static func unusable(_ path: String) -> String {
    "\(path) has no public RSA key of at least 2048 bits"
  }

  private static func contents(of path: String) -> [UInt8]? {
    BoundedFile.contents(of: path, byteLimit: KeySet.byteLimit, followsLink: true)
  }
}
