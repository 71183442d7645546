import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

@Suite struct LogTests {
  @Test("what was appended is read back, across closing and opening")
  func roundTrip() throws {
    let disk = SimulatedDisk()
    var expected: [Entry] = []
    var directory = try open(disk)
    var writer = try newLog(directory)
    for session in 0..<4 {
      for number in 0..<5 {
        let payload = payload(session * 10 + number, 1 + number * 37)
        let first = writer.nextLSN.rawValue
        try writer.append(payload, count: number == 4 ? 3 : 1, durably: number % 2 == 0)
        expected.append(
          Entry(
            firstLSN: first, count: number == 4 ? 3 : 1,
            time: 1_704_067_200_000 + Int64(first), payload: payload))
      }
      try writer.close()
      directory.close()
      let (next, resumed, log) = try resume(disk)
      #expect(log.entries == expected)
      #expect(log.end.endsWithIdleRecord && log.end.torn == nil)
      #expect(log.end.lastLSN == log.end.durableUpTo)
      (directory, writer) = (next, resumed)
    }
  }

  @Test("an empty directory has no log; a closed new database has an empty one")
  func empty() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    #expect(try read(directory) == nil)
    let writer = try newLog(directory)
    try writer.close()
    let log = try #require(try read(directory))
    #expect(log.entries.isEmpty && log.lastLSN == 0 && log.end.torn == nil)
  }

  @Test("a small durable write takes 48 bytes of log or less")
  func smallRecords() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<1000 { try writer.append(noise(16, seed: UInt64(number))) }
    #expect(writer.storedByteCount <= 48 * 1000)
  }

  @Test("one write call carries all that is staged; one synchronize all that was written")
  func groupCommit() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    let before = disk.operationCount
    for number in 0..<100 { try writer.stage(payload(number)) }
    try writer.write()
    try writer.synchronize()
    try writer.synchronize()
    let calls = disk.trace[before...]
    #expect(calls.filter { $0.kind == .write }.count == 1)
    #expect(calls.filter { $0.kind == .synchronize }.count == 1)
    #expect(writer.durableUpTo == LogSequenceNumber(100))
  }

  @Test("reading after a checkpoint visits what is behind it, and refuses a gap before it")
  func afterCheckpoint() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<6 {
      try writer.append(payload(number))
      if number % 2 == 1 { try writer.roll(time: 5) }
    }
    #expect(try read(directory, after: 3)?.entries.map(\.firstLSN) == [4, 5, 6])
    #expect(try read(directory, after: 6)?.entries == [])
    #expect(throws: StorageError.self) { try read(directory, after: 7) }
    try directory.removeSegment(SegmentName(firstLSN: LogSequenceNumber(1)))
    #expect(try read(directory, after: 2)?.entries.map(\.firstLSN) == [3, 4, 5, 6])
    #expect(throws: StorageError.self) { try read(directory, after: 1) }
    #expect(throws: StorageError.self) { try read(directory) }
  }

  @Test("segments roll: sealed, linked, and without preallocated space")
  func roll() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory, options: LogOptions())
    try writer.roll(time: 0)
    #expect(try directory.contents().segments.count == 1, "an empty segment is not rolled")
    var expected: [[UInt8]] = []
    for number in 0..<30 {
      expected.append(payload(number))
      try writer.append(payload(number), durably: number % 3 != 0)
      if number % 7 == 6 { try writer.roll(time: Int64(number)) }
    }
    try writer.close()
    let log = try #require(try read(directory))
    #expect(log.entries.map(\.payload) == expected)
    #expect(log.end.segments.count == 5 && log.end.unsealed == nil)
    for segment in log.end.segments {
      #expect(segment.byteCount < 64 * 1024)
    }
  }

  @Test("an idle record says that the last batch is durable, once")
  func idleRecord() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.writeIdleRecord()
    #expect(writer.segmentByteCount == 64, "there is nothing to say yet")
    try writer.append(payload(1))
    try writer.writeIdleRecord()
    let size = writer.segmentByteCount
    try writer.writeIdleRecord()
    #expect(writer.segmentByteCount == size)
    #expect(try read(directory)?.end.endsWithIdleRecord == true)
    // Now damage of the write is known to be damage.
    disk.flipBit(8 * 64 + 8 * 30, of: segmentPath(1))
    #expect(throws: StorageError.self) { try read(directory) }
  }

  @Test("a record over the limit is refused and nothing is staged")
  func tooLarge() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    let huge = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Compression.rawByteLimit + 1, alignment: 1)
    defer { huge.deallocate() }
    #expect(throws: StorageError.self) {
      try writer.stage(
        UnsafeRawBufferPointer(huge), firstLSN: LogSequenceNumber(1), count: 1, baseTime: 0)
    }
    try writer.append(payload(1))
    #expect(try read(directory)?.entries.count == 1)
  }

  @Test("times before the segment's base time, and far off, come back")
  func times() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    let times: [Int64] = [0, -1, .min, .max, 1_704_067_200_000, 1]
    for (index, time) in times.enumerated() {
      try [UInt8(7)].withUnsafeBytes { bytes in
        try writer.stage(
          bytes, firstLSN: LogSequenceNumber(UInt64(index + 1)), count: 1, baseTime: time)
      }
    }
    try writer.write()
    #expect(try read(directory)?.entries.map(\.time) == times)
  }
}
