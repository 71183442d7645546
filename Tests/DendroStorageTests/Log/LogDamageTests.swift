import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// Damage of every kind, at every place: either what was written is read, or a clear error names the
/// place, or the end is taken for torn if a crash could have left it so. Never other payloads.
@Suite struct LogDamageTests {
  /// Three segments: two sealed, the last of some records, all durable but for the last one's idle record.
  struct Sample {
    let disk = SimulatedDisk(seed: 3)
    var entries: [Entry] = []

    init(segments: Int = 3, marked: Bool = false) throws {
      let directory = try open(disk)
      let writer = try newLog(directory)
      for segment in 0..<segments {
        for number in 0..<4 {
          let payload =
            number == 2
            ? (segment == 1 ? [0, 1, 0] : []) + noise(25, seed: UInt64(segment))
            : payload(segment * 10 + number)
          try writer.append(payload)
        }
        if segment < segments - 1 { try writer.roll(time: 1_704_067_200_000) }
      }
      if marked { try writer.close() }
      directory.close()
      entries = try #require(try read(disk)).entries
    }
  }

  /// The outcome of reading a damaged log: a prefix of `entries`, or corruption.
  func judge(
    _ disk: SimulatedDisk, _ entries: [Entry], lastFrom: Int, _ what: @autoclosure () -> String
  ) throws -> String {
    do throws(StorageError) {
      guard let log = try read(disk) else { return "none" }
      #expect(Array(entries.prefix(log.entries.count)) == log.entries, "\(what())")
      #expect(log.entries.count >= lastFrom, "\(what())")
      return log.entries.count == entries.count ? "whole" : "cut"
    } catch {
      if let problem = LogCursor.Problem(error) {
        #expect(
          problem.path.hasPrefix(root) && !problem.expected.isEmpty && !problem.found.isEmpty,
          "\(what())")
        if let file = disk.contents(of: problem.path) {
          #expect(problem.offset <= UInt64(file.count), "\(what()) \(error)")
        }
        return "corrupt"
      }
      if case .unsupportedVersion = error { return "version" }
      Issue.record("\(what()): \(error)")
      return "other"
    }
  }

  @Test("every bit flipped in every segment: harmless or refused with its place")
  func everyBit() throws {
    let sample = try Sample()
    var outcomes: [String: Int] = [:]
    for first in [1, 5, 9] as [UInt64] {
      let path = segmentPath(first)
      let size = try #require(sample.disk.contents(of: path)).count
      for bit in 0..<(size * 8) {
        sample.disk.flipBit(bit, of: path)
        // Only the very last record of the log may be taken for torn: nothing proves it durable.
        let outcome = try judge(
          sample.disk, sample.entries, lastFrom: sample.entries.count - 1, "bit \(bit) of \(path)")
        outcomes[outcome, default: 0] += 1
        sample.disk.flipBit(bit, of: path)
      }
    }
    #expect(outcomes["other"] == nil && outcomes["none"] == nil)
    #expect(outcomes["corrupt", default: 0] > 0 && outcomes["cut", default: 0] > 0)
    // A bad seal is what a crash in the roll leaves; its successor confirms the end all the same.
    #expect(outcomes["whole", default: 0] > 0)
  }

  @Test("every bit flipped in a closed log: no acknowledged write is ever cut")
  func everyBitOfAClosedLog() throws {
    let sample = try Sample(segments: 1, marked: true)
    let path = segmentPath(1)
    let size = try #require(sample.disk.contents(of: path)).count
    for bit in 0..<(size * 8) {
      sample.disk.flipBit(bit, of: path)
      let outcome = try judge(
        sample.disk, sample.entries, lastFrom: sample.entries.count, "bit \(bit)")
      #expect(outcome != "cut")
      sample.disk.flipBit(bit, of: path)
    }
  }

  @Test("the last segment cut at every byte gives a prefix")
  func everyTruncationOfLast() throws {
    let sample = try Sample(segments: 2)
    let path = segmentPath(5)
    let whole = try #require(sample.disk.contents(of: path))
    for size in 0..<whole.count {
      let disk = sample.disk.copy()
      disk.resize(path, to: size)
      _ = try judge(disk, sample.entries, lastFrom: 4, "cut at \(size)")
      if size >= 64 {
        // And the log continues from there.
        let (directory, writer, log) = try resume(disk)
        try writer.append(bytes("after"))
        try writer.close()
        #expect(
          try read(directory)?.entries.map(\.payload) == log.entries.map(\.payload) + [
            bytes("after")
          ])
      }
    }
  }

  @Test("an earlier segment cut at every byte is refused, or complete but for its seal")
  func everyTruncationOfEarlier() throws {
    let sample = try Sample(segments: 2)
    let path = segmentPath(1)
    let whole = try #require(sample.disk.contents(of: path))
    for size in 0..<whole.count {
      let disk = sample.disk.copy()
      disk.resize(path, to: size)
      let outcome = try judge(
        disk, sample.entries, lastFrom: sample.entries.count, "cut at \(size)")
      #expect(outcome != "cut")
    }
  }

  @Test("a zeroed sector in the middle is corrupt, not the end")
  func zeroedSectorInTheMiddle() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<200 { try writer.append(noise(60, seed: UInt64(number))) }
    directory.close()
    let size = try #require(disk.contents(of: segmentPath(1))).count
    for sector in 1..<(size / 512 - 1) {
      let hurt = disk.copy()
      hurt.overwrite(segmentPath(1), at: sector * 512, with: Array(repeating: 0, count: 512))
      #expect(throws: StorageError.self, "sector \(sector)") { try read(hurt) }
    }
  }

  @Test("zeros in place of the last records of an earlier segment are corrupt, not its end")
  func zeroedEndOfAnEarlierSegment() throws {
    let sample = try Sample(segments: 2)
    let path = segmentPath(1)
    let size = try #require(sample.disk.contents(of: path)).count
    // The seal has 28 bytes; that it is missing is what a crash in a roll leaves.
    for (count, outcome) in [
      (28, "whole"), (29, "corrupt"), (100, "corrupt"), (size - 64, "corrupt"),
    ] {
      let disk = sample.disk.copy()
      disk.overwrite(path, at: size - count, with: Array(repeating: 0, count: count))
      #expect(
        try judge(disk, sample.entries, lastFrom: sample.entries.count, "\(count) zeros")
          == outcome,
        "\(count) zeros")
    }
  }

  @Test("a flipped bit in an unacknowledged record: cut, kept in a file of its own, and reported")
  func flippedBitInUnacknowledgedTail() throws {
    let sample = try Sample(segments: 1)
    let path = segmentPath(1)
    let (directory, writer, _) = try resume(sample.disk)
    let start = Int(writer.segmentByteCount)
    try writer.append(noise(50, seed: 5), durably: false)
    let end = Int(writer.segmentByteCount)
    directory.close()
    for bit in stride(from: start * 8, to: end * 8, by: 7) {
      let disk = sample.disk.copy()
      disk.flipBit(bit, of: path)
      let hurt = try #require(disk.contents(of: path))
      let (directory, _, log) = try resume(disk)
      #expect(log.entries == sample.entries, "bit \(bit)")
      #expect(log.end.torn?.firstLSN == LogSequenceNumber(5), "bit \(bit)")
      #expect(log.end.torn?.offset == UInt64(start), "bit \(bit)")
      let name = try #require(try directory.contents().tornFiles.first)
      #expect(disk.contents(of: root + "/" + name) == Array(hurt[start..<end]), "bit \(bit)")
      #expect(disk.contents(of: path)?.count == start, "bit \(bit)")
    }
  }

  @Test("zeros behind the last record are the end, other bytes a torn tail that is quarantined")
  func zerosAndOtherBytesBehindTheEnd() throws {
    let sample = try Sample(segments: 1)
    let path = segmentPath(1)
    let size = try #require(sample.disk.contents(of: path)).count
    let zeros = sample.disk.copy()
    zeros.resize(path, to: size + 100_000)
    #expect(try read(zeros)?.end.torn == nil)
    #expect(try read(zeros)?.entries == sample.entries)

    let torn = sample.disk.copy()
    torn.overwrite(path, at: size + 700, with: bytes("rest"))
    torn.resize(path, to: size + 5000)
    let end = try #require(try read(torn)).end
    #expect(end.torn?.offset == UInt64(size) && end.torn?.byteCount == 704)
    #expect(end.torn?.firstLSN == LogSequenceNumber(5) && end.torn?.isUndecidable == false)
    let (directory, writer, _) = try resume(torn)
    let name = try #require(try directory.contents().tornFiles.first)
    #expect(torn.contents(of: root + "/" + name) == Array(repeating: 0, count: 700) + bytes("rest"))
    try writer.append(bytes("next"))
    directory.close()
    #expect(try read(torn)?.entries.count == 5)
    #expect(try read(torn)?.end.torn == nil)
  }

  @Test("bytes cut twice at the same place are both kept")
  func tornTwice() throws {
    let sample = try Sample(segments: 1)
    let path = segmentPath(1)
    let size = try #require(sample.disk.contents(of: path)).count
    for text in ["one", "two", "two", "three"] {
      sample.disk.overwrite(path, at: size, with: bytes(text))
      let (directory, _, _) = try resume(sample.disk)
      directory.close()
    }
    let directory = try open(sample.disk)
    let names = try directory.contents().tornFiles
    #expect(
      names.map { sample.disk.contents(of: root + "/" + $0) }
        == [bytes("one"), bytes("two"), bytes("three")])
    #expect(try directory.contents().foreign == [])
  }

  @Test(
    "a lost sector with whole records behind it: torn if not proven durable, else corrupt"
  )
  func survivors() throws {
    for acknowledged in [false, true] {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let writer = try newLog(directory)
      try writer.append(payload(1))
      let hole = writer.segmentByteCount
      for number in 2...5 { try writer.append(payload(number), durably: acknowledged) }
      directory.close()
      disk.overwrite(segmentPath(1), at: Int(hole), with: Array(repeating: 0, count: 30))
      if acknowledged {
        #expect(throws: StorageError.self) { try read(disk) }
      } else {
        let (directory, writer, log) = try resume(disk)
        #expect(log.lastLSN == 1)
        #expect(log.end.torn?.lastSurvivor == LogSequenceNumber(5))
        #expect(log.end.torn?.isUndecidable == true)
        try writer.append(bytes("again"))
        #expect(try read(directory)?.entries.map(\.payload) == [payload(1), bytes("again")])
      }
    }
  }
}
