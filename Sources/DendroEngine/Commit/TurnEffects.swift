import DendroStorage

/// What the end of a turn does, once no lock is held.
struct TurnEffects {
  /// In the order in which they are called, with their results.
  var completions: [Batch.PendingCompletion] = []
  /// Writes without a completion that were undone.
  var unreported: [(EngineError, LogSequenceNumber)] = []
  var events: [LogEvent] = []
  var metrics: [Metric] = []
  /// Called with the bytes of log since the newest checkpoint.
  var logGrowth: (handler: @Sendable (UInt64) -> Void, byteCount: UInt64)?
  /// When the log wants work although no batch comes.
  var due = CommitSchedule.LogDue()

  mutating func complete(
    _ calls: [Completion], _ result: Result<LogSequenceNumber?, EngineError>
  ) {
    for call in calls { completions.append(.init(result: result, completion: call)) }
  }
}
