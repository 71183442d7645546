import Dendro
import DendroPlatform
import Foundation
import Synchronization
import Testing

/// What Swift Service Lifecycle declares.
private protocol Service: Sendable {
  func run() async throws
}

/// As Swift Service Lifecycle: cancels the operation when its group shuts down, here at once.
private func cancelWhenGracefulShutdown(
  _ operation: @escaping @Sendable () async throws -> Void
) async throws {
  let task = Task { try await operation() }
  task.cancel()
  try await task.value
}

@Suite("Deployment.md", .serialized)
struct DeploymentSamples {
  private func answerRequests(_ database: Database) async throws {
    try await database.reference(withPath: "answered").setValue(true)
  }

  /// The type with `@main`, whose `main()` is on the main actor.
  @MainActor
  private enum App {
    static var directory = ""

    static func startWork(_ database: Database) async throws {
      try await database.reference(withPath: "started").setValue(true)
    }

    // sample
    static func main() async throws {
      let database = try await Database.open(at: directory)
      try await startWork(database)
      try await database.run(until: SIGTERM, SIGINT)
    }
    // end
  }

  // sample
  func serve(_ directory: String) async throws {
    let database = try await Database.open(at: directory)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await database.run(until: SIGTERM, SIGINT) }
      group.addTask { try await answerRequests(database) }
      // The first that ends, or fails, ends the other.
      defer { group.cancelAll() }
      try await group.next()
    }
  }
  // end

  // sample
  struct DatabaseService: Service {
    let database: Database

    func run() async throws {
      try await cancelWhenGracefulShutdown { try await database.run() }
    }
  }
  // end

  private func clear(_ database: Database, _ worker: String) async throws {
    // sample
    // One process has the directory open: what is there was left by runs before this one.
    try await database.reference(withPath: "workers").removeValue()
    let place = database.reference(withPath: "workers/\(worker)")
    try await place.onDisconnectRemoveValue()  // at the orderly end: close() writes it
    try await place.setValue(["since": ServerValue.timestamp()])
    // end
  }

  @Test("run() ends with its task, and the database is closed then")
  func run() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("dendro-serve-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try await serve(folder.path)
    let first = try await Database.open(at: folder.path)
    try await DatabaseService(database: first).run()
    let database = try await Database.open(at: folder.path)
    #expect(try await database.reference(withPath: "answered").getData().value as? Bool == true)
    try await clear(database, "w1")
    // Closed elsewhere, it ends too.
    let running = Task { try await database.run() }
    try await database.close()
    try await running.value
    let again = try await Database.open(at: folder.path)
    #expect(try await !again.reference(withPath: "workers").getData().exists())
    let cancelled = Task { try await again.run() }
    cancelled.cancel()
    try await cancelled.value
    await #expect { try await again.reference().getData() } throws: {
      ($0 as? DatabaseError)?.code == .closed
    }
  }

  @Test("a signal ends main(), on the main actor, and does to the process what it did before")
  @MainActor
  func signal() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("dendro-main-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    App.directory = folder.path
    // What the process does until main() has caught the signals, and behind it.
    let before = DendroPlatform.signal(SIGTERM, SIG_IGN)
    defer { DendroPlatform.signal(SIGTERM, before) }
    let ended = Mutex(false)
    let app = Task {
      defer { ended.withLock { $0 = true } }
      try await App.main()
    }
    while !ended.withLock({ $0 }) {
      kill(getpid(), SIGTERM)
      try await Task.sleep(for: .milliseconds(1))
    }
    try await app.value
    // Nothing: it goes on.
    kill(getpid(), SIGTERM)
    let database = try await Database.open(at: folder.path)
    #expect(try await database.reference(withPath: "started").getData().value as? Bool == true)
    for number in [SIGKILL, 0, 4000] {
      await #expect { try await database.run(until: number) } throws: {
        ($0 as? DatabaseError)?.message == "\(number) is the number of no signal that can be caught"
      }
    }
    try await database.close()
  }
}
