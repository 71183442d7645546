import DendroTesting
import DendroTestSupport
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// An engine that follows a writer of another process, for which a second engine stands here.
@Suite("Following a writer")
struct FollowingTests {
  private let disk = SimulatedDisk(seed: 1)

  private func open(
    _ mode: Engine.Mode = .readWrite, _ change: (inout EngineOptions) -> Void = { _ in }
  ) throws -> Engine {
    var options = EngineOptions.inline
    change(&options)
    return try Engine.open(at: "/db", options: options, environment: disk.environment, mode: mode)
  }

  /// An engine that follows, and what it has seen.
  private func follow() throws -> (Engine, CommitLog) {
    let follower = try open(.following)
    let log = CommitLog(follower.head.root)
    follower.setObserver(log)
    return (follower, log)
  }

  /// Writes with a checkpoint after each, and then removes the log that they make unnecessary.
  private func purge(after numbers: ClosedRange<Int64>, of writer: Engine) throws {
    for number in numbers {
      writer.submit(try set("k\(number)", .integer(number)), completion: nil)
      try writer.checkpoint()
    }
    try writer.purgeHistory()
  }

  @Test(
    "every write of writers that turn segments, take checkpoints and are killed is seen once",
    arguments: 0..<UInt64(Scale.scaled(60)), [EngineOptions.Loading.onDemand, .whole])
  func writers(seed: UInt64, loading: EngineOptions.Loading) throws {
    var random = SeededGenerator(seed: seed)
    var writes = WriteGenerator(seed: seed)
    try open().close()
    let follower = try open(.following) { $0.loading = loading }
    let log = CommitLog(follower.head.root)
    follower.setObserver(log)
    for _ in 0..<6 {
      do {
        // Without `close()`, as if it was killed: inline execution only releases the lock.
        let writer = try open {
          $0.segmentByteLimit = 4 << 10
          $0.checkpointByteMin = 1 << 10
          $0.checkpointChunkByteLimit = 256
        }
        for _ in 0..<Int(random.next() % 12) {
          switch random.next() % 8 {
          case 0: try writer.roll()
          case 1: try writer.checkpoint()
          case 2: #expect(try follower.refresh() == writer.head.lsn)
          default:
            for _ in 0..<Int(random.next() % 6) {
              writer.submit(Draft(writes.write()), completion: nil)
            }
            writer.pump()
          }
        }
        writer.pump()
        #expect(try follower.refresh() == writer.head.lsn)
        #expect(follower.head.root == writer.head.root)
        if random.next() % 3 == 0 { try writer.close() }
      }
    }
    #expect(log.root == follower.head.root)
    #expect(log.lsns == Array(1..<UInt64(log.lsns.count + 1)))
    #expect(log.differenceCount == 0)
    try follower.close()
  }

  @Test("the log that was not read yet stays, and goes once it was read")
  func retention() throws {
    let writer = try open()
    let follower = try open(.following)
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    let segments = { try directory.contents().segments.map(\.firstLSN.rawValue) }
    directory.close()
    for round in 1...5 {
      writer.submit(try set("a", .integer(Int64(round))), completion: nil)
      try writer.checkpoint()
    }
    #expect(try segments() == [1, 2, 3, 4, 5, 6])
    let log = CommitLog(follower.head.root)
    follower.setObserver(log)
    try follower.refresh()
    #expect(log.lsns == [1, 2, 3, 4, 5])
    writer.submit(try set("a", .integer(6)), completion: nil)
    try writer.checkpoint()
    #expect(try segments() == [6, 7])
    try follower.close()
    for round in 7...8 {
      writer.submit(try set("a", .integer(Int64(round))), completion: nil)
      try writer.checkpoint()
    }
    #expect(try segments() == [8, 9])
    try writer.close()
  }

