import DendroEngine
import DendroStorage
import Testing

@Suite("What nothing needs any more")
struct RetentionTests {
  struct Row: Sendable {
    var segments: [UInt64]
    var checkpoints: [UInt64]
    var unreadable: Set<UInt64> = []
    var doomedSegments: [UInt64]
    var doomedCheckpoints: [UInt64]
  }

  @Test(
    "two readable checkpoints stay, and the log back to the older",
    arguments: [
      Row(segments: [1], checkpoints: [], doomedSegments: [], doomedCheckpoints: []),
      Row(segments: [1, 11], checkpoints: [10], doomedSegments: [], doomedCheckpoints: []),
      Row(
        segments: [1, 11, 21], checkpoints: [10, 20], doomedSegments: [1], doomedCheckpoints: []),
      Row(
        segments: [11, 21, 31], checkpoints: [10, 20, 30], doomedSegments: [11],
        doomedCheckpoints: [10]),
      // The checkpoint stands in the middle of a segment: the segment is needed.
      Row(
        segments: [1, 16, 26], checkpoints: [10, 20], doomedSegments: [], doomedCheckpoints: []),
      // One that cannot be read does not count.
      Row(
        segments: [1, 11, 21, 31], checkpoints: [10, 20, 30], unreadable: [20],
        doomedSegments: [1], doomedCheckpoints: []),
      Row(
        segments: [1, 11, 21, 31, 41], checkpoints: [10, 20, 30, 40], unreadable: [20],
        doomedSegments: [1, 11, 21], doomedCheckpoints: [10, 20]),
      // The last segment stays, whatever stands in the checkpoints.
      Row(segments: [5], checkpoints: [10, 20], doomedSegments: [], doomedCheckpoints: []),
    ])
  func table(row: Row) {
    let doomed = Retention.doomed(
      segments: row.segments.map { SegmentName(firstLSN: LogSequenceNumber($0)) },
      checkpoints: row.checkpoints.map { LogSequenceNumber($0) },
      unreadable: Set(row.unreadable.map { LogSequenceNumber($0) }))
    #expect(doomed.segments.map(\.firstLSN.rawValue) == row.doomedSegments)
    #expect(doomed.checkpoints.map(\.rawValue) == row.doomedCheckpoints)
  }
}
