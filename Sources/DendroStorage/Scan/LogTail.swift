/// The decision on the end of a segment: a table in which each combination matches exactly one row. A pure
/// function of three facts, which all ask that read the log.
///
/// A crash keeps or loses each unsynchronized sector on its own. So it may leave bad bytes behind the last
/// good record, and good records behind those. The log is corrupt only if the bytes contradict a write
/// that is known to have been synchronized.
struct LogTail: Hashable {
  /// The bytes behind the last record that follows the one before it.
  enum Remainder: CaseIterable {
    /// The end of the file, or zeros up to it.
    case nothing
    /// Bytes that are no record, or a record whose payload is bad.
    case damaged
    /// A valid record that does not follow: by its LSN, by the checksum that it repeats, or as a seal that
    /// names another successor. No crash leaves this: headers are valid at one offset only, and recovery
    /// cuts the remains of a crash before anything is written there again.
    case detached
    /// A valid seal.
    case seal
  }

  /// The next segment in the directory.
  enum Successor: CaseIterable {
    /// This is the last one.
    case none
    /// Its header has the LSN and the checksum that follow the last good record here.
    case confirms
    /// The same, and it has a record, or a successor of its own: they were written once the seal here was durable. Opening
    /// does not look for that.
    case continues
    /// Its header has others.
    case denies
  }

  enum Decision {
    /// The log ends here.
    case end
    /// The log ends here, and the bytes behind it are cut.
    case torn
    /// The log continues in the next segment.
    case next
    /// The log continues in the next segment; the seal, which was durable, is different now.
    case nextBehindDamage
    /// Something durable is missing or different.
    case corrupt
  }

  var remainder: Remainder
  var successor: Successor
  /// Whether a later valid header, a checkpoint or the caller says that the next write was durable.
  var isNextProvenDurable: Bool

  /// Nil in a field matches every value.
  struct Row {
    var remainder: Remainder?
    var successor: Successor
    var isNextProvenDurable: Bool?
    var decision: Decision
    var reason: String

    func matches(_ tail: LogTail) -> Bool {
      (remainder == nil || remainder == tail.remainder) && successor == tail.successor
        && (isNextProvenDurable == nil || isNextProvenDurable == tail.isNextProvenDurable)
    }
  }

  static let table: [Row] = [
    Row(
      remainder: .nothing, successor: .none, isNextProvenDurable: false, decision: .end,
      reason: "nothing but preallocated space"),
    Row(
      remainder: .nothing, successor: .none, isNextProvenDurable: true, decision: .corrupt,
      reason: "durable writes are missing at the end"),
    Row(
      remainder: .damaged, successor: .none, isNextProvenDurable: false, decision: .torn,
      reason: "writes that a crash cut short"),
    Row(
      remainder: .damaged, successor: .none, isNextProvenDurable: true, decision: .corrupt,
      reason: "a durable record is damaged"),
    Row(
      remainder: .detached, successor: .none, isNextProvenDurable: nil, decision: .corrupt,
      reason: "a record that does not follow"),
    Row(
      remainder: .seal, successor: .none, isNextProvenDurable: nil, decision: .corrupt,
      reason: "the successor that the seal names is missing"),
    Row(
      remainder: .nothing, successor: .confirms, isNextProvenDurable: nil, decision: .next,
      reason: "a crash before the seal; the successor confirms the end"),
    Row(
      remainder: .damaged, successor: .confirms, isNextProvenDurable: nil, decision: .next,
      reason: "a crash in the seal; the successor confirms the end"),
    Row(
      remainder: .detached, successor: .confirms, isNextProvenDurable: nil, decision: .corrupt,
      reason: "a record that does not follow"),
    Row(
      remainder: .seal, successor: .confirms, isNextProvenDurable: nil, decision: .next,
      reason: "an orderly end"),
    Row(
      remainder: .nothing, successor: .continues, isNextProvenDurable: nil, decision: .next,
      reason: "a disk without room for the seal"),
    Row(
      remainder: .damaged, successor: .continues, isNextProvenDurable: nil,
      decision: .nextBehindDamage, reason: "a durable seal is damaged"),
    Row(
      remainder: .detached, successor: .continues, isNextProvenDurable: nil, decision: .corrupt,
      reason: "a record that does not follow"),
    Row(
      remainder: .seal, successor: .continues, isNextProvenDurable: nil, decision: .next,
      reason: "an orderly end"),
    Row(
      remainder: nil, successor: .denies, isNextProvenDurable: nil, decision: .corrupt,
      reason: "a segment was synchronized before its successor was made"),
  ]

  /// The one row that matches; the table is proven complete and free of overlaps by a test.
  var row: Row {
    guard let row = Self.table.first(where: { $0.matches(self) }) else {
      preconditionFailure("no row for \(self)")
    }
    return row
  }

  var decision: Decision { row.decision }
}

extension LogTail.Successor {
  /// What a header says of the last record in front of it.
  ///
  /// - Parameter isContinued: whether the segment has a record, or a successor of its own.
  init(_ header: SegmentHeader, behind link: SegmentScan.Link, isContinued: Bool = false) {
    if link.fault(of: header) != nil {
      self = .denies
    } else {
      self = isContinued ? .continues : .confirms
    }
  }
}
