package import DendroStorage
import DendroTree

/// Receives a write's LSN (nil if the write changed nothing), or why it failed.
package typealias Completion = @Sendable (Result<LogSequenceNumber?, EngineError>) -> Void

/// Writes that were admitted together and are committed together, in order.
///
/// The open batch belongs to `Admission`. Once taken, it belongs to the one turn that commits it.
struct Batch: ~Copyable {
  /// The encoded writes.
  var encoder = BatchEncoder()
  private(set) var writeCount = 0
  private(set) var lastLSN: LogSequenceNumber?
  /// What undoes the writes. While the batch is in flight, `Admission` has it.
  var undo = UndoLog()
  /// How many writes of a database in memory there are, if the metrics count them.
  var countInMemory = 0
  /// In the order of the calls; that of the barrier, for which threads block, comes last.
  var completions: [PendingCompletion] = []
  /// Whether the batch is synchronized whatever the durability.
  var wantsSynchronize = false
  /// What the threads wait for that block until the batch is durable; nil if there is none, and once it is among
  /// the completions.
  private var barrier: BlockingResult?
  /// The threads that wait for it besides the first one.
  private var furtherBarrierCallerCount = 0
  /// Called with the last LSN before the new segment, once that has begun behind this batch.
  var rolls: [Completion] = []
  /// Whether that segment is one for writes to the second root.
  var addsSecondRoot = false
  /// Why the turn takes the batch back and refuses writes from then on; nil unless an engine with a shared log stops
  /// leading.
  var withholds: EngineError?
  /// Called once the log is closed after this batch.
  var closes: [Completion] = []

  struct PendingCompletion {
    /// The result if the disk takes the batch: `.success(nil)` for a barrier, and for a write that
    /// changed nothing.
    var result: Result<LogSequenceNumber?, EngineError>
    var completion: Completion

    /// With the result that it has if the disk refuses the batch.
    func failing(_ refusal: EngineError) -> Self {
      if case .failure = result { return self }
      return Self(result: .failure(refusal), completion: completion)
    }
  }

  /// Raw bytes after which the next record begins: enough for the compression to find repetitions and for
  /// the header to weigh little, few enough to be read and checked in one piece.
  static let recordByteLimit = 64 << 10

  /// About the memory of a pending completion with its closure's context, in bytes.
  private static let completionByteCount = 192

  /// About the memory that the batch takes, in bytes: backpressure limits it.
  var byteCount: Int {
    encoder.byteCount + completions.count &* Self.completionByteCount
      + undo.byteCount
  }

  var isEmpty: Bool { encoder.records.isEmpty && countInMemory == 0 && hasNoCompletions }
  /// Whether no caller waits for the batch.
  var hasNoCompletions: Bool {
    completions.isEmpty && barrier == nil && rolls.isEmpty && closes.isEmpty
  }
  /// The callers that wait for the batch, or for a write of it.
  var callerCount: Int { completions.count + (barrier == nil ? 0 : 1) + furtherBarrierCallerCount }

  /// Has the next turn synchronize the batch, whatever the durability.
  ///
  /// - Returns: what the caller waits for, as all callers of this batch do. It is set after the completions of its
  ///   writes.
  mutating func joinBarrier() -> BlockingResult {
    wantsSynchronize = true
    if let barrier {
      furtherBarrierCallerCount += 1
      return barrier
    }
    let barrier = BlockingResult()
    self.barrier = barrier
    return barrier
  }

  /// Puts the barrier behind the completions. No thread joins it any more.
  mutating func closeBarrier() {
    guard let barrier = barrier.take() else { return }
    completions.append(.init(result: .success(nil), completion: barrier.set))
  }

  /// Notes a write that was encoded, and its completion.
  @inline(__always)
  mutating func noteWrite(_ lsn: LogSequenceNumber, completion: Completion?) {
    undo.noteWrite(lsn, isReported: completion != nil)
    lastLSN = lsn
    writeCount &+= 1
    if let completion {
      completions.append(.init(result: .success(lsn), completion: completion))
    }
  }

  /// Empties the batch, and keeps its memory for the next one.
  mutating func removeAll() {
    removeWrites()
    countInMemory = 0
    completions.removeForNextBatch()
    wantsSynchronize = false
    precondition(barrier == nil, "a barrier that callers wait for is closed first")
    furtherBarrierCallerCount = 0
    rolls.removeAll()
    addsSecondRoot = false
    withholds = nil
    closes.removeAll()
  }

  /// Removes the completions of writes and barriers, but not those of a close.
  ///
  /// - Returns: them, with the results that they have if the disk refuses the batch.
  mutating func takeCompletions(failing refusal: EngineError) -> [PendingCompletion] {
    closeBarrier()
    for roll in rolls { completions.append(.init(result: .failure(refusal), completion: roll)) }
    defer {
      completions = []
      furtherBarrierCallerCount = 0
      rolls = []
      addsSecondRoot = false
      withholds = nil
    }
    return completions.map { $0.failing(refusal) }
  }

  /// Removes the writes, but not the completions.
  mutating func removeWrites() {
    encoder.removeAll()
    undo.removeAll()
    writeCount = 0
    lastLSN = nil
  }
}

extension Array {
  /// Empties the array, and keeps its memory for the next batch unless a burst has made that large.
  mutating func removeForNextBatch() { removeAll(keepingCapacity: capacity <= 1 << 14) }
}
