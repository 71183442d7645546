/// What the schedule is passed and what it answers.
extension CommitSchedule {
  /// When the log wants work although no batch comes; nil if it wants none.
  struct LogDue {
    var synchronize: Instant?
    var idleRecord: Instant?

    var first: Instant? { CommitSchedule.earlier(synchronize, idleRecord) }
  }

  /// What has to be known of the open batch.
  struct OpenBatch {
    /// Whether it has neither writes nor completions.
    var isEmpty: Bool
    /// The callers that wait for it, or for a write of it.
    var callerCount: Int
    /// Whether a new segment is to begin behind it, or the log to be closed.
    var endsSegment: Bool
    /// Whether it is synchronized before it is acknowledged.
    var isSynchronized: Bool
    /// Whether it is as long as a record.
    var isLong: Bool
    /// Whether it is at the limit above which writers wait.
    var isFull: Bool

    /// Whether it may grow: no caller waits for it, and it is short.
    var mayGrow: Bool { callerCount == 0 && !endsSegment && !isLong && !isFull }

    /// Whether it may wait for so many callers.
    func mayGather(_ count: Int) -> Bool { callerCount < count && !endsSegment && !isFull }
  }

  /// A turn with a batch.
  struct Turn {
    /// Whether it looks for room on the disk first.
    let probes: Bool
    /// When the delay of the batch began; nil if it had none.
    let delayedSince: Instant?
  }

  /// What the commit thread does next.
  enum Start {
    /// It has the turn, and commits the open batch.
    case commit(Turn)
    /// It has the turn, and does what the log wants without a batch.
    case tend
    case sleep(BlockingExecutor.Pause)
    case end
  }
}
