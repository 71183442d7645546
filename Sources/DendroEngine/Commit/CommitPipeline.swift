import DendroStorage
import DendroTree
import Synchronization

/// The only place where callers meet: admission on their threads, group commit on one of ours.
///
/// A write is admitted under one short lock: encoded into the open batch, applied to the head,
/// numbered and shown to the observer. A cycle (`CommitPipeline+Cycle.swift`) then takes the whole
/// batch, hands it to the disk, and tells everybody in it. While the disk is busy with one batch the
/// next one gathers; and for a moment where nobody waits for it.
final class CommitPipeline: Sendable {
  let options: EngineOptions
  let clock: any Clock
  let admission: Mutex<Admission>
  /// Whoever holds it may touch the disk. Its store is nil for a database in memory.
  let turn: Mutex<Turn>
  let isPersistent: Bool
  let executor: BlockingExecutor?
  /// Told what happened; never waited for.
  let hooks: Hooks
  /// Callers that wait for the backlog to shrink.
  let backlog = Gate()
  /// Writers that wait for a transaction.
  let waitingWriterCount = Atomic<Int>(0)
  /// Those of them that hold a thread.
  private let heldWriterCount = Atomic<Int>(0)
  /// Told after each cycle how many bytes of log there are since the newest checkpoint.
  let checkpointer = Mutex<Hook?>(nil)
  /// Told after each cycle that there are more durable writes.
  let durableSignal = DurableSignal()
  let spareBuffers = Mutex<[PayloadBuffer]>([])

  /// A closure in a box of its own. One that stood in the mutex itself, a generic type, would be
  /// wrapped in two more thunks by every access, without end: calls would become slower and slower,
  /// and at last overflow the stack.
  struct Hook: Sendable {
    let call: @Sendable (UInt64) -> Void
  }

  /// Where the engine stands between two writes.
  enum Phase {
    case running
    /// The disk had no room; a probe append decides when there is some.
    case full(StorageError)
    /// The disk refused in a way after which its state is unknown.
    case poisoned(EngineError)
    /// Nothing is admitted any more; the last cycle is still to come.
    case closing
    case closed

    var refusal: EngineError? {
      switch self {
      case .running: return nil
      case .full(let error): return .diskFull(error)
      case .poisoned(let error): return error
      case .closing, .closed: return .closed
      }
    }
  }

  /// What the thread does, and hence what it has to be woken for.
  enum ThreadState {
    /// It looks at the open batch before it sleeps.
    case busy
    /// It lets a batch for which nobody waits grow for a moment.
    case gathering
    case idle
  }

  /// What the disk is busy with, as far as it is needed to take it back.
  struct InFlight {
    var writes: [Batch.Admitted] = []
    var changes: [Change] = []
  }

  /// What the admission lock guards.
  struct Admission {
    /// The tree with every admitted write.
    var root: Node
    var lastLSN: LogSequenceNumber
    /// Of the last write; times never decrease.
    var lastTime: Int64
    var acknowledged: LogSequenceNumber
    var durable: LogSequenceNumber
    /// What gathers until the thread takes it.
    var batch = Batch()
    var inFlight = InFlight()
    var phase = Phase.running
    /// While a transaction runs.
    var transaction: RunningTransaction?
    /// What the disk refused before the engine was closed, or while it closes: closing tells it again.
    var poison: EngineError?
    var observer: (any CommitObserver)?
    var thread = ThreadState.busy
    var wantsProbe = false
    /// Of the write encoded last: the next one says what it shares with it.
    var previousPath = Path.root
    var memory: MemoryGauge
    var statistics = EngineStatistics()
  }

  init(
    root: Node, lastLSN: LogSequenceNumber, lastTime: Int64, store: consuming sending Store?,
    clock: any Clock, options: EngineOptions
  ) {
    self.options = options
    self.clock = clock
    hooks = Hooks(options)
    isPersistent = store != nil
    admission = Mutex(
      Admission(
        root: root, lastLSN: lastLSN, lastTime: lastTime, acknowledged: lastLSN, durable: lastLSN,
        memory: MemoryGauge(limit: options.memoryByteLimit)))
    turn = Mutex(Turn(store: store))
    executor = options.execution == .thread ? BlockingExecutor() : nil
  }

  // MARK: Admission

  /// Admits one write: once this returns the head shows it, or `completion` will say why not. What a
  /// transaction's block writes is admitted after the transaction.
  ///
  /// Any thread that may wait, but not from within a completion where the backlog could be over its limit.
  func submit(_ draft: Draft, completion: Completion?) {
    let ahead = encodeAhead(draft)
    var outcome = offer(draft, body: ahead, completion, mayWait: true)
    while case .waits(let reservation) = outcome {
      waitingWriterCount.add(1, ordering: .relaxed)
      heldWriterCount.add(1, ordering: .relaxed)
      let isReleased = reservation.wait()
      heldWriterCount.subtract(1, ordering: .relaxed)
      waitingWriterCount.subtract(1, ordering: .relaxed)
      outcome = offer(draft, body: ahead, completion, mayWait: isReleased)
    }
    if let ahead { giveBack(ahead) }
    if case .refused(let refusal) = outcome { tell(refusal, completion) }
    if case .held = outcome { return }
    if executor != nil { backlog.wait() }
  }

