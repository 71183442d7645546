import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// The order of calls in which files come to be, and what may not be done to old ones.
@Suite struct NewFileTests {
  /// A log that rolled, a checkpoint, a torn tail that was cut, and what came behind it.
  private func workload(_ disk: SimulatedDisk) throws {
    var directory = try open(disk)
    var writer = try newLog(directory, options: LogOptions())
    for number in 0..<6 {
      try writer.append(payload(number))
      if number % 2 == 1 { try writer.roll(time: 5) }
    }
    try CheckpointTests.write(directory, lsn: 6)
    try writer.append(payload(6))
    directory.close()
    disk.overwrite(segmentPath(7), at: Int(writer.segmentByteCount), with: noise(40, seed: 1))
    (directory, writer, _) = try resume(disk, options: LogOptions())
    try writer.append(payload(7))
    try writer.close()
    directory.close()
  }

  @Test("the names of a new database and of a new segment are durable before any write in them")
  func nameIsDurableBeforeTheFirstWrite() throws {
    // Directories above it, too, also those that existed.
    let path = "/some/where/db"
    let disk = SimulatedDisk()
    func lossy() throws -> [[UInt8]] {
      let point = disk.crashPoint()
      let directory = try DatabaseDirectory.open(
        path, environment: point.disk(point.allDropped).environment, mode: .readOnly)
      return try read(directory)?.entries.map(\.payload) ?? []
    }
    let directory = try DatabaseDirectory.open(
      path, environment: disk.environment, mode: .readWrite(create: true))
    let writer = try newLog(directory)
    var expected: [[UInt8]] = []
    for number in 0..<6 {
      try writer.append(payload(number))
      expected.append(payload(number))
      #expect(try lossy() == expected, "write \(number)")
      try writer.roll(time: 0)
      #expect(try lossy() == expected, "roll \(number)")
    }
  }

  @Test("a file gets its name after it was synchronized, and the name is synchronized at once")
  func renameComesAfterTheContent() throws {
    let disk = SimulatedDisk()
    try workload(disk)
    let trace = disk.trace
    var renames = 0
    for (place, call) in trace.enumerated() where call.kind == .rename {
      renames += 1
      let changes: Set<DiskOperation.Kind> = [.write, .truncate, .preallocate]
      let last = trace[..<place].lastIndex { $0.path == call.path && changes.contains($0.kind) }
      let synchronized = trace[..<place].lastIndex {
        $0.path == call.path && $0.kind == .synchronize
      }
      #expect(try #require(last) < #require(synchronized), "\(call)")
      let next = trace[(place + 1)...].first { $0.kind.changes }
      #expect(next?.kind == .synchronizeDirectory && next?.path == root, "\(call)")
    }
    // Segments 1, 3, 5 and 7, the checkpoint, the torn bytes, the rewritten last segment.
    #expect(renames == 7)
  }

  @Test("a torn tail is cut and synchronized before anything is appended")
  func cutComesBeforeTheFirstAppend() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    directory.close()
    disk.overwrite(segmentPath(1), at: Int(writer.segmentByteCount), with: noise(40, seed: 1))
    let before = disk.operationCount
    let (again, resumed, log) = try resume(disk)
    #expect(log.end.torn != nil)
    let opened = disk.operationCount
    try resumed.append(payload(1))
    let cut = try #require(
      disk.trace[before..<opened].lastIndex { $0.newPath == segmentPath(1) })
    #expect(
      disk.trace[cut..<opened].contains { $0.kind == .synchronizeDirectory && $0.path == root })
    let appended = disk.trace[opened...].filter { $0.kind == .write && $0.path == segmentPath(1) }
    #expect(appended.count == 1)
    #expect(try read(again)?.entries.map(\.payload) == [payload(0), payload(1)])
  }

  @Test("torn, opened, written, torn, opened: no acknowledged write is behind the cut")
  func appendAfterATornTail() throws {
    var disk = SimulatedDisk()
    var expected: [[UInt8]] = []
    let directory = try open(disk)
    let first = try newLog(directory)
    try first.append(payload(0))
    expected.append(payload(0))
    directory.close()
    for round in 1...6 {
      let (directory, writer, log) = try resume(disk)
      #expect(log.entries.map(\.payload) == expected)
      try writer.append(payload(round))
      expected.append(payload(round))
      // A write that the crash tears: it was not synchronized.
      try writer.append(noise(700, seed: UInt64(round)), durably: false)
      directory.close()
      let point = disk.crashPoint()
      let last = point.pendingCount - 1
      var state = point.allKept
      state.fates[last] = .torn(count: 100 * round, rest: round % 2 == 0 ? .extended : .absent)
      disk = point.disk(state)
    }
    #expect(try resume(disk).2.entries.map(\.payload) == expected)
  }

  @Test("no file is begun in an old one: each is created, and takes a name that is free")
  func filesAreNeverRecycled() throws {
    let disk = SimulatedDisk()
    try workload(disk)
    var names: Set<String> = []
    for call in disk.trace {
      if call.kind == .create {
        #expect(call.path.hasSuffix(".tmp") || call.path.hasSuffix(".lock"), "\(call)")
      } else if call.kind == .rename {
        #expect(call.path.hasSuffix(".tmp"), "\(call)")
        // Only a segment with a torn end is replaced, by its own good part.
        let isNew = names.insert(call.newPath ?? "").inserted
        #expect(isNew || call.newPath == segmentPath(7), "\(call)")
      }
    }
    #expect(names.count == 6)
  }

  @Test("what an older file left behind the end is torn, however valid it was there")
  func staleBytesAreNotRecords() throws {
    func log(_ seed: UInt64, _ count: Int) throws -> (SimulatedDisk, LogWriter) {
      let disk = SimulatedDisk(seed: seed)
      let directory = try open(disk)
      let writer = try newLog(directory)
      for number in 0..<count { try writer.append(noise(50, seed: UInt64(number))) }
      directory.close()
      return (disk, writer)
    }
    // The same payloads at the same places; only the salt is another.
    let (old, _) = try log(1, 8)
    let (disk, writer) = try log(2, 3)
    let stale = try #require(old.contents(of: segmentPath(1)))
    let end = Int(writer.segmentByteCount)
    #expect(end < stale.count)
    disk.overwrite(segmentPath(1), at: end, with: Array(stale[end...]))
    let found = try #require(try read(disk))
    #expect(found.entries.count == 3)
    #expect(found.end.torn != nil && found.end.torn?.lastSurvivor == nil)
  }
}
