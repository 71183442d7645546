import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

extension LogDamageTests {
  @Test("a missing first, middle or last segment is noticed")
  func missingSegments() throws {
    for first in [1, 5, 9] as [UInt64] {
      let sample = try Sample()
      sample.disk.erase(segmentPath(first))
      #expect(throws: StorageError.self, "\(first)") { try read(sample.disk) }
    }
  }

  @Test("a segment under another's name, or of another database, is refused")
  func foreignSegments() throws {
    let sample = try Sample()
    let second = try #require(sample.disk.contents(of: segmentPath(5)))
    sample.disk.overwrite(segmentPath(9), at: 0, with: second)
    #expect(throws: StorageError.self) { try read(sample.disk) }

    let other = try Sample()
    let header = SegmentHeader(
      databaseID: DatabaseID(high: 7, low: 7), salt: 1, firstLSN: LogSequenceNumber(9), baseTime: 0,
      previousChecksum: 0)
    var writer = ByteWriter()
    header.encode(into: &writer)
    other.disk.overwrite(segmentPath(9), at: 0, with: Array(writer.bytes))
    do throws(StorageError) {
      _ = try read(other.disk)
      Issue.record("a foreign segment was read")
    } catch {
      guard case .corrupt(let path, 16, _, _) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(path == segmentPath(9))
    }
    // And if the caller knows the database, also for the first.
    let directory = try open(sample.disk)
    #expect(throws: StorageError.self) {
      try LogReader.read(directory, databaseID: DatabaseID(high: 7, low: 7)) {
        (_, _) throws(StorageError) in
      }
    }
  }

  @Test("a record copied elsewhere in its own segment is not taken for one")
  func copiedRecord() throws {
    let sample = try Sample(segments: 1)
    let path = segmentPath(1)
    let file = try #require(sample.disk.contents(of: path))
    sample.disk.overwrite(path, at: file.count, with: Array(file[64...]))
    let log = try #require(try read(sample.disk))
    #expect(log.entries == sample.entries)
    #expect(log.end.torn?.lastSurvivor == nil)
  }

  @Test("a valid record with a number that was there before, or that skips one, is refused")
  func repeatedAndSkippedNumbers() throws {
    let sample = try Sample(segments: 1)
    let end = try #require(try read(sample.disk)).end
    for (lsn, isNext) in [(4, false), (3, false), (6, false), (5, true)] as [(UInt64, Bool)] {
      let payload = bytes("forged")
      let disk = sample.disk.copy()
      disk.overwrite(
        segmentPath(1), at: Int(end.offset),
        with: forgedRecord(behind: end, firstLSN: lsn, payload: payload))
      if isNext {
        #expect(try read(disk)?.entries.map(\.payload) == sample.entries.map(\.payload) + [payload])
        continue
      }
      do throws(StorageError) {
        _ = try read(disk)
        Issue.record("a record with the number \(lsn) was read")
      } catch {
        guard case .corrupt(segmentPath(1), end.offset, let expected, let found) = error else {
          Issue.record("\(error)")
          continue
        }
        #expect(expected.hasPrefix("first LSN 5") && found == "\(lsn)")
      }
    }
  }

  @Test("a record behind an exchanged predecessor is refused by the chain, though each is valid")
  func exchangedPredecessor() throws {
    func log(_ first: UInt64) throws -> (SimulatedDisk, LogWriter) {
      // The same salt: as in two copies of one directory that went their own ways.
      let disk = SimulatedDisk(seed: 1)
      let directory = try open(disk)
      let writer = try newLog(directory)
      try writer.append(noise(50, seed: first))
      return (disk, writer)
    }
    let (disk, writer) = try log(1)
    let (other, _) = try log(2)
    let end = Int(writer.segmentByteCount)
    for seed in 3...4 as ClosedRange<UInt64> { try writer.append(noise(50, seed: seed)) }
    let own = try #require(disk.contents(of: segmentPath(1)))
    let exchanged = try #require(other.contents(of: segmentPath(1)))
    #expect(exchanged.count == end && exchanged[..<64] == own[..<64])
    let directory = try openReadOnly(disk)
    #expect(try read(directory)?.entries.count == 3)
    disk.overwrite(segmentPath(1), at: 0, with: exchanged)
    do throws(StorageError) {
      _ = try read(directory)
      Issue.record("the chain was not looked at")
    } catch {
      guard case .corrupt(_, let offset, let expected, _) = error, offset == UInt64(end) else {
        Issue.record("\(error)")
        return
      }
      #expect(expected.hasPrefix("previous checksum"))
    }
  }

  @Test("a version from the future is refused, both versions named")
  func futureVersion() throws {
    let sample = try Sample(segments: 1)
    var header = Array(
      try #require(sample.disk.contents(of: segmentPath(1))).prefix(SegmentHeader.byteCount))
    header[8] = 9
    // Under its own checksum; otherwise it is damage.
    sample.disk.overwrite(segmentPath(1), at: 0, with: header)
    #expect(throws: StorageError.self) { try read(sample.disk) }
    let end = header.count - 4
    let checksum = header.withUnsafeBytes {
      Checksum.short(UnsafeRawBufferPointer(rebasing: $0[..<end]), seed: 0)
    }
    withUnsafeBytes(of: checksum.littleEndian) { header.replaceSubrange(end..., with: $0) }
    sample.disk.overwrite(segmentPath(1), at: 0, with: header)
    #expect(
      throws: StorageError.unsupportedVersion(
        path: segmentPath(1), found: 9, supported: FileFormat.newestVersion)
    ) { try read(sample.disk) }
  }

  @Test("the log ends before what a checkpoint proves durable: refused")
  func endsTooEarly() throws {
    let sample = try Sample(segments: 1)
    let directory = try open(sample.disk)
    #expect(try read(directory, provenDurable: 4)?.lastLSN == 4)
    #expect(throws: StorageError.self) { try read(directory, provenDurable: 5) }
    #expect(throws: StorageError.self) { try read(directory, after: 5) }
  }

  @Test("a hostile file of nothing but record magics is searched in linear time")
  func hostileMagics() throws {
    let sample = try Sample(segments: 1)
    let path = segmentPath(1)
    let size = try #require(sample.disk.contents(of: path)).count
    sample.disk.overwrite(
      path, at: size,
      with: (0..<(2 << 20)).map { $0 % 2 == 0 ? RecordHeader.magic.0 : RecordHeader.magic.1 })
    let log = try #require(try read(sample.disk))
    #expect(log.entries == sample.entries && log.end.torn != nil)
  }
}
