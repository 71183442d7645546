import DendroEngine
import Foundation
import Synchronization

/// What can be set on a database object after it was opened.
final class DatabaseSettings: Sendable {
  private let state = Mutex(State())

  private struct State {
    var address = "dendro://localhost"
    var namespace: String?
    var cacheByteCount: UInt = 10 << 20
    var isPersistenceWanted = false
  }

  /// What the URLs of references begin with: scheme, host and port.
  var address: String { state.withLock { $0.address } }
  func setAddress(_ address: String) { state.withLock { $0.address = address } }
  /// The database that a server is asked for; nil if it knows by itself.
  var namespace: String? { state.withLock { $0.namespace } }

  func setAddress(_ address: String, _ namespace: String?) {
    state.withLock { state in
      state.address = address
      state.namespace = namespace
    }
  }

  var cacheByteCount: UInt { state.withLock { $0.cacheByteCount } }
  func setCacheByteCount(_ count: UInt) { state.withLock { $0.cacheByteCount = count } }

  /// Whether the program has asked for files, for a database that keeps in step with a server.
  var isPersistenceWanted: Bool { state.withLock { $0.isPersistenceWanted } }
  func setPersistenceWanted(_ isWanted: Bool) {
    state.withLock { $0.isPersistenceWanted = isWanted }
  }

  // MARK: Of the process

  static let isLogging = Atomic<Bool>(false)

  /// Prints one line to standard error, if logging is on.
  static func log(_ event: LogEvent) {
    guard isLogging.load(ordering: .relaxed) else { return }
    var line = "dendro: \(event.level.rawValue): \(event.message)"
    for (name, value) in event.metadata.sorted(by: { $0.key < $1.key }) {
      line += " \(name)=\(value)"
    }
    StandardError.write(line)
  }
}
