import Dendro
import Dispatch
import Foundation
import Testing

@Suite("Deployment.md")
struct DeploymentSamples {
  private func answerRequests(_ database: Database) async throws {
    try await database.reference(withPath: "answered").setValue(true)
  }

  // sample
  func serve(_ directory: String) async throws {
    let database = try await Database.open(at: directory)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await database.run() }
      group.addTask { try await answerRequests(database) }
      // The first that ends, or fails, ends the other.
      defer { group.cancelAll() }
      try await group.next()
    }
  }
  // end

  /// Compiled, not run: it changes what a signal does to the process.
  func main(_ directory: String) async throws {
    // sample
    signal(SIGTERM, SIG_IGN)  // the source below gets it
    let source = DispatchSource.makeSignalSource(signal: SIGTERM)
    let service = Task { try await serve(directory) }
    source.setEventHandler { service.cancel() }
    source.resume()
    try await service.value
    // end
  }

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
}