  /// `submit`, and waits until the write is as durable as the options ask: without holding a thread at
  /// any point. It waits for the backlog before it is admitted, since nothing else would bound what any
  /// number of tasks admits.
  func write(_ draft: Draft) async -> Result<LogSequenceNumber?, EngineError> {
    let mayHaveToWait = executor != nil
    var mustPassOn = mayHaveToWait ? await backlog.pass() : false
    let ahead = encodeAhead(draft)
    var mayWait = true
    while true {
      let answer = await withUnsafeContinuation { (task: UnsafeContinuation<Answer, Never>) in
        let outcome = offer(
          draft, body: ahead, { task.resume(returning: .told($0)) }, mayWait: mayWait)
        if mustPassOn { backlog.passOn() }
        if case .waits(let reservation) = outcome {
          return task.resume(returning: .waits(reservation))
        }
        if let ahead { giveBack(ahead) }
        if case .refused(let refusal) = outcome { task.resume(returning: .told(.failure(refusal))) }
      }
      switch answer {
      case .told(let result): return result
      case .waits(let reservation):
        mustPassOn = false
        waitingWriterCount.add(1, ordering: .relaxed)
        mayWait = await reservation.wait()
        waitingWriterCount.subtract(1, ordering: .relaxed)
      }
    }
  }

  private enum Answer {
    case told(Result<LogSequenceNumber?, EngineError>)
    case waits(Reservation)
  }

  /// Threads that writes hold at this moment, since they wait for the disk or for a transaction.
  var heldThreadCount: Int {
    backlog.heldThreadCount + heldWriterCount.load(ordering: .relaxed)
  }

  func tell(_ refusal: EngineError, _ completion: Completion?) {
    if let completion {
      completion(.failure(refusal))
    } else {
      options.unreportedFailure?(refusal, .zero)
    }
  }

  private func offer(
    _ draft: Draft, body: PayloadBuffer?, _ completion: Completion?, mayWait: Bool
  ) -> Standing {
    let now = clock.now()
    return withAdmission { state -> Standing in
      var refusal: EngineError?
      if state.transaction != nil {
        switch standing(of: draft, completion, mayWait: mayWait, &state) {
        case .free: break
        case .refused(let error): refusal = error
        case let standing: return standing
        }
      }
      if refusal == nil {
        refusal = admit(draft, body: body, now: now, completion: completion, into: &state)
      }
      guard let refusal else { return .free }
      return tellInTurn(refusal, completion, &state) ? .free : .refused(refusal)
    }
  }

  /// Has `completion` told in its turn, after the writes before it.
  ///
  /// - Returns: false where it has to be told at once.
  func tellInTurn(
    _ refusal: EngineError, _ completion: Completion?, _ state: inout Admission
  ) -> Bool {
    if case .closed = state.phase { return false }
    guard let completion else { return false }
    state.batch.waiting.append(.init(result: .failure(refusal), completion: completion))
    return true
  }

  /// Runs `body` under the admission lock and wakes the thread where there is work for it after.
  @inline(__always)
  func withAdmission<R: Sendable>(_ body: (inout Admission) -> R) -> R {
    let (result, wakes) = admission.withLock { state -> (R, Bool) in
      let result = body(&state)
      let wakes: Bool
      switch state.thread {
      case .busy: wakes = false
      case .gathering: wakes = state.wantsProbe || !mayGrow(state.batch)
      case .idle: wakes = state.wantsProbe || !state.batch.isEmpty
      }
      if wakes { state.thread = .busy }
      return (result, wakes)
    }
    if wakes { executor?.wake() }
    return result
  }

  /// Whether nothing is lost for anybody if the batch goes to the disk a little later.
  func mayGrow(_ batch: borrowing Batch) -> Bool {
    batch.isAwaitedByNobody
      && batch.payload.count < min(Batch.recordByteLimit, options.backlogByteLimit)
  }

  // MARK: Barriers

  /// Adds to the open batch whatever `add` asks for, which may look at the head in the same moment; where
  /// nothing is taken to the disk any more, `completion` is told so instead.
  func request(_ completion: Completion, _ add: (inout Admission) -> Void) {
    let refusal = withAdmission { state -> EngineError? in
      switch state.phase {
      case .running: break
      case .full(let error):
        state.wantsProbe = true
        return .diskFull(error)
      case .poisoned(let error): return error
      case .closing, .closed: return .closed
      }
      add(&state)
      return nil
    }
    if let refusal { completion(.failure(refusal)) }
  }