  @Test("a purge waits for no follower, which gets the difference")
  func purge() throws {
    let writer = try open()
    let (follower, log) = try follow()
    try purge(after: 1...5, of: writer)
    writer.submit(try set("k6", .integer(6)), completion: nil)
    writer.pump()
    #expect(try follower.refresh() == LogSequenceNumber(6))
    #expect(log.root == writer.head.root)
    #expect(log.differenceCount == 1)
    writer.submit(try set("k7", .integer(7)), completion: nil)
    writer.pump()
    try follower.refresh()
    #expect(log.lsns.last == 7)
    #expect(log.root == writer.head.root)
    try follower.close()
    try writer.close()
  }

  @Test(
    "who waits for changes is woken if the directory was read anew, and gets the error of the gap"
  )
  func purgeWakes() async throws {
    let writer = try open()
    let (follower, log) = try follow()
    let reader = try follower.changes(since: .zero)
    let next = Task { () -> Result<[LoggedWrite]?, EngineError> in
      do throws(EngineError) { return .success(try await reader.next()) } catch {
        return .failure(error)
      }
    }
    let signal = follower.pipeline.groupCommit.durableSignal
    while !signal.hasWaiters { await Task.yield() }
    try purge(after: 1...3, of: writer)
    try follower.refresh()
    #expect(log.differenceCount == 1)
    #expect(!signal.hasWaiters)
    if signal.hasWaiters { next.cancel() }
    guard case .failure(.outOfHistory) = await next.value else {
      Issue.record("\(await next.value)")
      return
    }
    try await follower.close()
    try await writer.close()
  }

  @Test("a purge that leaves a log without records is seen by a follower that has read nothing yet")
  func emptyLog() throws {
    let writer = try open()
    let (follower, log) = try follow()
    try purge(after: 1...3, of: writer)
    #expect(try follower.refresh() == LogSequenceNumber(3))
    #expect(log.root == writer.head.root && log.differenceCount == 1)
    try follower.close()
    try writer.close()
  }

  @Test(
    "a writer that removes files for long makes a look fail, and the next one get what it missed")
  func lockedOut() throws {
    let writer = try open()
    let (follower, log) = try follow()
    try purge(after: 1...3, of: writer)
    writer.submit(try set("k4", .integer(4)), completion: nil)
    writer.pump()
    let readersLock = try disk.open("/db/readers.lock", .read)
    #expect(try readersLock.lock(.exclusive))
    for _ in 0..<2 {
      let error = #expect(throws: EngineError.self) { try follower.refresh() }
      guard case .storage(.locked)? = error else {
        Issue.record("\(error as Any)")
        break
      }
    }
    // Nothing behind the gap was taken.
    #expect(log.lsns.isEmpty && log.differenceCount == 0)
    #expect(follower.head.lsn == .zero)
    readersLock.unlock()
    #expect(try follower.refresh() == LogSequenceNumber(4))
    #expect(log.root == writer.head.root && log.differenceCount == 1)
    writer.submit(try set("k5", .integer(5)), completion: nil)
    writer.pump()
    try follower.refresh()
    #expect(log.lsns == [5] && log.root == writer.head.root)
    #expect(log.failures.isEmpty)
    try follower.close()
    try writer.close()
  }

  @Test("a segment that is removed between being listed and being opened does not end following")
  func vanishedSegment() throws {
    let writer = try open()
    let (follower, log) = try follow()
    for round in 1...3 {
      writer.submit(try set("a", .integer(Int64(round))), completion: nil)
      writer.pump()
      try writer.roll()
    }
    disk.inject(
      DiskFault(.error(SystemError.noSuchFile.code), of: [.open], at: 1, pathPart: "2.log"))
    #expect(try follower.refresh() == LogSequenceNumber(3))
    #expect(log.root == writer.head.root && log.failures.isEmpty)
    #expect(log.differenceCount == 1)
    writer.submit(try set("a", .integer(4)), completion: nil)
    writer.pump()
    try follower.refresh()
    #expect(log.lsns.last == 4 && log.root == writer.head.root)
    try follower.close()
    try writer.close()
  }

