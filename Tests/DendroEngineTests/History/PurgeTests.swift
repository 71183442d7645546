import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// Whom a purge waits for.
@Suite("Purging beside others")
struct PurgeTests {
  private static let number = LogSequenceNumber.init

  private static func following(_ disk: SimulatedDisk) throws -> DatabaseDirectory {
    try DatabaseDirectory.open("/db", environment: disk.environment, mode: .following)
  }

  private static func put(_ numbers: ClosedRange<Int64>, _ writer: Engine) throws {
    for number in numbers { writer.submit(try set("n", .integer(number)), completion: nil) }
    try writer.synchronize()
  }

  @Test("nothing is removed that the slowest of several archives needs; followers do not count")
  func slowest() throws {
    let disk = SimulatedDisk(seed: 21)
    let writer = try ArchiveTests.open(disk, "/db")
    writer.submit(try set("n", .integer(1)), completion: nil)
    writer.pump()
    let source = try Self.following(disk)
    let follower = try #require(try source.publishPosition(Self.number(1)))
    let slow = try #require(try source.publishPosition(Self.number(1), of: .archive))
    let quick = try #require(try source.publishPosition(Self.number(1), of: .archive))
    for number in Int64(2)...9 {
      writer.submit(try set("n", .integer(number)), completion: nil)
      writer.pump()
      if number.isMultiple(of: 3) { try writer.roll() }
    }
    let names = Set(disk.names(in: "/db"))
    quick.move(to: Self.number(9))
    slow.move(to: Self.number(8))
    #expect(
      throws: EngineError.storage(.archiveBehind(path: "/db", lastLSN: Self.number(8)))
    ) { try writer.purgeHistory() }
    #expect(names.isSubset(of: disk.names(in: "/db")))
    #expect(try writer.state(at: .lsn(Self.number(1)))?.root.childCount == 1)
    slow.move(to: Self.number(9))
    try writer.purgeHistory()
    #expect(try writer.historyRange().oldest == Self.number(9))
    // What the follower still needs is gone, which it makes up for.
    withExtendedLifetime((follower, slow, quick)) {}
    try writer.close()
  }

  @Test("an archive keeps the log from retention as a follower does")
  func retention() throws {
    let disk = SimulatedDisk(seed: 22)
    let writer = try ArchiveTests.open(disk, "/db")
    let source = try Self.following(disk)
    for kind in [PublishedPosition.Kind.follower, .archive] {
      let first = writer.head.lsn.rawValue
      let position = try #require(try source.publishPosition(writer.head.lsn, of: kind))
      for number in Int64(1)...6 {
        writer.submit(try set("\(kind)", .integer(number)), completion: nil)
        writer.pump()
        try writer.checkpoint()
      }
      #expect(try source.publishedPositions() == [], "a reader sees none")
      #expect(try writer.historyRange().oldest.rawValue <= first, "\(kind)")
      position.move(to: writer.head.lsn)
    }
    try writer.close()
  }

  @Test("it goes on once a reader is gone, and says once what it waits for")
  func reader() async throws {
    let disk = SimulatedDisk(seed: 23)
    let writer = try Engine.open(at: "/db", environment: disk.environment)
    try Self.put(1...3, writer)
    let reader = try Engine.open(at: "/db", environment: disk.environment, mode: .readOnly)
    let (obstacles, waits) = AsyncStream<StorageError>.makeStream()
    async let purge: Void = {
      defer { waits.finish() }
      try await writer.purgeHistory(Purge(limit: .seconds(600)) { waits.yield($0) })
    }()
    var count = 0
    for await obstacle in obstacles {
      #expect(obstacle == .locked(path: "/db", pid: 0))
      count += 1
      try await reader.close()
    }
    try await purge
    #expect(count == 1)
    #expect(try await writer.historyRange().oldest == Self.number(3))
    try await writer.close()
  }

  @Test("closing ends its wait, and the past stays")
  func closed() async throws {
    let disk = SimulatedDisk(seed: 24)
    let writer = try Engine.open(at: "/db", environment: disk.environment)
    try Self.put(1...3, writer)
    let archive = try LogArchive(of: Self.following(disk), at: "/archive")
    _ = try archive.extend()
    try Self.put(4...6, writer)
    let (obstacles, waits) = AsyncStream<StorageError>.makeStream()
    async let refusal: EngineError? = {
      do throws(EngineError) {
        try await writer.purgeHistory(Purge(limit: .seconds(600)) { waits.yield($0) })
        return nil
      } catch {
        return error
      }
    }()
    for await obstacle in obstacles {
      #expect(obstacle == .archiveBehind(path: "/db", lastLSN: Self.number(3)))
      break
    }
    try await writer.close()
    #expect(await refusal == .closed)
    #expect(try archive.extend().lastLSN == Self.number(6))
    archive.close()
    let archived = try ArchiveTests.open(disk, "/archive", .readOnly)
    #expect(try await archived.historyRange().oldest == .zero)
    try await archived.close()
  }
}
