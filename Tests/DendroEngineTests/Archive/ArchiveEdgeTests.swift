import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// Archives of logs that are damaged, torn, or continued behind a segment that is gone.
@Suite("Archives at the edges of a log")
struct ArchiveEdgeTests {
  private static func following(_ disk: SimulatedDisk) throws -> DatabaseDirectory {
    try DatabaseDirectory.open("/db", environment: disk.environment, mode: .following)
  }

  /// The last segment of the database, and its records with writes.
  private static func records(_ disk: SimulatedDisk) throws -> (path: String, [RecordInfo]) {
    let directory = try following(disk)
    let name = try #require(directory.contents().segments.last)
    let cursor = LogCursor(directory, after: name.firstLSN.previous)
    var records: [RecordInfo] = []
    while try cursor.step({ item in
      if case .record(let record, _, _) = item, record.kind == .writes { records.append(record) }
    }) {}
    return (directory.path(of: name), records)
  }

  @Test(
    "a damaged record in the last segment ends the archive with an error, before and behind its end",
    arguments: [false, true])
  func damaged(isBegun: Bool) throws {
    let disk = SimulatedDisk(seed: 11)
    try ArchiveTests.source(disk, 2).close()
    if isBegun { _ = try ArchiveTests.extend(disk) }
    let names = disk.names(in: "/archive")
    try ArchiveTests.source(disk, 2, from: 2).close()
    let (path, records) = try Self.records(disk)
    let third = try #require(records.first { $0.firstLSN == LogSequenceNumber(3) })
    // The header, then the payload.
    for offset in [third.offset + 5, third.endOffset - 3] {
      let hurt = disk.copy()
      hurt.flipBit(Int(offset) * 8, of: path)
      let error = #expect(throws: StorageError.self) { try ArchiveTests.extend(hurt) }
      guard case .corrupt(path, third.offset, _, _)? = error else {
        Issue.record("\(error as Any)")
        continue
      }
      if isBegun {
        #expect(hurt.names(in: "/archive") == names)
        let archived = try ArchiveTests.open(hurt, "/archive", .readOnly)
        #expect(archived.head.lsn == LogSequenceNumber(2))
        try archived.close()
      }
    }
  }

  @Test("a checkpoint that becomes shorter while it is copied is an error, and not in the archive")
  func shorterCheckpoint() throws {
    let held = HeldDisk()
    let disk = held.disk
    let writer = try ArchiveTests.source(disk, 4)
    try writer.checkpoint()
    try writer.close()
    let name = try #require(disk.names(in: "/db").first { $0.hasSuffix(".checkpoint") })
    // After its chunks were checked and its size was read.
    held.onCreate { created in
      guard created.hasPrefix("/archive/"), created.contains(name) else { return }
      do { try disk.open("/db/\(name)", .readWrite).truncate(to: 100) } catch {
        Issue.record(error)
      }
    }
    let source = try DatabaseDirectory.open(
      "/db", environment: held.environment, mode: .following)
    let archive = try LogArchive(of: source, at: "/archive")
    defer { archive.close() }
    let error = #expect(throws: StorageError.self) { try archive.extend() }
    guard case .corrupt("/db/\(name)", 100, _, "the end of the file")? = error else {
      Issue.record("\(error as Any)")
      return
    }
    #expect(!disk.names(in: "/archive").contains { $0.contains(name) })
  }

