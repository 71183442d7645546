/// The end of a log, as `LogReader` found it: `repairTail` repairs it, and `LogWriter` continues there.
package struct LogEnd: Sendable {
  package var databaseID: DatabaseID
  /// The segments that were read, with their sizes in bytes; those before them were not needed.
  package var segments: [(name: SegmentName, byteCount: UInt64)]
  /// The last segment.
  package var segment: SegmentName
  package var segmentHeader: SegmentHeader
  /// Where the last good record of the last segment begins; equal to `offset` if there is none.
  package var lastOffset: UInt64
  /// Where the last good record of the last segment ends.
  package var offset: UInt64
  /// The checksum of the last good record; if there is none, of the segment's header.
  package var checksum: UInt32
  package var lastLSN: LogSequenceNumber
  /// The base time of the last record with writes that was read; nil if there was none.
  package var lastTime: Int64?
  /// The time of the last write that was passed over, since it was not wanted (`ParallelReading`); nil if none was.
  package var passedOverTime: Int64?
  /// The last write known to be durable, by a record or by the caller; `repairTail` raises it to `lastLSN`.
  package var durableUpTo: LogSequenceNumber
  /// Whether the very last record carries `durableUpTo == lastLSN`: the sign of an orderly close.
  package var endsWithIdleRecord: Bool
  /// The bytes behind `offset` that are not part of the log, to be cut.
  package var torn: TornTail?
  /// The file that holds the torn bytes; nil if there was no room for it.
  package internal(set) var tornFile: String?
  /// In a read-only directory, in place of `torn`: the remains of a crash, or a record being written.
  package var unfinished: TornTail?
  /// The segment before the last one, if a crash came before its seal.
  package var unsealed: UnsealedSegment?
  /// Whether `repairTail` has repaired it, so that a writer may continue.
  package internal(set) var isRepaired = false
}

/// The remains of writes that a crash cut short. They were not acknowledged.
package struct TornTail: Hashable, Sendable {
  package var segment: SegmentName
  package var offset: UInt64
  /// The number of bytes up to the last one that is not zero.
  package var byteCount: UInt64
  /// The first write that is cut.
  package var firstLSN: LogSequenceNumber
  /// The last write of valid records behind the first bad one, which are cut as well.
  package var lastSurvivor: LogSequenceNumber?
  /// Whether the first bad record has its full length, so that the bytes may come from a power loss or from
  /// damage to the last acknowledged batch.
  package var isUndecidable: Bool
  /// What was expected and what was found at `offset`.
  package var expected: String
  package var found: String
}

/// A segment without a seal, whose end its successor confirms.
package struct UnsealedSegment: Hashable, Sendable {
  package var segment: SegmentName
  package var header: SegmentHeader
  /// Where its last record ends.
  package var offset: UInt64
  package var checksum: UInt32
  package var lastLSN: LogSequenceNumber
  package var baseTime: Int64
  package var successorChecksum: UInt32
}

extension TornTail {
  /// What was cut and why, as a sentence for the recovery report.
  package var sentence: String {
    let survivors = lastSurvivor.map { ", and whole records behind it up to write \($0)" } ?? ""
    return
      "\(segment) was torn at offset \(offset): \(byteCount) bytes from write \(firstLSN) on\(survivors); "
      + "expected \(expected), found \(found)"
  }
}
