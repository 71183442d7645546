import DendroEngine
import DendroStorage
import Testing

@Suite("What nothing needs any more")
struct RetentionTests {
  struct Row: Sendable {
    /// First write and bytes of each segment.
    var segments: [(first: UInt64, bytes: UInt64)]
    /// Write and bytes of each checkpoint; the time of the write is ten times its number.
    var checkpoints: [(lsn: UInt64, bytes: UInt64)]
    var unreadable: Set<UInt64> = []
    var rules = Retention.Rules()
    var obsoleteSegments: [UInt64] = []
    var obsoleteCheckpoints: [UInt64] = []

    /// Segments and checkpoints without a size.
    init(
      segments: [UInt64], checkpoints: [UInt64], unreadable: Set<UInt64> = [],
      obsoleteSegments: [UInt64], obsoleteCheckpoints: [UInt64]
    ) {
      self.segments = segments.map { ($0, 0) }
      self.checkpoints = checkpoints.map { ($0, 0) }
      self.unreadable = unreadable
      self.obsoleteSegments = obsoleteSegments
      self.obsoleteCheckpoints = obsoleteCheckpoints
    }

    /// Checkpoints at 10, 20, … 60, a segment of 100 bytes behind each, and one before the first.
    init(
      _ history: HistoryRetention, from first: UInt64 = 1, thinnedTo bytes: UInt64 = 1,
      obsoleteSegments: [UInt64] = [], obsoleteCheckpoints: [UInt64] = [],
      _ adjust: (inout Retention.Rules) -> Void = { _ in }
    ) {
      segments = [1, 11, 21, 31, 41, 51, 61].filter { $0 >= first }.map { ($0, 100) }
      checkpoints = [10, 20, 30, 40, 50, 60].filter { $0 >= first - 1 }.map { ($0, 10) }
      rules.history = history
      rules.now = 600
      rules.checkpointFactor = 1
      rules.checkpointByteMin = bytes
      adjust(&rules)
      self.obsoleteSegments = obsoleteSegments
      self.obsoleteCheckpoints = obsoleteCheckpoints
    }
  }

  static func obsolete(_ row: Row) -> Retention.ObsoleteFiles {
    Retention.obsolete(
      Retention.Files(
        segments: row.segments.map {
          .init(firstLSN: LogSequenceNumber($0.first), byteCount: $0.bytes)
        },
        checkpoints: row.checkpoints.map {
          .init(
            lsn: LogSequenceNumber($0.lsn), byteCount: $0.bytes,
            isReadable: !row.unreadable.contains($0.lsn))
        }), row.rules
    ) { lsn in row.unreadable.contains(lsn.rawValue) ? nil : Int64(lsn.rawValue) * 10 }
  }

  static func check(_ row: Row) {
    let obsolete = obsolete(row)
    #expect(obsolete.segments.map(\.firstLSN.rawValue) == row.obsoleteSegments)
    #expect(obsolete.checkpoints.map(\.rawValue) == row.obsoleteCheckpoints)
    // The same again finds nothing left to do.
    var rest = row
    rest.segments.removeAll { row.obsoleteSegments.contains($0.first) }
    rest.checkpoints.removeAll { row.obsoleteCheckpoints.contains($0.lsn) }
    #expect(Self.obsolete(rest) == Retention.ObsoleteFiles())
  }

  @Test(
    "two readable checkpoints stay, and the log back to the older",
    arguments: [
      Row(segments: [1], checkpoints: [], obsoleteSegments: [], obsoleteCheckpoints: []),
      Row(segments: [1, 11], checkpoints: [10], obsoleteSegments: [], obsoleteCheckpoints: []),
      Row(
        segments: [1, 11, 21], checkpoints: [10, 20], obsoleteSegments: [1], obsoleteCheckpoints: []
      ),
      Row(
        segments: [11, 21, 31], checkpoints: [10, 20, 30], obsoleteSegments: [11],
        obsoleteCheckpoints: [10]),
      // The checkpoint stands in the middle of a segment: the segment is needed.
      Row(
        segments: [1, 16, 26], checkpoints: [10, 20], obsoleteSegments: [], obsoleteCheckpoints: []),
      // One that cannot be read does not count.
      Row(
        segments: [1, 11, 21, 31], checkpoints: [10, 20, 30], unreadable: [20],
        obsoleteSegments: [1], obsoleteCheckpoints: []),
      Row(
        segments: [1, 11, 21, 31, 41], checkpoints: [10, 20, 30, 40], unreadable: [20],
        obsoleteSegments: [1, 11, 21], obsoleteCheckpoints: [10, 20]),
      // The last segment stays, whatever stands in the checkpoints.
      Row(segments: [5], checkpoints: [10, 20], obsoleteSegments: [], obsoleteCheckpoints: []),
    ])
  func table(row: Row) { Self.check(row) }

