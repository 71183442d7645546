import DendroStorage

/// What the end of a turn does, once no lock is held.
struct TurnEffects {
  /// Completions of the batch that the disk has taken: called first, each with its own result.
  var acknowledged: [Batch.PendingCompletion] = []
  /// The other completions, in the order in which they are called.
  var completions: [(Completion, Result<LogSequenceNumber?, EngineError>)] = []
  /// Writes without a completion that were undone.
  var unreported: [(EngineError, LogSequenceNumber)] = []
  var events: [LogEvent] = []
  var metrics: [Metric] = []
  /// Called with the bytes of log since the newest checkpoint.
  var logGrowth: (handler: @Sendable (UInt64) -> Void, byteCount: UInt64)?
  /// When the log wants work although no batch comes.
  var due = CommitSchedule.LogDue()

  mutating func fail(_ pending: [Batch.PendingCompletion], _ refusal: EngineError) {
    for one in pending { completions.append((one.completion, one.failure(refusal))) }
  }

  mutating func fail(_ rolls: [Completion], _ refusal: EngineError) {
    for completion in rolls { completions.append((completion, .failure(refusal))) }
  }
}
