import DendroTesting
import Foundation
import Synchronization
import Testing

@testable import Dendro
@testable import DendroEngine

/// Archives and restored states, by the API.
@Suite("Archives, by the API")
struct DatabaseArchiveTests {
  private let disk = SimulatedDisk(seed: 1)

  private func open(_ path: String, _ mode: Engine.Mode = .readWrite) throws -> Database {
    try Database.open(
      at: path, options: DatabaseOptions(), environment: disk.environment, mode: mode)
  }

  private func makeArchive(_ path: String = "/archive") throws -> DatabaseArchive {
    try DatabaseArchive(of: "/db", at: path, environment: disk.environment)
  }

  @Test("an archive gets what is new, and every state of it becomes a database")
  func restored() async throws {
    let writer = try open("/db")
    let root = writer.reference()
    let archive = try makeArchive()
    try await root.child("n").setValue(1)
    let first = try await archive.extend()
    #expect(first.lastLSN == 1 && first.segmentCount == 1 && first.byteCount > 0)
    #expect(first.parityByteCount > 4096)
    // The log gets one record more, without a write, once the writer is idle.
    let unchanged = [try await archive.extend(), try await archive.extend()]
    #expect(unchanged.contains { $0.isEmpty } && unchanged.allSatisfy { $0.lastLSN == 1 })
    for number in 2...5 {
      try await root.child("n").setValue(number)
      if number == 3 { try await writer.checkpoint() }
    }
    let second = try await archive.extend()
    #expect(second.lastLSN == 5 && second.sealedSegmentCount == 1 && !second.isEmpty)
    try await writer.close()

    let copy = try open("/archive", .readOnly)
    for lsn in Database.LSN(1)...5 {
      let place = "/restored\(lsn)"
      #expect(try await copy.restore(at: lsn, to: place) == lsn)
      let restored = try open(place)
      #expect(try await restored.reference().child("n").getData().value as? Int == Int(lsn))
      // It goes on from there.
      try await restored.reference().child("more").setValue(true)
      #expect(try await restored.historyRange().newest == lsn + 1)
      try await restored.close()
    }
    let third = try #require(
      try await copy.changes(since: 2).first { _ in true })
    #expect(try await copy.restore(at: third.time, to: "/by-time") >= 3)
    #expect(try await copy.restore(at: Date.distantFuture, to: "/last") == 5)
    try await copy.close()
  }

  /// The form that blocks.
  @Test("parity is an option: on for archives, off for backups")
  func parity() async throws {
    func parityCount(_ path: String) -> Int {
      disk.names(in: path).count { $0.hasSuffix(".parity") }
    }
    let writer = try open("/db")
    try await writer.reference().child("n").setValue(1)
    try await makeArchive().extend()
    let bare = try DatabaseArchive(
      of: "/db", at: "/bare", parity: false, environment: disk.environment)
    #expect(try await bare.extend().parityByteCount == 0)
    bare.close()
    try await writer.backup(to: "/copy", parity: true)
    try await writer.backup(to: "/plain")
    #expect(parityCount("/archive") == 1 && parityCount("/copy") == 2)
    #expect(parityCount("/bare") == 0 && parityCount("/plain") == 0 && parityCount("/db") == 0)
    // Each of the calls has the option.
    try plainly { try writer.backup(to: "/copy2", parity: true) }
    #expect(parityCount("/copy2") == 2)
    try await writer.close()
  }

  private static func extend(_ archive: DatabaseArchive) throws { try archive.extend() }

  @Test("refusals have a code each, and leave no directory")
  func refusals() async throws {
    func code(_ body: () async throws -> Void) async -> DatabaseError.Code? {
      do {
        try await body()
        return nil
      } catch { return (error as? DatabaseError)?.code }
    }
    #expect(await code { _ = try makeArchive() } == .notFound)
    let writer = try open("/db")
    try await writer.reference().setValue("there")
    try await open("/other").close()
    #expect(await code { _ = try makeArchive("/db") } == .invalidArgument)
    #expect(await code { _ = try makeArchive("") } == .invalidArgument)
    let archive = try makeArchive()
    try await archive.extend()
    #expect(await code { _ = try makeArchive() } == .locked)
    archive.close()
    archive.close()
    #expect(await code { try Self.extend(archive) } == .closed)
    #expect(await code { try await archive.extend() } == .closed)
    #expect(await code { _ = try open("/archive") } == .readOnly)

    #expect(await code { try await writer.restore(at: 2, to: "/new") } == .outOfHistory)
    #expect(
      await code { try await writer.restore(at: Date(timeIntervalSince1970: .nan), to: "/new") }
        == .invalidArgument)
    #expect(!disk.exists("/new"))
    try await writer.restore(at: 0, to: "/new")
    #expect(await code { try await writer.restore(at: 1, to: "/new") } == .inputOutput)
    try await writer.close()
    #expect(await code { try await writer.restore(at: 1, to: "/newer") } == .closed)
    let memory = Database.inMemory()
    #expect(await code { try await memory.restore(at: 0, to: "/newer") } == .unavailable)
    try await memory.close()
  }

  @Test("a purge waits until an archive that is being extended has all writes, or is refused")
  func purged() async throws {
    let writer = try open("/db")
    let root = writer.reference()
    let archive = try makeArchive()
    try await root.child("n").setValue(1)
    try await archive.extend()
    try await root.child("n").setValue(2)
    for form in ["blocking", "async"] {
      let refused = await #expect(throws: DatabaseError.self) {
        if form == "async" { return try await writer.purgeHistory(waiting: .zero) }
        try Self.purge(writer)
      }
      #expect(refused?.code == .locked && refused?.name == "ArchiveBehind")
      #expect(refused?.message.contains("up to write 1 only") == true, "\(refused?.message ?? "")")
      #expect(try await root.child("n").snapshot(at: 1).value as? Int == 1)
    }
    archive.close()
    // Open again, it counts before it is extended.
    let again = try makeArchive()
    await #expect(throws: DatabaseError.self) { try await writer.purgeHistory(waiting: .zero) }

    let isPurged = Mutex(false)
    async let purge: Void = {
      defer { isPurged.withLock { $0 = true } }
      try await writer.purgeHistory(waiting: .seconds(600))
    }()
    // As `dendro archive` does: what is not sealed comes at the end only.
    while !isPurged.withLock({ $0 }) {
      try await again.extend(sealedOnly: true)
      await Task.yield()
    }
    try await purge
    #expect(try await writer.historyRange().oldest == 2)
    try await root.child("n").setValue(3)
    #expect(try await again.extend().lastLSN == 3)
    again.close()
    // No archive holds up the purge any more.
    try await root.child("n").setValue(4)
    try await writer.purgeHistory(waiting: .zero)
    try await writer.close()
    let copy = try open("/archive", .readOnly)
    for lsn in Database.LSN(1)...3 {
      #expect(
        try await copy.reference().child("n").snapshot(at: lsn).value as? Int == Int(lsn))
    }
    try await copy.close()
  }

  /// The form that blocks.
  private static func purge(_ database: Database) throws {
    try database.purgeHistory(waiting: .zero)
  }

  @Test("the archive of another database is not extended")
  func other() async throws {
    let first = try open("/db")
    try await first.reference().setValue(1)
    let archive = try makeArchive()
    try await archive.extend()
    archive.close()
    try await first.close()
    for name in disk.names(in: "/db") { disk.erase("/db/" + name) }
    let second = try open("/db")
    try await second.reference().setValue(2)
    let again = try makeArchive()
    let error = await #expect(throws: DatabaseError.self) { try await again.extend() }
    #expect(error?.code == .unavailable)
    // Nothing is kept for it any more.
    for number in 3...5 { try await second.reference().setValue(number) }
    try await second.purgeHistory(waiting: .zero)
    try await second.close()
  }
}
