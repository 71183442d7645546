import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import Dispatch
import Synchronization

@testable import DendroServer

/// A database that shares its log with other servers, of which there are none: the test says who leads, and what becomes
/// of batches.
final class SharedDatabase: Sendable {
  let log = Log()
  let namespaces: OpeningNamespaces
  /// What the server is told of its part.
  let status: Status
  private let folder: TemporaryFolder

  /// - Parameter names: of the databases that other servers have.
  init(_ status: PeerStatus, elsewhere names: Set<String> = []) throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    let status = Status(status)
    self.status = status
    let (log, path) = (log, folder.path)
    namespaces = OpeningNamespaces(default: "app", limits: .init()) {
      ["app"]
    } directory: { name in
      "\(path)/\(name)"
    } existsElsewhere: { name in
      names.contains(name)
    } peer: { _ in
      status.withLock { $0 }
    } opener: { name in
      try Database.sharing(options: DatabaseOptions()) {
        (options, environment) throws(DatabaseError) in
        do throws(EngineError) {
          return try Engine.open(
            at: "\(path)/\(name)", options: options, environment: environment,
            sharing: Sharing(log: log, databaseID: DatabaseID(high: 1, low: 2)))
        } catch {
          throw DatabaseError(error)
        }
      }
    }
  }

  final class Status: Sendable {
    private let status: Mutex<PeerStatus>

    init(_ status: PeerStatus) { self.status = Mutex(status) }

    func withLock<R>(_ body: (inout PeerStatus) -> R) -> R { status.withLock { body(&$0) } }
  }

  func engine() throws -> Engine {
    try namespaces.namespace("app", makesNew: true).namespace.engine
  }

  /// Serves it for the time of `body`.
  func serving(
    _ change: (inout DatabaseServerOptions) -> Void = { _ in },
    _ body: (DatabaseServer, HTTPClient) async throws -> Void
  ) async throws {
    var options = DatabaseServerOptions.patient
    change(&options)
    let server = try DatabaseServer.start(namespaces, options)
    do {
      try await body(server, HTTPClient(port: server.port))
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  /// A log that takes all batches, or does what it is told.
  final class Log: SharedLog {
    private let state = Mutex(State())
    private let hasClosed = DispatchSemaphore(value: 0)
    /// Signalled when a batch begins to wait.
    let waits = DispatchSemaphore(value: 0)

    private struct State {
      var failure: SharedLogFailure?
      var isStuck = false
    }

    /// What batches are answered from now on; nil: they are taken.
    func answer(_ failure: SharedLogFailure?) { state.withLock { $0.failure = failure } }

    /// Answers no batch until the engine closes.
    func stick() { state.withLock { $0.isStuck = true } }

    func append(_ records: [SharedRecord]) throws(SharedLogFailure) {
      let state = state.withLock { state in
        defer { state.isStuck = false }
        return (failure: state.failure, isStuck: state.isStuck)
      }
      if state.isStuck {
        waits.signal()
        hasClosed.wait()
        throw .undecided("it does not answer")
      }
      if let failure = state.failure { throw failure }
    }

    func engineCloses() { hasClosed.signal() }

    func engineClosed() {}
  }
}