  /// Admits `last` and then nothing any more; `completion` is told once everything before is on disk and
  /// the directory is let go. At most once.
  ///
  /// A transaction that is running will be refused. What its block has written until now comes after it,
  /// as ever, and hence before `last`.
  func requestClose(writing last: Draft?, _ completion: @escaping Completion) {
    let now = clock.now()
    let (isClosed, refused) = withAdmission { state -> (Bool, [(EngineError, Completion?)]) in
      if case .closed = state.phase { return (true, []) }
      var writes = state.transaction?.takeHeldWrites() ?? []
      if let last { writes.append((last, nil)) }
      let refused = admit(writes, now: now, &state)
      if case .poisoned(let error) = state.phase { state.poison = error }
      state.phase = .closing
      state.transaction?.release()
      state.batch.closes.append(completion)
      return (false, refused)
    }
    for (refusal, completion) in refused { tell(refusal, completion) }
    if isClosed {
      if last != nil { options.unreportedFailure?(.closed, .zero) }
      return completion(.success(nil))
    }
    backlog.open()
  }

  /// Before anything was admitted: there will be no thread, and hence nobody is to wait for it.
  func giveUp() { withAdmission { $0.phase = .closed } }

  /// For a follower of another process's writer.
  func replaceHead(root: Node, lsn: LogSequenceNumber, time: Int64) {
    withAdmission { state in
      state.root = root
      state.lastLSN = lsn
      state.acknowledged = lsn
      state.durable = lsn
      state.lastTime = time
    }
  }

  /// For a reader: what is known to be durable of what it found.
  func knowDurable(upTo lsn: LogSequenceNumber) {
    withAdmission { $0.durable = min(lsn, $0.lastLSN) }
  }

  // MARK: One write

  func admit(
    _ draft: Draft, body: PayloadBuffer?, now: Int64, completion: Completion?,
    into state: inout Admission
  ) -> EngineError? {
    if let body, body.count > options.writeByteLimit {
      return .writeTooLarge(bytes: body.count, limit: options.writeByteLimit)
    }
    if case .running = state.phase {
      // Nearly always, and without copying what the other phases hold.
    } else if let refusal = state.phase.refusal {
      if case .full = state.phase { state.wantsProbe = true }
      return refusal
    }
    let time = max(state.lastTime, now)
    return draft.deferred.isEmpty
      ? admit(resolved: draft.write, body: body, time: time, completion: completion, into: &state)
      : admit(
        resolved: draft.resolved(time: time, against: state.root), body: body, time: time,
        completion: completion, into: &state)
  }

  private func admit(
    resolved write: Write, body: PayloadBuffer?, time: Int64, completion: Completion?,
    into state: inout Admission
  ) -> EngineError? {
    if let refusal = state.memory.refusal(for: write, root: state.root) { return refusal }
    if case .setPriority(let path, _) = write, state.root.node(at: path).isEmpty {
      return .noData(path)
    }
    let lsn = state.lastLSN.next
    let mark = isPersistent ? encode(write, body: body, lsn: lsn, time: time, into: &state) : nil
    let size = mark.map { state.batch.payload.count - $0.start } ?? sizeInMemory(write, body, state)
    if size > options.writeByteLimit {
      if let mark { takeBack(mark, &state) }
      return .writeTooLarge(bytes: size, limit: options.writeByteLimit)
    }
    let firstChange = state.batch.changes.count
    if let mark {
      state.batch.payload.withBytes { payload in
        let body = UnsafeRawBufferPointer(rebasing: payload[mark.body...])
        state.root.apply(write, packed: body, recording: &state.batch.changes)
      }
    } else {
      state.root.apply(write, recording: &state.batch.changes)
    }
    let changeCount = state.batch.changes.count - firstChange
    guard changeCount > 0 else {
      if let mark { takeBack(mark, &state) }
      if let completion {
        state.batch.waiting.append(.init(result: .success(nil), completion: completion))
      }
      return nil
    }
    state.memory.admitted(
      write, encodedByteCount: size, replaced: state.batch.changes[firstChange...])
    if mark != nil {
      state.statistics.rawByteCount += UInt64(size)
      state.previousPath = write.path
      if state.batch.payload.count > options.backlogByteLimit {
        backlog.close()
      }
    }
    state.lastLSN = lsn
    state.lastTime = time
    state.statistics.writeCount += 1
    if let observer = state.observer {
      observer.committed(
        Commit(lsn: lsn, time: time, changes: state.batch.changes[firstChange...], isUndo: false),
        root: state.root)
    }
    if isPersistent {
      // A new subtree that is held would make the next write into it copy, and a string would be let go
      // by the other thread.
      for i in firstChange..<state.batch.changes.count { state.batch.changes[i].new = .empty }
      state.batch.writes.append(
        .init(lsn: lsn, changeCount: Int32(changeCount), isReported: completion != nil))
    } else {
      state.batch.changes.removeAll(keepingCapacity: true)
      if hooks.wantsMetrics { state.batch.countInMemory += 1 }
    }
    if let completion {
      state.batch.waiting.append(.init(result: .success(lsn), completion: completion))
    }
    return nil
  }
}
