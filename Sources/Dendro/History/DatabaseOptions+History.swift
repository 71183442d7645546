import DendroEngine

extension DatabaseOptions {
  /// What is kept of the past, beyond what opening needs.
  ///
  /// Opening needs two checkpoints and the log since the older one; that much of the past can always be
  /// read. More is kept as whole files of log, and of the checkpoints as many as keep each state within
  /// reach of about as much replay as opening does; they take at most about 1 /
  /// ``DatabaseOptions/checkpointFactor`` of the log's bytes more.
  ///
  /// It is applied whenever a checkpoint is taken, and it is the option of this opening: opened with
  /// less, a database loses what is beyond that at its next checkpoint. What was removed from the tree
  /// stays in the files of the past: see `Database.purgeHistory(waiting:)`.
  public struct History: Hashable, Sendable {
    let engineValue: HistoryRetention
    /// What is wrong with it.
    let problem: String?

    private init(_ engineValue: HistoryRetention, problem: String? = nil) {
      self.engineValue = engineValue
      self.problem = problem
    }

    /// What opening needs, and nothing more.
    public static let minimal = History(.none)

    /// The former name of ``minimal``.
    @available(*, deprecated, renamed: "minimal", message: "Optional.none shadows this name")
    public static var none: History { .minimal }

    /// Everything, for ever: the files grow without end.
    public static let all = History(.all)

    /// At least the states of so long before now, to the millisecond. Negative durations are refused
    /// when the database is opened.
    public static func keep(for duration: Duration) -> History {
      guard duration >= .zero else {
        return History(.none, problem: "a negative duration, \(duration)")
      }
      let (seconds, attoseconds) = duration.components
      let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
      if overflow || milliseconds > .max - 1001 { return History(.milliseconds(.max)) }
      let rest = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
      return History(.milliseconds(milliseconds + rest))
    }

    /// At least the states before each of so many of the last writes. Negative numbers are refused when
    /// the database is opened.
    public static func keep(writes count: Int) -> History {
      count >= 0
        ? History(.writes(UInt64(count)))
        : History(.none, problem: "a negative number of writes, \(count)")
    }

    /// As much as fits into so many bytes of files, beside those that opening needs. Negative numbers are
    /// refused when the database is opened.
    public static func keep(byteCount: Int) -> History {
      byteCount >= 0
        ? History(.bytes(UInt64(byteCount)))
        : History(.none, problem: "a negative number of bytes, \(byteCount)")
    }
  }

  func checkHistory() throws(DatabaseError) {
    guard let problem = history.problem else { return }
    throw DatabaseError(
      .invalidArgument, "InvalidArgumentError", "the option history asks for \(problem)")
  }
}
