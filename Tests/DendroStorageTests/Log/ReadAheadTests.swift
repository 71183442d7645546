import DendroPlatform
import DendroTestSupport
import DendroTesting
import Synchronization
import Testing

@testable import DendroStorage

/// A log that is read at two places at once gives what it gives otherwise.
@Suite("Reading ahead")
struct ReadAheadTests {
  @Test("the part is passed over but for the records that are wanted")
  func part() throws {
    let disk = try log(sessionCount: 6, seed: 1)
    let all = try reading(disk, nil)
    #expect(all.end.hasPrefix("LSN"))
    let none = Filter { _ in false }
    let few = try reading(disk, none)
    #expect(few.end == all.end)
    // From the session behind two fifths on, of which the walk reads the last one itself.
    #expect(none.count > all.records.count / 3 && none.count < all.records.count * 2 / 3)
    #expect(few.records.count <= all.records.count * 2 / 3)
    let some = Filter { $0.firstLSN.rawValue % 3 == 0 }
    let found = try reading(disk, some)
    #expect(found.end == all.end)
    #expect(
      found.records.filter { $0.firstLSN % 3 == 0 } == all.records.filter { $0.firstLSN % 3 == 0 })
    let every = Filter { _ in true }
    #expect(try reading(disk, every) == all)
  }

  @Test("the end and every error are the same, whatever bit is flipped")
  func flippedBits() throws {
    let disk = try log(sessionCount: 4, seed: 2)
    let byteCount = try #require(disk.contents(of: segmentPath(1))).count
    for byte in 0..<byteCount {
      let bit = byte * 8 + byte % 8
      disk.flipBit(bit, of: segmentPath(1))
      #expect(
        try reading(disk, Filter { _ in true }) == reading(disk, nil), "bit \(bit)")
      disk.flipBit(bit, of: segmentPath(1))
    }
  }

  @Test("the same wherever the file ends, and if zeros follow", arguments: [0, 5_000])
  func cuts(zeros: Int) throws {
    let disk = try log(sessionCount: 4, seed: 3)
    let byteCount = try #require(disk.contents(of: segmentPath(1))).count
    for count in (SegmentHeader.byteCount...byteCount).reversed() {
      disk.resize(segmentPath(1), to: count)
      disk.resize(segmentPath(1), to: count + zeros)
      #expect(
        try reading(disk, Filter { _ in true }) == reading(disk, nil), "\(count) bytes")
    }
  }

  @Test("a part that does not follow the record before it is read by the walk, which says so")
  func detached() throws {
    // Two logs of one salt, whose records stand at the same offsets: the second half of one behind the first of the
    // other is valid by itself.
    let disk = try log(sessionCount: 6, seed: 4, noiseSeed: 1)
    let other = try log(sessionCount: 6, seed: 4, noiseSeed: 2)
    let otherBytes = try #require(other.contents(of: segmentPath(1)))
    let starts = try restarts(disk)
    #expect(try starts == restarts(other))
    let count = otherBytes.count - SegmentHeader.byteCount
    let start = try #require(starts.first { $0 >= SegmentHeader.byteCount + count * 2 / 5 })
    disk.overwrite(segmentPath(1), at: 0, with: Array(otherBytes[..<start]))
    let filter = Filter { _ in true }
    #expect(try reading(disk, filter) == reading(disk, nil))
    #expect(filter.count > 0)
  }

  @Test("a call that fails ahead of the walk changes nothing")
  func failures() throws {
    let disk = try log(sessionCount: 6, seed: 6)
    let all = try reading(disk, nil)
    var unharmedCount = 0
    for number in 1...20 {
      disk.inject(
        DiskFault(.error(EMFILE), of: [.open, .read], at: number, pathPart: ".log"))
      let found = try reading(disk, Filter { _ in true })
      disk.removeFaults()
      // The walk opens the segment, and asks it for its database.
      if number <= 4 || found.end != all.end {
        #expect(number <= 4 && found.end.contains("log"), "call \(number): \(found.end)")
      } else {
        #expect(found == all, "call \(number)")
        unharmedCount += 1
      }
    }
    #expect(unharmedCount == 16)
  }

  @Test("of writes that a checkpoint has, none is visited")
  func checkpoint() throws {
    let disk = try log(sessionCount: 6, seed: 5)
    let last = try #require(try reading(disk, nil).records.last?.firstLSN)
    for lsn in 0...last {
      #expect(
        try reading(disk, Filter { _ in true }, after: lsn) == reading(disk, nil, after: lsn),
        "\(lsn)")
    }
  }

  @Test("the same of random logs of several segments", arguments: Scale.seeds(20))
  func random(seed: UInt64) throws {
    let disk = try log(sessionCount: 8, seed: seed, rolls: true)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<20 {
      let segments = disk.names(in: root).filter { $0.hasSuffix(".log") }
      let path = root + "/" + segments[generator.below(segments.count)]
      let bit = generator.below(try #require(disk.contents(of: path)).count * 8)
      #expect(try reading(disk, Filter { _ in true }) == reading(disk, nil))
      disk.flipBit(bit, of: path)
      #expect(try reading(disk, Filter { _ in true }) == reading(disk, nil), "bit \(bit)")
      disk.flipBit(bit, of: path)
    }
  }

  // MARK: -

  /// Records of every form, written in sessions: decompression can begin with the first of each.
  ///
  /// - Parameters:
  ///   - sessionCount: how many.
  ///   - seed: of the disk, and hence of the log's salt, and of the records.
  ///   - noiseSeed: if given, nothing can be compressed, and another one gives as many other bytes.
  ///   - rolls: whether there are several segments.
  private func log(
    sessionCount: Int, seed: UInt64, noiseSeed: UInt64? = nil, rolls: Bool = false
  ) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: seed)
    var generator = SeededGenerator(seed: seed)
    for session in 0..<sessionCount {
      let directory: DatabaseDirectory
      let writer: LogWriter
      if session == 0 {
        directory = try open(disk, create: true)
        writer = try newLog(directory)
      } else {
        (directory, writer, _) = try resume(disk)
      }
      for number in 0..<12 {
        let byteCount = 4 + generator.below(60)
        let number = number + 12 * session
        let isNoise = generator.below(4) == 0 || noiseSeed != nil
        let content =
          isNoise
          ? noise(byteCount, seed: UInt64(number) + 1_000 * (noiseSeed ?? 0))
          : payload(number % 9, byteCount)
        try writer.append(
          content, count: 1 + generator.below(3), durably: generator.below(3) > 0)
        if rolls, generator.below(20) == 0 { try writer.roll(time: 1_704_067_200_000) }
      }
      try writer.close()
      directory.close()
    }
    return disk
  }

  private struct Reading: Equatable {
    var records: [Entry] = []
    /// The log's end or the error, in words.
    var end = ""
    /// The time of the last write that was passed over.
    var passedOverTime: Int64?
  }

  /// - Parameter filter: of the thread that reads ahead; nil to read at one place.
  private func reading(
    _ disk: SimulatedDisk, _ filter: Filter?, after checkpoint: UInt64 = 0
  ) throws -> Reading {
    let directory = try openReadOnly(disk)
    defer { directory.close() }
    var found = Reading()
    let parallel = filter.map { filter in
      var parallel = ParallelReading(
        run: { body in
          body()
          return {}
        },
        makeFilter: { filter })
      parallel.byteCountMin = 0
      return parallel
    }
    do throws(StorageError) {
      var end = try LogReader.read(
        directory, after: LogSequenceNumber(checkpoint), parallel: parallel
      ) { (record, payload) throws(StorageError) in
        found.records.append(
          Entry(
            firstLSN: record.firstLSN.rawValue, count: record.count, time: record.baseTime,
            payload: Array(payload)))
      }
      found.passedOverTime = end?.passedOverTime
      end?.passedOverTime = nil
      found.end = end.map { "LSN \($0.lastLSN): \($0)" } ?? "no log"
    } catch {
      found.end = error.description
    }
    return found
  }

  private func restarts(_ disk: SimulatedDisk) throws -> [Int] {
    let directory = try openReadOnly(disk)
    defer { directory.close() }
    return try SegmentOutline(SegmentName(firstLSN: LogSequenceNumber(1)), in: directory)
      .restarts.map { Int($0.offset) }
  }

  private final class Filter: RecordFilter, Sendable {
    private let isWanted: @Sendable (RecordInfo) -> Bool
    private let calls = Mutex(0)
    private let time = Mutex(Int64.min)

    init(_ isWanted: @escaping @Sendable (RecordInfo) -> Bool) { self.isWanted = isWanted }

    /// How many records it was asked about.
    var count: Int { calls.value }

    func wants(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) -> Bool {
      calls.withLock { $0 += 1 }
      if isWanted(record) { return true }
      time.withLock { $0 = max($0, record.baseTime) }
      return false
    }

    var lastTime: Int64 { time.value }
  }
}
