/// Goes through the records of a segment, one behind the other.
///
/// All that read the log use it: opening, following, tools, archives and salvage. What a record that does not follow
/// means, and what bytes mean that are no record, they decide by `LogTail`. Not for two threads at once.
final class SegmentScan {
  /// The record that the next one has to follow, or the header of the segment.
  struct Link: Hashable {
    /// The last write up to here.
    var lsn: LogSequenceNumber
    /// The checksum of the header, which the next record or segment repeats.
    var checksum: UInt32

    /// Why a record does not follow; nil if it does.
    func fault(of record: RecordHeader) -> ReadFault? {
      if record.firstLSN != lsn.next {
        return ReadFault(expected: "first LSN \(lsn.next)", found: "\(record.firstLSN)")
      }
      if !record.follows(checksum) {
        let (expected, found) = record.previousChecksumDifference(from: checksum)
        return ReadFault(expected: expected, found: found)
      }
      return nil
    }

    /// Why a segment does not follow, and where its header says so; nil if it does.
    func fault(of segment: SegmentHeader) -> (offset: UInt64, fault: ReadFault)? {
      if segment.firstLSN != lsn.next {
        return (40, ReadFault(expected: "first LSN \(lsn.next)", found: "\(segment.firstLSN)"))
      }
      if segment.previousChecksum != checksum {
        return (
          56,
          ReadFault(
            expected: "previous checksum \(hexadecimal(checksum))",
            found: hexadecimal(segment.previousChecksum))
        )
      }
      return nil
    }
  }

  let segment: SegmentReader
  // No access to one of these contains another: so none is checked at run time, once for each record.
  /// Where the next record stands in the file.
  @exclusivity(unchecked) private(set) var offset: UInt64
  /// Added to an offset in the file, modulo 2^64, it gives the one at which the bytes were written.
  @exclusivity(unchecked) private(set) var distance: UInt64 = 0
  /// Of the record that was taken last, also if that does not follow from the one before.
  @exclusivity(unchecked) private(set) var link: Link
  /// Whether the next record has to follow `link`; false behind damage.
  @exclusivity(unchecked) private(set) var isLinked = true
  /// The record that was taken last.
  @exclusivity(unchecked) private(set) var last: RecordInfo?
  /// Whether that is the seal, so that no record follows.
  @exclusivity(unchecked) private(set) var isSealed = false

  /// At the beginning of a segment.
  init(_ segment: SegmentReader) {
    self.segment = segment
    offset = UInt64(SegmentHeader.byteCount)
    link = Link(lsn: segment.header.firstLSN.previous, checksum: segment.header.checksum)
  }

  /// At a record with which decompression can begin.
  init(_ segment: SegmentReader, from restart: RecordInfo) {
    self.segment = segment
    offset = restart.offset
    link = Link(lsn: restart.firstLSN.previous, checksum: restart.header.previousChecksum)
  }

  /// At records behind damage, which stand where they were written or at another place.
  convenience init(_ segment: SegmentReader, at offset: UInt64, displacedBy distance: UInt64) {
    self.init(segment)
    goOn(at: offset, displacedBy: distance)
  }

  // MARK: Headers

  /// What stands here; nil at the end of the file. The payload is not read, and the record need not follow.
  func header() throws(StorageError) -> SegmentReader.Found? {
    guard offset < segment.byteCount else { return nil }
    return try segment.record(at: offset, displacedBy: distance)
  }

  /// Takes the record that stands here, whose payload is not read, and which need not follow.
  ///
  /// - Returns: nil, and takes nothing, if none stands here.
  func nextHeader() throws(StorageError) -> RecordInfo? {
    guard let record = try header()?.record else { return nil }
    take(record)
    return record
  }

  /// Why a record does not follow; nil if it does, or if it need not.
  func linkFault(_ record: RecordInfo) -> ReadFault? {
    isLinked ? link.fault(of: record.header) : nil
  }

  // MARK: Records

  enum Step {
    /// The payload is valid until the next call.
    case record(RecordInfo, UnsafeRawBufferPointer)
    /// The end of the file.
    case end
    case invalid(Stop)
  }

  /// Why no record was read.
  struct Stop {
    var fault: ReadFault
    /// What `LogTail` asks for.
    var remainder: LogTail.Remainder
    /// Where other records may stand.
    var searchStart: UInt64
  }

  /// The record that stands here, and its payload, if it follows and is right. It is not taken.
  func record() throws(StorageError) -> Step {
    switch try header() {
    case nil: return .end
    case .invalid(let fault):
      return .invalid(Stop(fault: ReadFault(fault), remainder: .damaged, searchStart: offset))
    case .record(let record):
      if let fault = linkFault(record) {
        return .invalid(Stop(fault: fault, remainder: .detached, searchStart: offset + 1))
      }
      switch try segment.payload(of: record) {
      case .success(let payload): return .record(record, payload)
      case .failure(let fault):
        return .invalid(
          Stop(fault: fault, remainder: .damaged, searchStart: record.payloadOffset))
      }
    }
  }

  /// The fast way to a record with writes that follows and is right. It is not taken.
  ///
  /// - Returns: nil if another one stands here, or anything else: `record()` says what. Nil behind damage, too.
  @inline(__always)
  func chainedRecord() throws(StorageError) -> (RecordInfo, UnsafeRawBufferPointer)? {
    guard isLinked, !isSealed else { return nil }
    return try segment.chainedRecord(at: offset, after: link.lsn, link.checksum)
  }

  // MARK: Moving

  /// Moves behind a record.
  @inline(__always)
  func take(_ record: RecordInfo) {
    // The next segment repeats the checksum of the record before the seal.
    isSealed = record.kind == .seal
    let checksum = isSealed && isLinked ? link.checksum : record.linkChecksum
    link = Link(lsn: record.lastLSN, checksum: checksum)
    isLinked = true
    offset = record.endOffset
    last = record
  }

  /// Moves behind damage, where any record may stand.
  func goOn(at offset: UInt64, displacedBy distance: UInt64 = 0) {
    self.offset = offset
    self.distance = distance
    isLinked = false
  }
}

/// Why a record cannot be read.
struct ReadFault: Error, Hashable {
  var expected: String
  var found: String
  /// Whether all bytes of the record are in the file.
  var isWhole = false
}

extension ReadFault {
  init(_ fault: RecordHeader.Fault) {
    self.init(expected: fault.expected, found: fault.description)
  }
}

extension RecordInfo {
  var payloadOffset: UInt64 { offset &+ UInt64(headerByteCount) }

  /// What the record or the segment behind it repeats.
  fileprivate var linkChecksum: UInt32 { kind == .seal ? header.previousChecksum : checksum }
}
