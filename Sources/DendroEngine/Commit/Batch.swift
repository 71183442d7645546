package import DendroStorage
import DendroTree

/// Receives a write's LSN (nil where the write changed nothing), or why it failed.
package typealias Completion = @Sendable (Result<LogSequenceNumber?, EngineError>) -> Void

/// Writes that were admitted together and are committed together, in order.
///
/// The open batch belongs to `Admission`. Once taken, it belongs to the one cycle that commits it.
struct Batch {
  /// The encoded writes.
  var encoder = BatchEncoder()
  private(set) var writeCount = 0
  private(set) var firstLSN: LogSequenceNumber?
  private(set) var lastLSN: LogSequenceNumber?
  /// The writes without a completion that would report a failure.
  private(set) var unreported: [LogSequenceNumber] = []
  /// What the writes replaced.
  var undo = UndoLog()
  /// Writes of a database in memory, where the metrics count them.
  var countInMemory = 0
  /// In the order of the calls.
  var completions: [PendingCompletion] = []
  /// Whether the batch is synchronized whatever the durability.
  var wantsSynchronize = false
  /// Called with the last LSN before the new segment, once that has begun behind this batch.
  var rolls: [Completion] = []
  /// Called once the log is closed after this batch.
  var closes: [Completion] = []

  struct PendingCompletion {
    /// The result where the disk takes the batch: `.success(nil)` for a barrier, and for a write that
    /// changed nothing.
    var result: Result<LogSequenceNumber?, EngineError>
    var completion: Completion

    /// The result where the disk refuses the batch.
    func failure(_ refusal: EngineError) -> Result<LogSequenceNumber?, EngineError> {
      if case .failure = result { return result }
      return .failure(refusal)
    }
  }

  /// Raw bytes after which the next record begins: enough for the compression to find repetitions and for
  /// the header to weigh little, few enough to be read and checked in one piece.
  static let recordByteLimit = 64 << 10

  /// About the memory of a pending completion with its closure's context, in bytes.
  private static let completionByteCount = 192

  /// Arrays that a burst has grown beyond this many elements are freed, not kept for the next batch.
  private static let keptCapacityMax = 1 << 14

  /// About the memory that the batch takes, in bytes: backpressure limits it.
  var byteCount: Int {
    encoder.byteCount + completions.count &* Self.completionByteCount
      + undo.byteCount
  }

  var isEmpty: Bool { encoder.records.isEmpty && countInMemory == 0 && hasNoCompletions }
  /// Whether no caller waits for the batch.
  var hasNoCompletions: Bool { completions.isEmpty && rolls.isEmpty && closes.isEmpty }

  /// Notes a write that was encoded, and its completion.
  @inline(__always)
  mutating func noteWrite(_ lsn: LogSequenceNumber, completion: Completion?) {
    if firstLSN == nil { firstLSN = lsn }
    lastLSN = lsn
    writeCount &+= 1
    if let completion {
      completions.append(.init(result: .success(lsn), completion: completion))
    } else {
      unreported.append(lsn)
    }
  }

  /// Empties the batch, and keeps its memory for the next one.
  mutating func removeAll() {
    removeWrites()
    countInMemory = 0
    completions.removeAll(keepingCapacity: completions.capacity <= Self.keptCapacityMax)
    wantsSynchronize = false
    rolls.removeAll()
    closes.removeAll()
  }

  /// Removes the writes, but not the completions.
  mutating func removeWrites() {
    encoder.removeAll()
    undo.removeAll()
    unreported.removeAll(keepingCapacity: unreported.capacity <= Self.keptCapacityMax)
    writeCount = 0
    firstLSN = nil
    lastLSN = nil
  }
}
