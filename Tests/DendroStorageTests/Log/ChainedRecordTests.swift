import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// The fast reading of records that are chained to the one before gives what the usual one gives.
@Suite("Chained records")
struct ChainedRecordTests {
  @Test("it takes every record with writes but those at the end of the file, and no flipped bit")
  func flippedBits() throws {
    let disk = try log(recordCount: 20)
    let taken = try compareReadings(disk)
    #expect(taken >= 18)
    let bitCount = try #require(disk.contents(of: segmentPath(1))).count * 8
    for bit in 64 * 8..<bitCount {
      disk.flipBit(bit, of: segmentPath(1))
      #expect(try compareReadings(disk) <= taken, "bit \(bit)")
      disk.flipBit(bit, of: segmentPath(1))
    }
  }

  @Test("the same of logs of any records", arguments: Scale.seeds(20))
  func random(seed: UInt64) throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    var generator = SeededGenerator(seed: seed)
    for number in 0..<200 {
      let byteCount = 1 + generator.below(generator.below(20) == 0 ? 300_000 : 400)
      let content =
        generator.below(3) == 0
        ? noise(byteCount, seed: UInt64(number)) : payload(generator.below(40), byteCount)
      try writer.append(
        content, count: 1 + generator.below(min(3, byteCount)), durably: generator.below(2) == 0)
      if generator.below(60) == 0 { try writer.roll(time: 1_704_067_200_000) }
    }
    try writer.close()
    directory.close()
    #expect(try compareReadings(disk) > 0)
  }

  /// Records of every form: short, raw and compressed, of one write and of two.
  private func log(recordCount: Int) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<recordCount {
      let content =
        number % 5 == 3 ? noise(15, seed: UInt64(number)) : payload(number % 7, 20 + number)
      // The fifth of each ten waits for no synchronize, so that the next one is full.
      try writer.append(content, count: 1 + number % 4 / 3, durably: number % 10 != 5)
    }
    try writer.close()
    directory.close()
    return disk
  }

  /// Reads the first segment in both ways, up to the first record that is wrong, and compares what they give.
  ///
  /// - Returns: how many records the fast one has taken.
  private func compareReadings(_ disk: SimulatedDisk) throws -> Int {
    let directory = try openReadOnly(disk)
    defer { directory.close() }
    let name = SegmentName(firstLSN: LogSequenceNumber(1))
    let fast = try SegmentReader(name, in: directory)
    let usual = try SegmentReader(name, in: directory)
    var (offset, lsn) = (UInt64(SegmentHeader.byteCount), LogSequenceNumber.zero)
    var checksum = usual.header.checksum
    var taken = 0
    while let record = try usual.record(at: offset).record {
      let follows = record.firstLSN == lsn.next && record.header.follows(checksum)
      let payload = try? usual.payload(of: record).get().map { $0 }
      let found = try fast.chainedRecord(at: offset, after: lsn, checksum)
      guard follows, let payload else {
        #expect(found == nil)
        break
      }
      if let found {
        #expect(found.0 == record && record.kind == .writes)
        #expect(found.1.map { $0 } == payload)
        taken += 1
      } else {
        // The last bytes of a file are left to the usual reading, and what does not end in the window.
        #expect(
          record.kind != .writes || record.header.storedByteCount > 200
            || usual.byteCount - offset < RecordHeader.byteCountMax)
        #expect(try fast.payload(of: record).get().map { $0 } == payload)
      }
      (offset, lsn, checksum) = (record.endOffset, record.lastLSN, record.checksum)
    }
    return taken
  }
}
