/// The end of a log: what reading it found, and what a writer needs to continue.
package struct LogEnd: Sendable {
  package var databaseID: DatabaseID
  /// The segments that were read, with their sizes in bytes; those before them were not needed.
  package var segments: [(name: SegmentName, byteCount: UInt64)]
  /// The last segment.
  package var segment: SegmentName
  package var segmentHeader: SegmentHeader
  /// Where the last good record of the last segment begins; where there is none, as `offset`.
  package var lastOffset: UInt64
  /// Behind the last good record of the last segment.
  package var offset: UInt64
  /// Of the last good record, or of the segment's header.
  package var checksum: UInt32
  package var lastLSN: LogSequenceNumber
  /// The base time of the last record with writes that was read; nil where there was none.
  package var lastTime: Int64?
  /// What is known to be durable, by the last record or by the caller; `repairTail` raises it to
  /// `lastLSN`.
  package var durableUpTo: LogSequenceNumber
  /// Whether the very last record carries `durableUpTo == lastLSN`: the sign of an orderly close.
  package var endsWithIdleRecord: Bool
  /// What stands behind `offset` and is not part of the log.
  package var torn: TornTail?
  /// The file that holds the torn bytes; nil where there was no room for it.
  package internal(set) var tornFile: String?
  /// The same for a reader that changes nothing: the remains of a crash, or a write under way.
  package var unfinished: TornTail?
  /// The segment before the last one has no seal: the crash came in between.
  package var unsealed: UnsealedSegment?
  /// Whether a writer may go on from here.
  package internal(set) var isRepaired = false
}

/// The remains of writes that a crash cut short. They were not acknowledged.
package struct TornTail: Hashable, Sendable {
  package var segment: SegmentName
  package var offset: UInt64
  /// Up to the last byte that is not zero.
  package var byteCount: UInt64
  /// The first write that is lost with it.
  package var firstLSN: LogSequenceNumber
  /// Writes in whole records behind the first bad one, which are cut as well: the last of them.
  package var lastSurvivor: LogSequenceNumber?
  /// Whether the first bad record is all there in length, so that a power loss and damage of the
  /// very last acknowledged batch cannot be told apart.
  package var isUndecidable: Bool
  /// What was expected and what was found at `offset`.
  package var expected: String
  package var found: String
}

/// A segment whose successor is there and confirms its end, but which has no seal yet.
package struct UnsealedSegment: Hashable, Sendable {
  package var segment: SegmentName
  package var header: SegmentHeader
  /// Behind its last record.
  package var offset: UInt64
  package var checksum: UInt32
  package var lastLSN: LogSequenceNumber
  package var baseTime: Int64
  package var successorChecksum: UInt32
}

extension TornTail {
  /// What was cut, and why, for people.
  package var sentence: String {
    let survivors = lastSurvivor.map { ", and whole records behind it up to write \($0)" } ?? ""
    return
      "\(segment) was torn at offset \(offset): \(byteCount) bytes from write \(firstLSN) on\(survivors); "
      + "expected \(expected), found \(found)"
  }
}