  @Test("a batch that the writer takes back is taken back here")
  func takenBack() throws {
    let writer = try open { $0.durability = .none }
    writer.submit(try set("kept", .integer(1)), completion: nil)
    writer.pump()
    try writer.synchronize()
    let (follower, log) = try follow()
    writer.submit(try set("lost", .integer(2)), completion: nil)
    writer.pump()
    try follower.refresh()
    #expect(log.root == writer.head.root)
    // What a writer does whose disk refuses a batch of several records, by hand.
    let path = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    let name = try path.path(of: #require(path.contents().segments.last))
    path.close()
    let file = try disk.open(name, .readWrite)
    var offset: UInt64 = 0
    do {
      let directory = try DatabaseDirectory.open(
        "/db", environment: disk.environment, mode: .following)
      let cursor = LogCursor(directory)
      while try cursor.step({ item in
        if case .record(let record, _, _) = item, record.firstLSN.rawValue == 2 {
          offset = record.offset
        }
      }) {}
    }
    #expect(offset > 0)
    try file.truncate(to: offset)
    try follower.refresh()
    #expect(follower.head.lsn == LogSequenceNumber(1))
    #expect(try follower.view(at: DendroTree.Path(parsing: "lost")).isEmpty)
    #expect(log.root == follower.head.root)
    #expect(log.differenceCount == 1)
    try follower.close()
  }

  @Test("what is known to be durable follows the log")
  func durable() throws {
    let writer = try open()
    let follower = try open(.following)
    for round in 1...3 {
      writer.submit(try set("a", .integer(Int64(round))), completion: nil)
      writer.pump()
    }
    try follower.refresh()
    #expect(follower.statistics().lastLSN == LogSequenceNumber(3))
    // The last record says nothing about itself.
    #expect(follower.statistics().durableLSN == LogSequenceNumber(2))
    try writer.close()
    try follower.refresh()
    #expect(follower.statistics().durableLSN == LogSequenceNumber(3))
    try follower.close()
  }

  @Test("damage, removal and replacement end following with an error, once and for all")
  func failures() throws {
    for kind in ["damaged", "removed", "replaced"] {
      let disk = SimulatedDisk(seed: 2)
      func open(_ mode: Engine.Mode) throws -> Engine {
        try Engine.open(at: "/db", options: .inline, environment: disk.environment, mode: mode)
      }
      let writer = try open(.readWrite)
      for round in 1...3 {
        writer.submit(try set("a", .integer(Int64(round))), completion: nil)
        writer.pump()
      }
      let follower = try open(.following)
      let log = CommitLog(follower.head.root)
      follower.setObserver(log)
      for round in 4...6 {
        writer.submit(try set("a", .integer(Int64(round))), completion: nil)
        writer.pump()
      }
      try writer.close()
      let names = try disk.list("/db")
      switch kind {
      case "damaged":
        let name = try #require(names.first { $0.hasSuffix(".log") })
        let file = try disk.open("/db/" + name, .readWrite)
        let size = try file.size()
        // In the middle of the records.
        for offset in stride(from: size / 2, to: size / 2 + 40, by: 1) {
          try withUnsafeBytes(of: UInt8(0xA5)) { bytes throws(SystemError) in
            _ = try file.write(bytes, at: offset)
          }
        }
      default:
        for name in names { try disk.remove("/db/" + name) }
        if kind == "replaced" { try open(.readWrite).close() } else { try disk.remove("/db") }
      }
      let error = try #require(throws: EngineError.self) {
        // The bytes might be a record that is being written.
        for _ in 1...4 { try follower.refresh() }
      }
      switch (kind, error) {
      case ("damaged", .storage(.corrupt)), ("removed", .storage(.notFound)),
        ("replaced", .storage(.ownershipLost)):
        break
      default: Issue.record("\(kind): \(error)")
      }
      #expect(log.failures == [error])
      if kind == "damaged" {
        // The log is no longer kept for it.
        let readersLock = try disk.open("/db/readers.lock", .read)
        #expect(try readersLock.lockedByte(in: 0..<UInt64(Int64.max)) == nil)
      }
      #expect(throws: error) { try follower.refresh() }
      #expect(log.failures.count == 1)
      try follower.close()
    }
  }
}
