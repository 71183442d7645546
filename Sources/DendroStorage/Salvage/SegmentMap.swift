/// Where a segment's records stand in its file, whatever was done to the file's bytes.
///
/// Each record is recognized by its own header, at the offset at which it was written or at another one: bytes that
/// are removed from a file or inserted into it displace all that stands behind them. Payloads are not looked at.
struct SegmentMap: Sendable {
  /// Records that stand one behind the other, and each of which follows the one before it.
  struct Stretch: Sendable {
    var start: UInt64
    var end: UInt64
    /// Added to an offset in the file, modulo 2^64, it gives the one at which the bytes were written.
    var distance: UInt64
    var first: RecordHeader
    /// The last write of its records; the one before `first` if none has one.
    var lastLSN: LogSequenceNumber
    /// The header checksum of its last record.
    var checksum: UInt32

    var firstLSN: LogSequenceNumber { first.firstLSN }
    var isDisplaced: Bool { distance != 0 }

    /// Goes through the headers of its records, as far as the file has not changed since.
    func forEachRecord(
      of segment: SegmentReader, _ visit: (RecordInfo) throws(StorageError) -> Void
    ) throws(StorageError) {
      let scan = SegmentScan(segment, at: start, displacedBy: distance)
      while scan.offset < end, let record = try scan.nextHeader() { try visit(record) }
    }
  }

  /// Bytes that are no record at their place.
  struct Fault: Sendable {
    var start: UInt64
    var end: UInt64
    var expected: String
    var found: String
  }

  /// The last record before the seal.
  struct End: Sendable {
    var lastLSN: LogSequenceNumber
    var checksum: UInt32
    /// The checksum of the record with the last write; nil if that is lost.
    var writeChecksum: UInt32?
    /// The record's base time, milliseconds since 1970.
    var time: Int64
  }

  /// In the order of their first writes.
  var stretches: [Stretch] = []
  /// In the order of the file. Zeros at its end are none.
  var faults: [Fault] = []
  /// Nil if there is no record.
  var end: End?
  /// Writes up to here were durable, as the headers say.
  var durableUpTo: LogSequenceNumber
  /// Behind the last byte that is not zero.
  var contentEnd = UInt64(SegmentHeader.byteCount)

  init(_ header: SegmentHeader) {
    // All records before a segment were synchronized before it was made.
    durableUpTo = header.firstLSN.previous
  }
}
