import Dendro
import Foundation
import Synchronization
import Testing

/// What the closures for logging and metrics may do: everything.
@Suite("Calls from within hooks")
struct HookTests {
  let directory = TemporaryDirectory()

  enum Hook: String, CaseIterable, Sendable { case logging, metrics }

  enum Call: String, CaseIterable, Sendable {
    case synchronize, checkpoint, backup, purge, write, transaction, close
  }

  private static func waitFor(_ body: @escaping @Sendable () async -> Void) {
    let isDone = DispatchSemaphore(value: 0)
    Task {
      await body()
      isDone.signal()
    }
    isDone.wait()
  }

  /// As a hook does it, which has to wait on its thread.
  private func make(_ call: Call, _ database: Database) throws {
    let ref = database.reference().child("hook")
    let problem = Shared<DatabaseError?>(nil)
    switch call {
    case .synchronize: try database.synchronize()
    case .checkpoint: try database.checkpoint()
    case .backup: try database.backup(to: directory.path + "-copy")
    case .purge:
      Self.waitFor {
        let error = await failure { try await database.purgeHistory() }
        problem.withLock { $0 = error }
      }
    case .write:
      Self.waitFor {
        let error = await failure { try await ref.setValue("written") }
        problem.withLock { $0 = error }
      }
    case .transaction:
      Self.waitFor {
        let error = await failure { try await ref.transaction { $0.value = "decided" } }
        problem.withLock { $0 = error }
      }
    case .close: try database.close()
    }
    if let problem = problem.withLock({ $0 }) { throw problem }
  }

  @Test(
    "whatever a hook calls and waits for comes to its end", arguments: Hook.allCases, Call.allCases)
  func calls(hook: Hook, call: Call) async throws {
    let called = Shared<Database?>(nil)
    let (outcomes, outcome) = AsyncStream<String>.makeStream()
    let run: @Sendable () -> Void = {
      let database = called.withLock { database in
        defer { database = nil }
        return database
      }
      guard let database else { return }
      do {
        try make(call, database)
        outcome.yield("done")
      } catch {
        outcome.yield("\(error)")
      }
    }
    var options = DatabaseOptions()
    switch hook {
    case .logging: options.logging = { _ in run() }
    case .metrics: options.metrics = { _ in run() }
    }
    let database = try await Database.open(at: directory.path, options: options)
    try await database.reference().child("a").setValue(1)
    called.withLock { $0 = database }
    if hook == .metrics {
      // It may get this one when it has closed the database already.
      _ = await failure { try await database.reference().child("b").setValue(2) }
    } else {
      _ = await failure { try await database.checkpoint() }
    }
    #expect(await outcomes.first { _ in true } == "done")
    try await database.close()
    let reopened = try await Database.open(at: directory.path)
    let values = try await reopened.reference().getData()
    #expect(values["a"].int == 1)
    #expect(values["hook"].exists() == (call == .write || call == .transaction))
    try await reopened.close()
    try? FileManager.default.removeItem(atPath: directory.path + "-copy")
  }
}
