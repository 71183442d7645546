package import DendroStorage
import DendroTree

/// What a write's caller is told: the write's number (nil where it changed nothing), or why it failed.
package typealias Completion = @Sendable (Result<LogSequenceNumber?, EngineError>) -> Void

/// Writes that were admitted together and go to the disk together, in order.
///
/// The open batch belongs to admission; once taken, it belongs to the one cycle that writes it.
struct Batch {
  /// The encoded writes, record after record.
  var payload = PayloadBuffer()
  /// Where the records lie in `payload`.
  var records: [RecordSpan] = []
  /// The writes, oldest first.
  var writes: [Admitted] = []
  /// What the writes replaced, write after write: what is needed to take them back.
  var changes: [Change] = []
  /// Writes of a database in memory, where somebody wants the figure.
  var countInMemory = 0
  /// Who waits, in the order in which they are to be told.
  var waiting: [Waiting] = []
  /// Whether somebody asked for a synchronize whatever the durability.
  var wantsSynchronize = false
  /// Who waits for a new segment to begin after this batch, and for all before it to be durable.
  var rolls: [Completion] = []
  /// Who waits for the log to be closed after this batch.
  var closes: [Completion] = []

  struct RecordSpan {
    var start: Int
    var end: Int
    var firstLSN: LogSequenceNumber
    var count: Int
    /// Milliseconds since 1970 of the first write.
    var baseTime: Int64
    /// Of the last write so far.
    var lastTime: Int64
  }

  struct Admitted {
    var lsn: LogSequenceNumber
    /// How many of the batch's changes are this write's.
    var changeCount: Int32
    /// Whether a completion tells of a failure.
    var isReported: Bool
  }

  struct Waiting {
    /// What to say where the disk does not refuse; nil inside for a write that changed nothing and for
    /// a barrier.
    var result: Result<LogSequenceNumber?, EngineError>
    var completion: Completion

    /// What to say where the disk refuses with `refusal`.
    func failure(_ refusal: EngineError) -> Result<LogSequenceNumber?, EngineError> {
      if case .failure = result { return result }
      return .failure(refusal)
    }
  }

  /// Raw bytes after which a record is closed and the next begins: long enough for the compression to
  /// see some text and the header to weigh nothing, short enough to be checked in one go.
  static let recordByteLimit = 64 << 10

  /// Whether there is nothing to do and nobody to tell.
  var isEmpty: Bool { records.isEmpty && countInMemory == 0 && isAwaitedByNobody }
  /// Whether nobody is told when it is on the disk.
  var isAwaitedByNobody: Bool { waiting.isEmpty && rolls.isEmpty && closes.isEmpty }
  var lastLSN: LogSequenceNumber? { writes.last?.lsn }

  /// Forgets everything but keeps the memory for the next batch.
  mutating func removeAll() {
    payload.removeAll()
    records.removeAll(keepingCapacity: true)
    // What a burst has blown up is not kept.
    writes.removeAll(keepingCapacity: writes.capacity <= 1 << 14)
    changes.removeAll(keepingCapacity: changes.capacity <= 1 << 14)
    countInMemory = 0
    waiting.removeAll(keepingCapacity: true)
    wantsSynchronize = false
    rolls.removeAll()
    closes.removeAll()
  }

  /// Forgets the writes, but not who waits.
  mutating func forgetWrites() {
    payload.removeAll()
    records.removeAll()
    writes.removeAll()
    changes.removeAll()
  }
}
