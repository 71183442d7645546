import Synchronization

/// The sessions of a server, by their ids.
final class WireSessions: Sendable {
  private let sessions = Mutex<[String: WireSession]>([:])

  var all: [WireSession] { sessions.withLock { Array($0.values) } }

  subscript(_ id: String) -> WireSession? { sessions.withLock { $0[id] } }

  func add(_ session: WireSession) { sessions.withLock { $0[session.id] = session } }

  func remove(_ session: WireSession) {
    sessions.withLock { _ = $0.removeValue(forKey: session.id) }
  }

  /// Ends the session of a client's connection before this one, to the same database: what was to be written at its end is
  /// written before the new connection is served.
  func end(_ id: String?, in namespace: Namespace) {
    guard let id, let session = self[id], session.namespace === namespace else { return }
    session.end()
    session.close()
  }

  /// A text that cannot be guessed: letters and digits.
  static func makeID() -> String {
    var random = SystemRandomNumberGenerator()
    return String(random.next(), radix: 36) + String(random.next(), radix: 36)
  }
}
