import Dendro
import DendroServer
import DendroStorage
import DendroTestSupport
import DendroTree
import Synchronization
import Testing

@testable import DendroSync

/// A database that keeps in step with a server of this machine.
///
/// - Parameter connects: whether it begins to connect, before its first use.
func synced(
  _ port: Int, secure: Bool = false, host: String = "127.0.0.1", namespace: String? = nil,
  trusting trust: TrustedCertificates? = nil, limits: SyncLimits = .patient,
  connects: Bool = true,
  _ change: (inout DatabaseOptions) -> Void = { _ in }
) -> Database {
  var options = DatabaseOptions()
  change(&options)
  let address = RemoteAddress(isSecure: secure, host: host, port: port, namespace: namespace)
  let database = Database.remote(RemoteSetup(address), options: options) {
    SyncClient($0, trusting: trust, limits: limits, $1)
  }
  if connects { database.goOnline() }
  return database
}

/// A database in a directory that keeps in step with a server of this machine. Connects at its first use.
func synced(
  _ port: Int, at path: String, environment: DendroStorage.Environment = .system,
  _ change: (inout DatabaseOptions) -> Void = { _ in }
) throws -> Database {
  var options = DatabaseOptions()
  change(&options)
  let address = RemoteAddress(isSecure: false, host: "127.0.0.1", port: port, namespace: nil)
  return try Database.open(
    at: path, syncingWith: address, options: options, environment: environment
  ) { SyncClient($0, $1) }
}

extension SyncLimits {
  /// Those of tests in which another part may not run for minutes: where many run at once on few processors.
  static var patient: SyncLimits {
    var limits = SyncLimits()
    limits.connectTimeout = .seconds(600)
    limits.answerTimeout = .seconds(600)
    return limits
  }
}

/// Serves a database in memory for the time of `body`.
func serving(
  _ change: (inout DatabaseServerOptions) -> Void = { _ in },
  _ body: (Database, DatabaseServer) async throws -> Void
) async throws {
  let database = Database.inMemory()
  var options = DatabaseServerOptions()
  change(&options)
  let server = try await DatabaseServer.start(serving: database, options: options)
  do {
    try await body(database, server)
  } catch {
    await server.stop()
    try await database.close()
    throw error
  }
  await server.stop()
  try await database.close()
}

/// One event of a listener, or its end.
enum Seen: Equatable, Sendable, CustomStringConvertible {
  case child(DataEventType, key: String, Node, previous: String?)
  case value(Node)
  case cancelled

  var description: String {
    switch self {
    case .child(let type, let key, let node, let previous):
      "\(type) \(key)=\(JSONWriter.string(node)) after \(previous ?? "nil")"
    case .value(let node): "value \(JSONWriter.string(node))"
    case .cancelled: "cancelled"
    }
  }
}

/// What listeners of a database see, each under a name.
final class Viewer: Sendable {
  private let database: Database
  private let state = Mutex(State())

  private struct State {
    var seen: [String: [Seen]] = [:]
    var handles: [String: [(query: DatabaseQuery, handle: DatabaseHandle)]] = [:]
  }

  init(_ database: Database) { self.database = database }

  /// Listens to events of all types.
  func listen(_ name: String, _ query: DatabaseQuery) {
    for type in DataEventType.allCases {
      let handle = query.observe(type) { [weak self] snapshot, previous in
        self?.note(
          name,
          type == .value
            ? .value(snapshot.node)
            : .child(
              type, key: snapshot.key, snapshot.node,
              previous: type == .childRemoved ? nil : previous))
      } withCancel: { [weak self] _ in
        if type == .value { self?.note(name, .cancelled) }
      }
      state.withLock { $0.handles[name, default: []].append((query, handle)) }
    }
  }

  func unlisten(_ name: String) {
    for (query, handle) in state.withLock({ $0.handles.removeValue(forKey: name) ?? [] }) {
      query.removeObserver(withHandle: handle)
    }
  }

  private func note(_ name: String, _ seen: Seen) {
    state.withLock { $0.seen[name, default: []].append(seen) }
  }

  /// What each has seen since the last call, of all that is known now.
  func take() async -> [String: [Seen]] {
    await database.waitForPendingEvents()
    return state.withLock { state in
      defer { state.seen = [:] }
      return state.seen
    }
  }

  /// What each has seen since the last call, once that is so much.
  func take(_ count: Int) async throws -> [String: [Seen]] {
    let deadline = ContinuousClock.now + .seconds(60)
    while state.withLock({ $0.seen.values.reduce(0) { $0 + $1.count } }) < count {
      if ContinuousClock.now > deadline { break }
      try await Task.sleep(for: .milliseconds(1))
    }
    return await take()
  }
}

/// What databases write into their logs.
final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])

  func note(_ message: Database.LogMessage) { lines.withLock { $0.append(message.message) } }

  func contains(_ text: String) -> Bool {
    lines.withLock { lines in lines.contains { $0.contains(text) } }
  }
}

/// Runs what blocks its thread until the client has done something for which the client needs a thread of the pool, as it
/// does to ask for tokens.
func onOwnThread(_ body: @escaping @Sendable () async throws -> Void) async throws {
  try await Task(executorPreference: QueueExecutor(), operation: body).value
}

/// Waits until a condition holds; otherwise the test has failed.
func eventually(
  _ condition: () async throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  if let problem = try await waitUntil(condition) {
    Issue.record("\(problem)", sourceLocation: sourceLocation)
  }
}
