import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Testing

/// What becomes of registered operations whose write is refused.
@Suite("Operations that could not be written")
struct DisconnectFailureTests {
  let disk = SimulatedDisk(seed: 1)

  private func open(_ options: DatabaseOptions = DatabaseOptions()) throws -> Database {
    try Database.open(
      at: "/db", options: options,
      environment: Environment(
        fileSystem: disk, clock: SimulatedClock(), randomness: SeededRandomness(seed: 1)),
      mode: .readWrite)
  }

  private func fillDisk() {
    disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
  }

  /// A database with one registered operation, that was taken offline while the disk was full.
  private func offlineOnAFullDisk(
    _ handled: Shared<[DatabaseError.Code]>
  ) async throws -> Database {
    var options = DatabaseOptions()
    options.errorHandler = { error in handled.withLock { $0.append(error.code) } }
    let database = try open(options)
    let root = database.reference()
    try await root.child("before").setValue(1)
    try await root.child("left").onDisconnectSetValue("first")
    try await root.child("sum").onDisconnectSetValue(ServerValue.increment(1))
    fillDisk()
    database.goOffline()
    while handled.withLock({ $0.isEmpty }) { await settle(database) }
    #expect(handled.value == [.diskFull])
    return database
  }

  /// Returns once the engine has found that there is room.
  private func makeRoom(_ database: Database) async {
    disk.removeFaults()
    let probe = database.reference(withPath: "probe")
    while await failure({ try await probe.setValue(1) }) != nil { await Task.yield() }
  }

  @Test("what a full disk refused is written by close()")
  func byClose() async throws {
    let database = try await offlineOnAFullDisk(Shared([]))
    await makeRoom(database)
    try await database.close()
    let reopened = try open()
    let values = try await reopened.reference().getData()
    #expect(values["left"].string == "first" && values["sum"].int == 1)
    try await reopened.close()
  }

  @Test("what a full disk refused is written by the next goOffline(), once")
  func byGoingOfflineAgain() async throws {
    let database = try await offlineOnAFullDisk(Shared([]))
    let root = database.reference()
    await makeRoom(database)
    database.goOffline()
    #expect(try await root.getData()["left"].string == "first")
    #expect(try await root.getData()["sum"].int == 1)
    database.goOnline()
    database.goOffline()
    #expect(try await root.getData()["sum"].int == 1)
    try await database.close()
  }

  @Test("what was registered since replaces what a full disk refused")
  func registeredSince() async throws {
    let handled = Shared<[DatabaseError.Code]>([])
    let database = try await offlineOnAFullDisk(handled)
    let root = database.reference()
    await makeRoom(database)
    try await root.child("left").onDisconnectSetValue("second")
    try await root.child("sum").cancelDisconnectOperations()
    try await database.close()
    let reopened = try open()
    let values = try await reopened.reference().getData()
    #expect(values["left"].string == "second" && !values["sum"].exists())
    try await reopened.close()
  }

  @Test("going offline while the database is closed writes everything once")
  func whileClosing() async throws {
    for _ in 0..<100 {
      let database = Database.inMemory()
      let engine = try #require(database.engine)
      try await database.reference().child("sum").onDisconnectSetValue(ServerValue.increment(1))
      await withTaskGroup { group in
        group.addTask { database.goOffline() }
        group.addTask { _ = await failure { try await database.close() } }
      }
      #expect(try engine.view(at: Path(parsing: "sum")).scalar == .integer(1))
    }
  }
}
