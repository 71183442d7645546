import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// The history of a database: rebuilds past states from a checkpoint and the log after it, beside the running
/// writer. It waits for the writer only if the requested state is not yet on the disk.
///
/// Callers without a thread to block use its two queues. States are rebuilt one at a time, so that any
/// number of callers takes the memory of one more tree besides those that they keep.
final class History: Sendable {
  let directory: DatabaseDirectory
  let pipeline: CommitPipeline
  let isReadOnly: Bool
  let pins = HistoryPins()
  /// The queue on which states are rebuilt.
  let rebuilding = DispatchQueue(label: "dendro.history")
  /// The queue on which `ChangeReader`s read the log, a page at a time.
  let reading = DispatchQueue(label: "dendro.changes")
  private let closed = Atomic<Bool>(false)
  private let followingFailure = Mutex<EngineError?>(nil)

  init(directory: DatabaseDirectory, pipeline: CommitPipeline, isReadOnly: Bool) {
    self.directory = directory
    self.pipeline = pipeline
    self.isReadOnly = isReadOnly
  }

  var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Ends waiting and running reads. It does not wait for them, since they change nothing.
  func close() {
    closed.store(true, ordering: .releasing)
    pipeline.groupCommit.durableSignal.close()
  }

  // MARK: Following another process's writer

  /// Whether the head follows another process's writer.
  var isFollowing: Bool { directory.mode == .following }

  /// Why the writer cannot be followed any more.
  var failure: EngineError? { followingFailure.withLock { $0 } }

  /// Ends following, and waits for more writes, with an error.
  func fail(_ error: EngineError) {
    followingFailure.withLock { $0 = error }
    pipeline.groupCommit.durableSignal.close()
    pipeline.withAdmission { $0.observer }?.failed(error)
  }

  // MARK: Range

  /// The writes at which rebuilding can begin, ascending: those of checkpoints, and write 0, the empty tree
  /// before the first write, if the log begins with that.
  static func bases(_ contents: DatabaseDirectory.Contents) -> [LogSequenceNumber] {
    guard let first = contents.segments.first?.firstLSN else { return [] }
    return (first == LogSequenceNumber(1) ? [.zero] : [])
      + contents.checkpoints.filter { first <= $0.next }
  }

  func range() throws(StorageError) -> HistoryBounds {
    var range = pipeline.range
    for base in Self.bases(try directory.contents()) where base < range.oldest {
      if base == .zero {
        (range.oldest, range.oldestTime) = (.zero, nil)
        break
      }
      do throws(StorageError) {
        (range.oldestTime, range.oldest) = (
          try CheckpointReader.open(directory, lsn: base).time, base
        )
      } catch {
        // Removed meanwhile, or damaged: the next one may be readable.
        if error.isOfProcess { throw error }
        continue
      }
      break
    }
    return range
  }

  /// The error that `point` cannot be read, with the range of states that can.
  func refusal(of point: HistoryPoint) -> EngineError {
    do throws(StorageError) {
      return .outOfHistory(point, try range())
    } catch {
      return .storage(error)
    }
  }

  private func isGone(_ point: HistoryPoint) -> Bool {
    guard let range = try? range() else { return false }
    return switch point {
    case .lsn(let lsn): lsn < range.oldest
    case .time(let time): range.oldestTime.map { time < $0 } ?? false
    }
  }

  // MARK: States

  /// The tree at a point, and the last write in it; nil if `isCancelled`, called after every record, has
  /// returned true. Waits for the disk on the calling thread.
  ///
  /// - Complexity: O(1) for the head; otherwise O(checkpoint + log since).
  func state(at point: HistoryPoint, isCancelled: () -> Bool) throws(EngineError)
    -> HistoryState?
  {
    let head = pipeline.withAdmission { state in
      (
        lsn: state.shownLSN, time: state.lastTime, durable: state.durableLSN,
        root: Self.isHead(point, state) ? HeadNode(state.shownRoot, state.pages) : nil,
        system: state.shownRoots.system
      )
    }
    if let root = head.root {
      return HistoryState(
        roots: TreeRoots(data: try root.whole(), system: head.system), lsn: head.lsn,
        time: head.time)
    }
    if case .lsn(let lsn) = point, lsn > head.lsn { throw refusal(of: point) }
    if isCancelled() { return nil }
    var limit = Replayer.Limit()
    var isWritten = isReadOnly
    switch point {
    case .lsn(let lsn):
      limit.lsn = lsn
      isWritten = isWritten || lsn <= head.durable
    case .time(let time):
      limit.lsn = head.lsn
      limit.time = time
      isWritten = isWritten || head.lsn <= head.durable
    }
    if !isWritten { try pipeline.synchronize() }
    let lease: ReadLease?
    do throws(StorageError) {
      lease = try directory.lease()
    } catch {
      throw .storage(error)
    }
    defer { lease?.end() }
    var highest = LogSequenceNumber(.max)
    var damage: StorageError?
    while true {
      do throws(StorageError) {
        guard
          let (pin, start) = try pins.pin(
            .rebuilding,
            { () throws(StorageError) in
              try self.start(for: limit, highest: highest, &damage)
            })
        else { break }
        defer { pins.remove(pin) }
        highest = LogSequenceNumber(start.lsn.rawValue &- 1)
        var roots = TreeRoots()
        if let checkpoint = start.checkpoint {
          do throws(StorageError) {
            try LogReader.check(checkpoint, in: directory)
            guard
              let decoded = try CheckpointCoding.roots(
                checkpoint, progress: nil, isCancelled: isCancelled)
            else { return nil }
            roots = decoded
          } catch {
            // An older checkpoint with more of the log may be readable.
            guard error.isDamage else { throw error }
            damage = damage ?? error
            continue
          }
        }
        return try replay(
          Replayer(roots, lastLSN: start.lsn, lastTime: start.checkpoint?.time ?? 0), limit,
          isCancelled)
      } catch {
        // A state that was purged meanwhile is no damage.
        if isGone(point) { throw refusal(of: point) }
        throw .storage(error)
      }
    }
    if let damage, !isGone(point) { throw .storage(damage) }
    throw refusal(of: point)
  }