  @Test("a log that ends before its checkpoint ends the archive with an error")
  func missingEnd() throws {
    let disk = SimulatedDisk(seed: 11)
    try ArchiveTests.source(disk, 2).close()
    let (path, records) = try Self.records(disk)
    let second = try #require(records.last)
    let writer = try ArchiveTests.open(disk, "/db")
    try writer.checkpoint()
    try writer.close()
    let names = disk.names(in: "/db").filter { $0.hasSuffix(".log") }
    for name in names where "/db/" + name != path { disk.erase("/db/" + name) }
    disk.resize(path, to: Int(second.offset))
    #expect {
      try ArchiveTests.extend(disk)
    } throws: {
      if case StorageError.corrupt(path, second.offset, _, _) = $0 { true } else { false }
    }
  }

  @Test("what a crash has torn is left out, until a writer goes on in its place")
  func torn() throws {
    let disk = SimulatedDisk(seed: 12)
    try ArchiveTests.source(disk, 2).close()
    do {
      let writer = try ArchiveTests.open(disk, "/db")
      writer.submit(try set("torn", .string(incompressible(300))), completion: nil)
      writer.pump()
      let (path, records) = try Self.records(disk)
      let last = try #require(records.last)
      disk.resize(path, to: Int(last.endOffset))
      disk.flipBit(Int(last.endOffset - 20) * 8, of: path)
    }
    #expect(try ArchiveTests.extend(disk).lastLSN == LogSequenceNumber(2))
    let writer = try ArchiveTests.source(disk, 1, from: 5)
    let root = writer.head.root
    try writer.close()
    #expect(try ArchiveTests.extend(disk).lastLSN == LogSequenceNumber(3))
    let archived = try ArchiveTests.open(disk, "/archive", .readOnly)
    #expect(archived.head.root == root)
    try archived.close()
  }

  @Test("an idle record behind the archive's end is made up for when its segment is gone")
  func idleRecord() throws {
    let disk = SimulatedDisk(seed: 13)
    do {
      // Not closed: the log has no idle record yet.
      let writer = try ArchiveTests.source(disk, 3)
      #expect(try ArchiveTests.extend(disk).lastLSN == writer.head.lsn)
    }
    try ArchiveTests.open(disk, "/db").close()
    let writer = try ArchiveTests.open(disk, "/db")
    try writer.checkpoint()
    for number in 5..<8 { writer.submit(try set("n\(number)", .integer(1)), completion: nil) }
    try writer.checkpoint()
    writer.submit(try set("last", .bool(true)), completion: nil)
    writer.pump()
    let segments = try Self.following(disk).contents().segments
    #expect(segments.first?.firstLSN == LogSequenceNumber(4))
    // Killed anywhere, the archive is as before, or further.
    var callCount = 0
    var isComplete = false
    while !isComplete {
      let cut = disk.copy()
      cut.disconnect(after: callCount)
      do throws(StorageError) {
        _ = try ArchiveTests.extend(cut)
        isComplete = true
      } catch {}
      let left = cut.copy()
      let found = try ArchiveTests.open(left, "/archive", .readOnly)
      #expect(found.head.lsn >= LogSequenceNumber(3), "after \(callCount) calls")
      try found.close()
      callCount += 1
    }
    #expect(try ArchiveTests.extend(disk).lastLSN == writer.head.lsn)
    let archived = try ArchiveTests.open(disk, "/archive", .readOnly)
    #expect(archived.head.root == writer.head.root)
    #expect(try archived.state(at: .lsn(LogSequenceNumber(2)))?.root.childCount == 2)
    try archived.close()
    try writer.close()
  }

  @Test("while no segment is sealed, extending by sealed segments reads no file")
  func unchanged() throws {
    let disk = SimulatedDisk(seed: 14)
    let writer = try ArchiveTests.source(disk, 7)
    let archive = try LogArchive(of: Self.following(disk), at: "/archive")
    defer { archive.close() }
    let whole = try archive.extend()
    #expect(whole.lastLSN == LogSequenceNumber(7))
    writer.submit(try set("open", .integer(1)), completion: nil)
    writer.pump()
    disk.inject(
      DiskFault(
        .error(SystemError.inputOutput.code), of: [.read], at: 1, isPermanent: true,
        pathPart: "/db/"))
    let idle = try archive.extend(sealedOnly: true)
    #expect(idle.isEmpty && idle.lastLSN == whole.lastLSN)
    disk.removeFaults()
    try writer.roll()
    let sealed = try archive.extend(sealedOnly: true)
    #expect(sealed.lastLSN == writer.head.lsn && sealed.sealed.count == 1)
    try writer.close()
  }
}
