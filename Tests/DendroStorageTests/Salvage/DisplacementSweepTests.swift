import DendroTesting
import Testing

@testable import DendroStorage

/// Removes bytes from a log and inserts bytes into it, at every place.
@Suite("Salvage: bytes removed, inserted and moved")
struct DisplacementSweepTests {
  private struct Sample {
    let disk = SimulatedDisk(seed: 3)
    var bytes: [UInt8] = []
    var records: [RecordInfo] = []
  }

  /// Records of every kind, each of which proves those before it durable.
  private static func sample() throws -> Sample {
    try sample { number in
      if number == 4 { return [0, 1, 0, 2, 1, 97, 1] }
      // Without anything that a payload before it has.
      return (0..<30).map { UInt8(truncatingIfNeeded: number * 31 + $0 * $0 * 7) }
    }
  }

  private static func sample(_ payload: (Int) -> [UInt8]) throws -> Sample {
    var sample = Sample()
    let directory = try open(sample.disk)
    let writer = try newLog(directory)
    for number in 0..<8 { try writer.append(payload(number)) }
    try writer.close()
    directory.close()
    sample.bytes = try #require(sample.disk.contents(of: segmentPath(1)))
    let cursor = LogCursor(try openReadOnly(sample.disk))
    while try cursor.step({ item in
      if case .record(let record, _, _) = item { sample.records.append(record) }
    }) {}
    return sample
  }

  /// The first writes of the records that salvage reads.
  private static func saved(_ bytes: [UInt8], _ sample: Sample) throws -> [UInt64] {
    let disk = sample.disk.copy()
    disk.resize(segmentPath(1), to: bytes.count)
    disk.overwrite(segmentPath(1), at: 0, with: bytes)
    let directory = try openReadOnly(disk)
    defer { directory.close() }
    let salvage = try LogSalvage(directory, checkpoints: [])
    var saved: [UInt64] = []
    _ = try salvage.read { item in
      if case .record(let record, _, _?) = item { saved.append(record.firstLSN.rawValue) }
    }
    return saved
  }

  @Test("each record that is whole is read, wherever it stands", arguments: [1, 100])
  func removed(byteCount: Int) throws {
    let sample = try Self.sample()
    for offset in SegmentHeader.byteCount..<sample.bytes.count {
      let hit = offset..<min(offset + byteCount, sample.bytes.count)
      var bytes = sample.bytes
      bytes.removeSubrange(hit)
      try check(try Self.saved(bytes, sample), hit, sample)
    }
  }

  @Test(
    "each record that is whole is read behind bytes that do not belong there",
    arguments: [5])
  func inserted(byteCount: Int) throws {
    let sample = try Self.sample()
    for offset in SegmentHeader.byteCount..<sample.bytes.count {
      var bytes = sample.bytes
      bytes.insert(contentsOf: repeatElement(0xA5, count: byteCount), at: offset)
      try check(try Self.saved(bytes, sample), offset..<offset, sample)
    }
  }

  @Test(
    "of two records that have changed places none is lost, and none that was compressed behind them",
    arguments: DisplacedRecordTests.Form.allCases, [false, true])
  func exchanged(form: DisplacedRecordTests.Form, areEqual: Bool) throws {
    let sample = try Self.sample { number in
      // Records of equal size, or of any: what stands between them is displaced then.
      let payload = form.payload(areEqual ? 10 + number : number)
      return areEqual ? payload : payload + payload.prefix(number)
    }
    let writes = sample.records.filter { $0.kind == .writes }
    for (index, one) in writes.enumerated() {
      for other in writes[(index + 1)...] {
        let range = Int(one.offset)..<Int(one.endOffset)
        let otherRange = Int(other.offset)..<Int(other.endOffset)
        var bytes = Array(sample.bytes[..<range.lowerBound])
        bytes += sample.bytes[otherRange]
        bytes += sample.bytes[range.upperBound..<otherRange.lowerBound]
        bytes += sample.bytes[range]
        bytes += sample.bytes[otherRange.upperBound...]
        let saved = try Self.saved(bytes, sample)
        #expect(
          saved == writes.map(\.firstLSN.rawValue),
          "writes \(one.firstLSN) and \(other.firstLSN): \(saved)")
      }
    }
  }

  @Test("records of which the bytes of a lost header have taken the place are read")
  func cutHeader() throws {
    let sample = try Self.sample()
    for byteCount in 1...SegmentHeader.byteCount {
      let saved = try Self.saved(Array(sample.bytes[byteCount...]), sample)
      #expect(saved == (1...8).map { UInt64($0) }, "\(byteCount) bytes: \(saved)")
    }
  }

  /// - Parameter hit: the bytes that are gone; an empty range where some were inserted.
  private func check(_ saved: [UInt64], _ hit: Range<Int>, _ sample: Sample) throws {
    let whole = sample.records.filter { record in
      let range = Int(record.offset)..<Int(record.endOffset)
      if hit.isEmpty { return !(range.lowerBound + 1..<range.upperBound).contains(hit.lowerBound) }
      return !range.overlaps(hit)
    }
    // A record proves those before it durable; what nothing proves may be what a crash left.
    let proven = whole.map(\.durableUpTo.rawValue).max() ?? 0
    let expected = whole.filter { $0.kind == .writes && $0.firstLSN.rawValue <= proven }
    #expect(
      Set(expected.map(\.firstLSN.rawValue)).isSubset(of: saved), "\(hit): \(saved)")
    #expect(saved == saved.sorted() && Set(saved).count == saved.count, "\(hit): \(saved)")
  }
}
