import DendroStorage
import DendroTree
import Synchronization

/// Keeps the head of a read-only engine at the newest state of a directory that another process writes.
///
/// A look takes what the log has got since the last one, write by write, so that the observer sees each of them
/// as it sees the writes of a writing engine. Where the log does not continue from the head, the directory is read
/// anew, and the observer sees the difference: the writer has taken back what its disk refused, or has removed
/// more than the limit up to which it keeps the log for readers.
///
/// Looks are taken on a thread of its own, or by `Engine.refresh()`; one at a time. A call that the system refuses ends
/// a look and not the following: the next look goes on where it was, after pauses that grow.
final class LogFollower: Sendable {
  private let history: History
  private let databaseID: DatabaseID?
  private let interval: Duration
  private let executor: BlockingExecutor?
  private let state: Mutex<State>

  private struct State {
    var cursor: LogCursor
    var position: PublishedPosition?
    /// The last write in the head.
    var lastLSN: LogSequenceNumber
    /// The looks, one after the other, that ended at bytes that cannot be read.
    var unreadableCount = 0
    /// Whether the directory has to be read anew, which a look before could not do.
    var needsReadAnew = false
    /// The looks, one after the other, that a refused call has ended.
    var refusalCount = 0
  }

  private var directory: DatabaseDirectory { history.directory }
  private var pipeline: CommitPipeline { history.pipeline }

  /// Raw bytes of the log after which a look ends.
  private static let lookByteLimit = 1 << 20

  /// - Parameters:
  ///   - recovered: what opening has read.
  ///   - position: published for what opening has read.
  ///   - interval: between two looks of the thread; nil for no thread.
  init(
    _ history: History, _ recovered: Recovery.Result, _ position: PublishedPosition?,
    interval: Duration?
  ) {
    self.history = history
    databaseID = recovered.databaseID
    self.interval = interval ?? .zero
    executor = interval == nil ? nil : BlockingExecutor(name: "dendro-follow")
    let cursor = Self.cursor(history.directory, behind: recovered)
    state = Mutex(State(cursor: cursor, position: position, lastLSN: recovered.lastLSN))
  }

  private static func cursor(
    _ directory: DatabaseDirectory, behind recovered: Recovery.Result
  ) -> LogCursor {
    recovered.end.map { LogCursor(directory, following: $0) }
      ?? LogCursor(directory, after: recovered.lastLSN, isLive: true)
  }

  func start() throws(SystemError) {
    try executor?.start { [self] in turn() }
  }

  /// Ends the thread. A look that is being taken ends soon.
  func close() {
    executor?.wake()
    // A look that is being taken does the same at its end.
    _ = state.withLockIfAvailable { $0.position = nil }
  }

  private func turn() -> BlockingExecutor.Pause? {
    if history.isClosed { return nil }
    do throws(EngineError) {
      return try look() ? BlockingExecutor.Pause.none : .atMost(pause)
    } catch {
      // A writer is removing files for long.
      if case .storage(.locked) = error { return .atMost(interval) }
      return history.failure == nil && !history.isClosed ? .atMost(pause) : nil
    }
  }

  private var pause: Duration {
    Self.pause(interval, after: state.withLock { max($0.unreadableCount, $0.refusalCount) })
  }

  /// The pause before the next look. It grows while nothing can be read: the last segment may have to be read again
  /// for each look, and what the system lacks does not come back sooner by asking.
  ///
  /// - Parameter count: the looks, one after the other, that could not read.
  static func pause(_ interval: Duration, after count: Int) -> Duration {
    count == 0 ? interval : max(interval, min(interval * (1 << min(count, 10)), .seconds(1)))
  }

  // MARK: Looking

  /// Takes what is new, up to a limit.
  ///
  /// - Returns: whether there may be more.
  /// - Throws: `.storage` of a call that was refused, or where a writer keeps readers out: the next look tries again.
  ///   Any other error is why the directory cannot be followed any more, from then on at each call.
  func look() throws(EngineError) -> Bool {
    if let failure = history.failure { throw failure }
    let (result, event) = state.withLock { (state) -> (Result<Bool, StorageError>, LogEvent?) in
      let result = Result { () throws(StorageError) in try take(&state) }
      return (result, noteOutcome(result, &state))
    }
    if let event { pipeline.instrumentation.record(event) }
    switch result {
    case .success(let isMore): return isMore
    case .failure(.locked(let path, let pid)): throw .storage(.locked(path: path, pid: pid))
    case .failure(let error):
      if history.isClosed { throw .closed }
      if case .io = error { throw .storage(error) }
      history.fail(.storage(error))
      // Nothing is kept for a follower that has ended.
      state.withLock { $0.position = nil }
      throw .storage(error)
    }
  }

  /// Counts refused looks.
  ///
  /// - Returns: what there is to report: the first of several refusals, and their end.
  private func noteOutcome(
    _ result: Result<Bool, StorageError>, _ state: inout State
  ) -> LogEvent? {
    let count = state.refusalCount
    switch result {
    case .success:
      state.refusalCount = 0
      return count == 0
        ? nil : LogEvent(.info, "the writer is followed again", ["attempts": String(count)])
    case .failure(let error):
      guard case .io = error, !history.isClosed else { return nil }
      state.refusalCount = count + 1
      return count > 0
        ? nil
        : LogEvent(
          .warning, "the writer cannot be followed for now", ["error": error.description])
    }
  }

