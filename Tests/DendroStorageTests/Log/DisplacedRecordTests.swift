import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// Bytes that are removed from the last segment, or put into it: the records behind stand elsewhere than
/// they were written, and no crash does that.
@Suite("Displaced records")
struct DisplacedRecordTests {
  enum Form: CaseIterable {
    case raw
    case compressed
    /// All but the first one.
    case short
    case shortCompressed

    func payload(_ number: Int) -> [UInt8] {
      switch self {
      case .raw: noise(50, seed: UInt64(number))
      case .compressed: DendroStorageTests.payload(2 * number, 200)
      case .short: [0, 1, 0] + noise(50, seed: UInt64(number))
      case .shortCompressed: DendroStorageTests.payload(2 * number + 1, 120)
      }
    }

    var isCompressed: Bool { self == .compressed || self == .shortCompressed }
  }

  private static func log(closes: Bool, _ form: Form) throws -> (SimulatedDisk, [Int]) {
    let disk = SimulatedDisk(seed: 2)
    let directory = try open(disk)
    let writer = try newLog(directory)
    var ends = [64]
    for number in 1...5 {
      try writer.append(form.payload(number))
      ends.append(Int(writer.segmentByteCount))
    }
    if closes { try writer.close() }
    directory.close()
    return (disk, ends)
  }

  private static func judge(_ disk: SimulatedDisk) throws -> (isCorrupt: Bool, last: UInt64?) {
    do {
      return (false, try read(disk)?.lastLSN)
    } catch {
      guard error.isDamage else { throw error }
      return (true, nil)
    }
  }

  private static func removing(_ range: Range<Int>, of disk: SimulatedDisk) throws -> SimulatedDisk
  {
    let changed = disk.copy()
    var bytes = try #require(disk.contents(of: segmentPath(1)))
    bytes.removeSubrange(range)
    changed.overwrite(segmentPath(1), at: 0, with: bytes)
    changed.resize(segmentPath(1), to: bytes.count)
    return changed
  }

  @Test("a record that was displaced by an unknown distance is found where a window ends within it")
  func atTheEndOfAWindow() throws {
    let disk = SimulatedDisk(seed: 3)
    let directory = try open(disk)
    defer { directory.close() }
    let writer = try newLog(directory)
    var ends = [64]
    while ends.count < 800 {
      try writer.append(noise(1000, seed: UInt64(ends.count)))
      ends.append(Int(writer.segmentByteCount))
    }
    try writer.close()
    // All records but the first are destroyed up to one that ends in the second window, and whose header does not.
    let window = SegmentReader.windowByteCount
    let record = try #require(ends.lastIndex { $0 < window - 300 })
    var bytes = try #require(disk.contents(of: segmentPath(1)))
    let end = try #require(bytes.lastIndex { $0 != 0 }) + 1
    for index in ends[1]..<ends[record] { bytes[index] = 0xAA }
    let inserted = window - 300 - ends[record]
    bytes.insert(contentsOf: [UInt8](repeating: 0xAA, count: inserted), at: ends[record])
    let hurt = disk.copy()
    hurt.resize(segmentPath(1), to: bytes.count)
    hurt.overwrite(segmentPath(1), at: 0, with: bytes)
    #expect(try Self.judge(hurt).isCorrupt)
    let reading = try open(hurt)
    defer { reading.close() }
    let reader = try SegmentReader(SegmentName(firstLSN: LogSequenceNumber(1)), in: reading)
    let found = try reader.search(from: UInt64(ends[1]), after: LogSequenceNumber(1))
    #expect(found.durableUpTo != nil)
    #expect(found.contentEnd == UInt64(end + inserted))
  }

  @Test(
    "after an orderly close every missing byte before the last record's end is noticed",
    arguments: Form.allCases)
  func removed(form: Form) throws {
    let (disk, ends) = try Self.log(closes: true, form)
    for start in stride(from: ends[0], to: ends[5], by: 3) {
      for count in [1, 2, 17, 60, 150] where start + count <= ends[5] {
        let hurt = try Self.removing(start..<start + count, of: disk)
        #expect(try Self.judge(hurt).isCorrupt, "\(count) bytes from \(start)")
        // Tools call it damage as well.
        if start % 4 == 0 {
          #expect(try !LogCursorTests.scan(hurt).damage.isEmpty, "\(count) bytes from \(start)")
        }
      }
    }
    // Whole records.
    for first in 0..<5 {
      for last in first + 1...5 {
        let hurt = try Self.removing(ends[first]..<ends[last], of: disk)
        #expect(try Self.judge(hurt).isCorrupt, "records \(first) up to \(last)")
      }
    }
  }

  @Test("after a kill two records in a row, or a raw one, are enough", arguments: Form.allCases)
  func killed(form: Form) throws {
    let (disk, ends) = try Self.log(closes: false, form)
    for start in stride(from: ends[0], to: ends[form.isCompressed ? 2 : 3], by: 5) {
      let hurt = try Self.removing(start..<start + 3, of: disk)
      #expect(try Self.judge(hurt).isCorrupt, "3 bytes from \(start)")
    }
  }

  @Test("bytes put in are noticed likewise", arguments: [Form.compressed, .shortCompressed])
  func inserted(form: Form) throws {
    let (disk, ends) = try Self.log(closes: true, form)
    let bytes = try #require(disk.contents(of: segmentPath(1)))
    for place in stride(from: ends[0], through: ends[4], by: 7) {
      for count in [1, 40] {
        let hurt = disk.copy()
        hurt.overwrite(
          segmentPath(1), at: place, with: noise(count, seed: 9) + Array(bytes[place...]))
        #expect(try Self.judge(hurt).isCorrupt, "\(count) bytes at \(place)")
      }
    }
  }

  @Test("undetectable damage: whole records cut off the end, with the idle record behind them")
  func cutOff() throws {
    let (disk, ends) = try Self.log(closes: true, .compressed)
    for count in 0..<5 {
      let hurt = disk.copy()
      hurt.resize(segmentPath(1), to: ends[count])
      let found = try Self.judge(hurt)
      #expect(!found.isCorrupt && found.last == UInt64(count))
    }
  }

  @Test("a record that a disk also wrote behind the end proves nothing that is not there")
  func copied() throws {
    let (disk, ends) = try Self.log(closes: false, .raw)
    let bytes = try #require(disk.contents(of: segmentPath(1)))
    for number in 0..<5 {
      let hurt = disk.copy()
      hurt.overwrite(
        segmentPath(1), at: bytes.count, with: Array(bytes[ends[number]..<ends[number + 1]]))
      let found = try Self.judge(hurt)
      #expect(!found.isCorrupt && found.last == 5)
    }
  }
}
