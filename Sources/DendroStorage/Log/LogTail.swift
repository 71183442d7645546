/// The decision on the end of a segment: a table, pure, each combination in exactly one row.
///
/// A crash keeps or loses every unsynchronized sector on its own, so that bad bytes behind the last
/// good record, and good records behind them, are what a crash may leave. Corrupt is only what
/// contradicts something that is known to have been synchronized.
struct LogTail: Hashable {
  /// What stands behind the last record that follows the one before it.
  enum Remainder: CaseIterable {
    /// The end of the file, or zeros up to it.
    case nothing
    /// Bytes that are no record, or a record whose payload is bad.
    case damaged
    /// A valid record that does not follow: another sequence number, another chain, or a seal that
    /// names another successor. Headers are valid at one place only, and what a crash leaves is cut
    /// before anything is written there again: no crash leaves this.
    case detached
    /// A valid seal.
    case seal
  }

  /// The next segment in the directory.
  enum Successor: CaseIterable {
    /// This is the last one.
    case none
    /// Its header repeats the sequence number and checksum of the last good record here.
    case confirms
    /// It does not.
    case denies
  }

  enum Decision {
    /// The log ends here.
    case end
    /// The log ends here, and the bytes behind are to be cut.
    case torn
    /// The log continues in the next segment.
    case next
    /// Something durable is missing or different.
    case corrupt
  }

  var remainder: Remainder
  var successor: Successor
  /// Whether a later valid header, a checkpoint or the caller says that the next write was durable.
  var isNextProvenDurable: Bool

  /// nil matches everything.
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
}