  @Test(
    "history reaches back as far as the option asks, to a checkpoint or the beginning",
    arguments: [
      Row(.none, obsoleteSegments: [1, 11, 21, 31, 41], obsoleteCheckpoints: [10, 20, 30, 40]),
      Row(.all),
      // By number: at least so many, from a checkpoint on.
      Row(
        .writes(0), obsoleteSegments: [1, 11, 21, 31, 41], obsoleteCheckpoints: [10, 20, 30, 40]),
      Row(
        .writes(10), obsoleteSegments: [1, 11, 21, 31, 41], obsoleteCheckpoints: [10, 20, 30, 40]),
      Row(.writes(11), obsoleteSegments: [1, 11, 21, 31], obsoleteCheckpoints: [10, 20, 30]),
      Row(.writes(20), obsoleteSegments: [1, 11, 21, 31], obsoleteCheckpoints: [10, 20, 30]),
      Row(.writes(21), obsoleteSegments: [1, 11, 21], obsoleteCheckpoints: [10, 20]),
      Row(.writes(50), obsoleteSegments: [1], obsoleteCheckpoints: []),
      Row(.writes(51)), Row(.writes(60)), Row(.writes(.max)),
      // What is not there is not missed.
      Row(.writes(.max), from: 21), Row(.all, from: 21),
      Row(.writes(35), from: 11, obsoleteSegments: [11], obsoleteCheckpoints: [10]),
      // By time: the state at the moment so long ago can be read.
      Row(
        .milliseconds(0), obsoleteSegments: [1, 11, 21, 31, 41],
        obsoleteCheckpoints: [10, 20, 30, 40]),
      Row(
        .milliseconds(100), obsoleteSegments: [1, 11, 21, 31, 41],
        obsoleteCheckpoints: [10, 20, 30, 40]),
      Row(
        .milliseconds(101), obsoleteSegments: [1, 11, 21, 31], obsoleteCheckpoints: [10, 20, 30]),
      Row(.milliseconds(300), obsoleteSegments: [1, 11, 21], obsoleteCheckpoints: [10, 20]),
      Row(.milliseconds(501)), Row(.milliseconds(.max)), Row(.milliseconds(501), from: 21),
      // By size: at most so much more than opening needs.
      Row(
        .bytes(0), obsoleteSegments: [1, 11, 21, 31, 41], obsoleteCheckpoints: [10, 20, 30, 40]),
      Row(
        .bytes(109), obsoleteSegments: [1, 11, 21, 31, 41], obsoleteCheckpoints: [10, 20, 30, 40]),
      Row(.bytes(110), obsoleteSegments: [1, 11, 21, 31], obsoleteCheckpoints: [10, 20, 30]),
      Row(.bytes(219), obsoleteSegments: [1, 11, 21, 31], obsoleteCheckpoints: [10, 20, 30]),
      Row(.bytes(220), obsoleteSegments: [1, 11, 21], obsoleteCheckpoints: [10, 20]),
      Row(.bytes(539), obsoleteSegments: [1]), Row(.bytes(540)),
    ])
  func history(row: Row) { Self.check(row) }

  @Test(
    "checkpoints without which a replay is short enough go",
    arguments: [
      Row(.all, thinnedTo: 199),
      Row(.all, thinnedTo: 200, obsoleteCheckpoints: [10, 30]),
      Row(.all, thinnedTo: 300, obsoleteCheckpoints: [10, 20, 40]),
      Row(.all, thinnedTo: .max, obsoleteCheckpoints: [10, 20, 30, 40]),
      // The one where the log begins stays.
      Row(.all, from: 11, thinnedTo: .max, obsoleteCheckpoints: [20, 30, 40]),
      Row(.all, thinnedTo: 1, obsoleteCheckpoints: [20, 40]) { $0.checkpointFactor = 20 },
      Row(.writes(25), thinnedTo: 200, obsoleteSegments: [1, 11], obsoleteCheckpoints: [10, 30]),
    ])
  func thinning(row: Row) { Self.check(row) }

  @Test("what is read stays")
  func pins() {
    Self.check(
      Row(.writes(0), obsoleteSegments: [1, 11], obsoleteCheckpoints: [10]) {
        $0.rebuilding = [LogSequenceNumber(20), LogSequenceNumber(50)]
      })
    // A checkpoint that is read is held open: only the log behind it must stay.
    Self.check(
      Row(.writes(0), thinnedTo: 200, obsoleteSegments: [1, 11], obsoleteCheckpoints: [10, 30]) {
        $0.rebuilding = [LogSequenceNumber(30)]
      })
    Self.check(
      Row(.none, obsoleteSegments: [1, 11, 21], obsoleteCheckpoints: [10, 20]) {
        $0.followed = [LogSequenceNumber(34), LogSequenceNumber(55)]
      })
    // One that is too far behind holds nothing back.
    var row = Row(
      .none, obsoleteSegments: [1, 11, 21, 31, 41], obsoleteCheckpoints: [10, 20, 30, 40]
    ) {
      $0.followed = [LogSequenceNumber(34)]
    }
    row.segments[3].bytes = Retention.followerByteLimit
    Self.check(row)
  }
}
