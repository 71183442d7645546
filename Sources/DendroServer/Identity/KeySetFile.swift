import Synchronization

/// The keys of a file as it is now.
final class KeySetFile: KeySource {
  private let path: String
  private let state: Mutex<State>

  private struct State {
    var keys: KeySet
    var version: FileVersion
  }

  init(_ path: String) throws(DatabaseServerError) {
    self.path = path
    guard let version = FileVersion(of: path), let bytes = Self.contents(of: path) else {
      throw DatabaseServerError("the keys in \(path) cannot be read")
    }
    guard let keys = KeySet(bytes) else {
      throw DatabaseServerError("\(path) has no public RSA key of at least 2048 bits")
    }
    state = Mutex(State(keys: keys, version: version))
  }

  var keys: KeySet? {
    let version = FileVersion(of: path)
    return state.withLock { state in
      if let version, version != state.version, let bytes = Self.contents(of: path) {
        state.version = version
        if let keys = KeySet(bytes) { state.keys = keys }
      }
      return state.keys
    }
  }

  func miss(at now: Int64) {}
  func refresh(at now: Int64) {}
  func end() {}

  private static func contents(of path: String) -> [UInt8]? {
    BoundedFile.contents(of: path, byteLimit: KeySet.byteLimit, followsLink: true)
  }
}