  private func take(_ state: inout State) throws(StorageError) -> Bool {
    var isMore = true
    if !state.needsReadAnew { isMore = try takeRecords(&state) }
    if history.isClosed {
      state.position = nil
      return false
    }
    if !state.needsReadAnew, try isPassedOver(&state) { state.needsReadAnew = true }
    if state.needsReadAnew {
      try readAnew(&state)
      state.needsReadAnew = false
    }
    let lastLSN = state.lastLSN
    state.position?.move(to: lastLSN)
    note(durable: min(state.cursor.durableLSN, lastLSN))
    return isMore
  }

  /// Takes the records behind the last one, up to a limit or to where the log does not continue.
  ///
  /// - Returns: whether there may be more.
  private func takeRecords(_ state: inout State) throws(StorageError) -> Bool {
    var byteCount = 0
    var isMore = true
    let cursor = state.cursor
    while isMore, !state.needsReadAnew, byteCount < Self.lookByteLimit, !history.isClosed {
      do throws(StorageError) {
        isMore = try cursor.step { (item) throws(StorageError) in
          switch item {
          case .segment(let header, _, _):
            // Behind a gap there may be a segment without records.
            if header.databaseID != databaseID || header.firstLSN > state.lastLSN.next {
              state.needsReadAnew = true
            }
          case .problem: state.needsReadAnew = true
          case .record(let record, _, let payload):
            guard !state.needsReadAnew, let payload, record.firstLSN <= state.lastLSN.next else {
              state.needsReadAnew = true
              return
            }
            byteCount += payload.count
            try apply(record, payload, &state)
          }
        }
      } catch {
        // A segment that was listed may be gone: the writer removes what is old, and takes back what its disk
        // refuses.
        guard case .io(_, _, _, .noSuchFile) = error else { throw error }
        state.needsReadAnew = true
      }
    }
    return isMore
  }

  private func apply(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, _ state: inout State
  ) throws(StorageError) {
    guard record.kind == .writes else { return }
    var reader = LogV1Reader()
    reader.restart(record, payload)
    for _ in 0..<record.count {
      let write: WriteView
      do throws(CodingError) {
        write = try reader.next()
      } catch {
        throw error.located(in: record)
      }
      guard reader.lsn > state.lastLSN else { continue }
      let (root, pages) = pipeline.withAdmission { ($0.root, $0.pages) }
      if let pages, pages.isPartial {
        do throws(PageFailure) {
          try root.load(for: write)
        } catch {
          throw pages.storageError(error)
        }
      }
      let (lsn, time) = (reader.lsn, reader.time)
      let change = reader.system
      pipeline.withAdmission { $0.follow(write, system: change, lsn, time) }
      state.lastLSN = lsn
    }
    guard reader.isAtEnd else {
      throw CodingError(expected: "the end of the record's writes", found: "more bytes").located(
        in: record)
    }
  }

  /// Whether the cursor has stopped in front of bytes that no writer is about to complete. Reading the directory
  /// anew then throws where they are damage.
  private func isPassedOver(_ state: inout State) throws(StorageError) -> Bool {
    guard state.cursor.unreadableOffset != nil else {
      state.unreadableCount = 0
      return false
    }
    state.unreadableCount += 1
    // Rarer and rarer: what a crash has left stays until the next writer opens the directory.
    let count = state.unreadableCount
    guard count > 1, count & (count - 1) == 0 || count.isMultiple(of: 64) else { return false }
    return try state.cursor.isPassedOver()
  }

  /// Reads the whole directory, and shows the observer the difference.
  ///
  /// All pages are read, since listeners of any location may get them.
  private func readAnew(_ state: inout State) throws(StorageError) {
    let lease = try directory.lease()
    defer { lease?.end() }
    var recovery = Recovery(directory: directory, readsAll: true, progress: nil)
    let recovered = try recovery.run()
    guard recovered.databaseID == databaseID else {
      throw .ownershipLost(path: directory.path, reason: "another database stands there now")
    }
    // Another lock file may stand there now.
    state.position = try directory.publishPosition(recovered.lastLSN)
    state.cursor = Self.cursor(directory, behind: recovered)
    state.lastLSN = recovered.lastLSN
    pipeline.replaceHead(recovered, showsDifference: true)
    wakeWaiters(upTo: pipeline.withAdmission { $0.durableLSN })
  }

  private func note(durable: LogSequenceNumber) {
    let isMore = pipeline.withAdmission { admission in
      guard durable > admission.durableLSN else { return false }
      admission.durableLSN = durable
      return true
    }
    if isMore { wakeWaiters(upTo: durable) }
  }

  private func wakeWaiters(upTo durable: LogSequenceNumber) {
    let signal = pipeline.groupCommit.durableSignal
    if signal.hasWaiters { signal.advance(to: durable) }
  }
}