  private static func isHead(_ point: HistoryPoint, _ state: borrowing Admission) -> Bool {
    switch point {
    case .lsn(let lsn): lsn == state.shownLSN
    case .time(let time): time >= state.lastTime
    }
  }

  /// The write at which rebuilding begins, and its checkpoint; nil for the empty tree.
  private struct Start: Sendable {
    var lsn: LogSequenceNumber
    var checkpoint: CheckpointReader?
  }

  /// The nearest base before the limit whose checkpoint can be opened.
  private func start(
    for limit: Replayer.Limit, highest: LogSequenceNumber, _ damage: inout StorageError?
  ) throws(StorageError) -> (lsn: LogSequenceNumber, choice: Start)? {
    for base in Self.bases(try directory.contents()).reversed()
    where base <= min(limit.lsn, highest) {
      if base == .zero { return (.zero, Start(lsn: .zero)) }
      do throws(StorageError) {
        let reader = try CheckpointReader.open(directory, lsn: base)
        guard reader.time <= limit.time else { continue }
        return (base, Start(lsn: base, checkpoint: reader))
      } catch {
        guard case .corrupt = error else { throw error }
        damage = damage ?? error
      }
    }
    return nil
  }

  private func replay(
    _ replayer: consuming Replayer, _ limit: Replayer.Limit, _ isCancelled: () -> Bool
  ) throws(StorageError) -> HistoryState? {
    var replayer = replayer
    let cursor = LogCursor(directory, after: replayer.lastLSN, isLive: true)
    var isBelowLimit = replayer.lastLSN < limit.lsn
    while isBelowLimit {
      if isCancelled() || isClosed { return nil }
      let isMore = try cursor.record { (record, payload) throws(StorageError) in
        // A purge does not wait for readers: the log may now begin behind the checkpoint.
        guard record.firstLSN <= replayer.lastLSN.next else {
          throw missing(replayer.lastLSN.next)
        }
        isBelowLimit = try replayer.replay(record, payload, upTo: limit)
      }
      guard isMore else { throw missing(replayer.lastLSN.next) }
    }
    return HistoryState(
      roots: TreeRoots(data: replayer.root, system: replayer.system), lsn: replayer.lastLSN,
      time: replayer.lastTime)
  }

  /// The error that a write is missing in the log.
  func missing(_ lsn: LogSequenceNumber) -> StorageError {
    .missing(
      directory: directory.path, what: "write \(lsn)", reason: "no record of the log has it")
  }
}

extension CommitPipeline {
  /// The range of a database without readable past: the head alone.
  var range: HistoryBounds {
    withAdmission { state in
      let time = state.lastLSN == .zero ? nil : state.lastTime
      return HistoryBounds(
        oldest: state.lastLSN, oldestTime: time, newest: state.lastLSN, newestTime: time)
    }
  }
}

extension LogCursor {
  /// Takes steps up to the next record with writes.
  ///
  /// - Returns: false at the end of the log.
  /// - Throws: `.corrupt` or `.missing` for a problem that the cursor reports on the way.
  func record(
    _ body: (RecordInfo, UnsafeRawBufferPointer) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    var isTaken = false
    while !isTaken {
      let isMore = try step { (item) throws(StorageError) in
        switch item {
        case .segment: break
        case .problem(let problem):
          throw problem.error
        case .record(let record, _, let payload):
          guard record.kind == .writes, let payload else { return }
          isTaken = true
          try body(record, payload)
        }
      }
      if !isMore { return isTaken }
    }
    return true
  }
}
