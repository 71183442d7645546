import DendroStorage
import DendroTree
import Synchronization

/// The way of a write from the call to its completion.
///
/// Any thread may call it. A write is admitted on the caller's thread — one that is awaited on a thread of the pool — under one
/// short lock (`AdmissionLock`): applied to the head, numbered, shown to the observer, and encoded into the open batch.
/// A turn (`GroupCommit`) of the commit thread, or of a caller of `synchronize()`, then takes the whole batch, writes it to the
/// disk and calls its completions, while the next batch grows. `TransactionRunner` admits the result of a transaction.
final class CommitPipeline: Sendable {
  let options: EngineOptions
  let clock: any Clock
  let admission: AdmissionLock
  /// Readers of the head that do not take the admission lock.
  let readers: HeadReaders
  let groupCommit: GroupCommit
  let stall = WriteStall()
  /// The commit thread; nil under inline execution.
  let executor: BlockingExecutor?
  let instrumentation: Instrumentation
  /// Whether there is a log.
  let isPersistent: Bool
  /// Writers that wait for a transaction.
  let waitingWriterCount = Atomic<Int>(0)
  /// Writers that wait for a transaction and block their thread.
  private let heldWriterCount = Atomic<Int>(0)
  /// Held while the tree's memory is measured.
  private let measurement = Mutex(())

  init(
    root: Node, pages: CheckpointPages? = nil, system: Node = .empty,
    lastLSN: LogSequenceNumber, lastTime: Int64,
    disk: consuming sending DiskState?, sharing: Sharing? = nil, clock: any Clock,
    options: EngineOptions
  ) {
    self.options = options
    self.clock = clock
    instrumentation = Instrumentation(options)
    executor = options.execution == .thread ? BlockingExecutor(name: "dendro-commit") : nil
    isPersistent = disk != nil
    let limits = Admission.Limits(
      writeByteCount: options.writeByteLimit, stallByteCount: options.stallByteLimit,
      synchronizesAll: options.durability == .everyCommit || sharing != nil,
      isPersistent: isPersistent, countsWrites: instrumentation.wantsMetrics)
    let secondRoot: Admission.SecondRoot =
      disk?.log.hasSecondRoot ?? true ? .present : .absent
    let readers = HeadReaders()
    self.readers = readers
    admission = AdmissionLock(
      Admission(
        head: Head(root, pages, readers, isShown: sharing?.showsAtOnce ?? true), system: system,
        secondRoot: secondRoot,
        lastLSN: lastLSN, lastTime: lastTime,
        memory: MemoryGauge(limit: options.memoryByteLimit), limits: limits,
        schedule: CommitSchedule(options)), wakes: executor)
    if let sharing {
      admission.withLockInTurn {
        $0.phase = .withheld(.unavailable("the database is being opened"))
        if !sharing.showsAtOnce { $0.covered = CoveredState($0.roots, lastLSN) }
      }
    }
    groupCommit = GroupCommit(
      admission: admission, stall: stall, disk: disk, shared: sharing?.log,
      instrumentation: instrumentation, options: options)
    pages?.reportDamage { [instrumentation] in instrumentation.record(.damage($0)) }
  }

  @inline(__always)
  func withAdmission<R: Sendable>(_ body: (inout Admission) -> R) -> R { admission.withLock(body) }

  // MARK: Writing

  /// Admits one write: once this returns the head shows it, or `completion` gets the reason why not. A
  /// write made by a transaction's block is admitted after the transaction.
  ///
  /// Waits on the calling thread if the disk is behind or full, or a transaction has reserved the
  /// path. A call from within a completion does not wait.
  ///
  /// - Parameter write: copied if it has to wait.
  @inline(__always)
  func submit(_ write: WriteView, completion: Completion?) {
    let now = clock.now()
    if withAdmission({ $0.admitAtOnce(write, now: now, completion: completion) }) { return }
    submitWaiting(write, completion)
  }

  @inline(never)
  private func submitWaiting(_ write: WriteView, _ completion: Completion?) {
    submit(EncodedWrite.keeping(write), completion: completion)
  }

  /// `submit` of a write that is kept.
  ///
  /// - Parameter judge: asked whether the write may be made.
  func submit(_ write: EncodedWrite, judge: (any WriteJudge)? = nil, completion: Completion?) {
    submit(write, completion, permittedWaits(judge))
  }

  /// Submits what a transaction's block has written: when it has ended, or before the engine is closed.
  ///
  /// - Parameter gate: holds the completions back.
  func submit(_ writes: BlockWrites, _ gate: CompletionGate? = nil) {
    writes.takeAll { write, judge, completion in
      var permitted = permittedWaits(judge)
      permitted.transaction = false
      submit(write, completion.map { gate?.holding($0) ?? $0 }, permitted)
    }
  }

  private func submit(
    _ write: EncodedWrite, _ completion: Completion?, _ permitted: PermittedWaits
  ) {
    var waits = permitted
    while let pause = settle(write, completion, &waits) {
      switch pause {
      case .disk: waitForDisk(&waits)
      case .transaction(let reservation):
        waitingWriterCount.add(1, ordering: .relaxed)
        heldWriterCount.add(1, ordering: .relaxed)
        waits.transaction = reservation.wait()
        heldWriterCount.subtract(1, ordering: .relaxed)
        waitingWriterCount.subtract(1, ordering: .relaxed)
      case .secondRoot:
        // A completion cannot wait for the turn of which it is a part.
        if groupCommit.isCommitting {
          return submitBehindSecondRoot(write, waits.judging?.judge, completion)
        }
        do throws(EngineError) { try addSecondRoot() } catch { return report(error, completion) }
      }
    }
  }

  /// Admits one write, and waits without blocking a thread until it is as durable as the options ask.
  func write(
    _ write: EncodedWrite, judge: (any WriteJudge)? = nil
  ) async -> Result<LogSequenceNumber?, EngineError> {
    var waits = permittedWaits(judge)
    while true {
      let hasStalled = waits.passesOn
      let answer = await withUnsafeContinuation { (task: UnsafeContinuation<Answer, Never>) in
        let pause = settle(write, { task.resume(returning: .result($0)) }, &waits)
        if let pause { task.resume(returning: .pause(pause)) }
      }
      switch answer {
      case .result(let result): return result
      case .pause(.disk):
        await stall.waitSuspended(isFirst: hasStalled)
        waits.passesOn = true
      case .pause(.transaction(let reservation)):
        waitingWriterCount.add(1, ordering: .relaxed)
        waits.transaction = await reservation.wait()
        waitingWriterCount.subtract(1, ordering: .relaxed)
      case .pause(.secondRoot):
        do throws(EngineError) {
          try await addSecondRootSuspended()
        } catch {
          return .failure(error)
        }
      }
    }
  }

  private enum Answer {
    case result(Result<LogSequenceNumber?, EngineError>)
    case pause(Pause)
  }

  /// What a writer waits for before its write is offered again.
  enum Pause {
    case disk
    case transaction(Reservation)
    /// The beginning of a segment for writes to the second root.
    case secondRoot
  }

  /// Under inline execution the caller does the disk's work itself.
  func permittedWaits(_ judge: (any WriteJudge)? = nil) -> PermittedWaits {
    var waits = PermittedWaits(disk: executor != nil)
    waits.judging = judge.map { Judging($0) }
    return waits
  }

  /// Offers a write until it is settled or has to wait, and does without the lock what the offers ask for.
  ///
  /// - Parameter then: called under the lock as soon as the write is admitted or refused.
  /// - Returns: nil once the write is settled: admitted, refused, or kept until the transaction has ended.
  func settle(
    _ write: EncodedWrite, _ completion: Completion?, _ waits: inout PermittedWaits,
    then: ((inout Admission) -> Void)? = nil
  ) -> Pause? {
    write.prepare(isLogged: isPersistent)
    var reservation: BlockWrites?
    defer { if let reservation { endReservation(reservation) } }
    // A task that has waited for the disk offers its write first, since that lets the next one pass.
    if let judging = waits.judging, judging.time == nil, !waits.passesOn,
      let refusal = judge(write, judging)
    {
      if let then { withAdmission(then) }
      report(refusal, completion)
      return nil
    }
    while true {
      let now = clock.now()
      let outcome = withAdmission { admission in
        let outcome = write.withView { admission.offer($0, now: now, completion, &waits) }
        switch outcome {
        case .settled, .refused: then?(&admission)
        // Under the lock: the stall begins before a turn can take the batch and end it.
        case .waitsForDisk: stall.begin()
        default: break
        }
        return outcome
      }
      if waits.passesOn {
        waits.passesOn = false
        stall.passOn()
      }
      switch outcome {
      case .settled: return nil
      case .refused(let refusal):
        if forward(write, refusal, completion, waits) { return nil }
        // It may have begun to lead meanwhile.
        if case .unavailable = refusal, isPersistent, leadsAgain { continue }
        report(refusal, completion)
        return nil
      case .followsTransaction(let writes):
        if !writes.append(write, waits.judging?.judge, completion) {
          report(.tooManyWaiting(limit: BlockWrites.limit), completion)
        }
        return nil
      case .waitsForDisk: return .disk
      case .waitsForTransaction(let reservation): return .transaction(reservation)
      case .needsSecondRoot: return .secondRoot
      case .needsMeasure: measureMemory(for: write.withView { $0.factsOfAll })
      case .needsPages(let root, let pages):
        if let failure = load(pages, of: root, for: write) {
          if let then { withAdmission(then) }
          report(failure, completion)
          return nil
        }
      case .needsJudgement(let head, let time):
        guard let judging = waits.judging else {
          preconditionFailure("only a write that has a judge needs a judgement")
        }
        if judging.needsReservation, reservation == nil {
          reservation = reserveAll()
          if reservation != nil {
            waits.transaction = false
            continue
          }
        }
        if let refusal = judging.judge(write, on: head, time: time) {
          if let then { withAdmission(then) }
          report(refusal, completion)
          return nil
        }
      case .needsComparison(let existing):
        waits.comparison = write.withView { PermittedWaits.Comparison($0, with: existing) }
      }
    }
  }

  /// Has a write judged on the head, unless it may have to wait first.
  ///
  /// - Returns: why it is refused.
  private func judge(_ write: EncodedWrite, _ judging: Judging) -> EngineError? {
    let now = clock.now()
    return withAdmission { $0.headToJudge(now: now) }.flatMap { head, time in
      judging.judge(write, on: head, time: time)
    }
  }

  /// Has all other writes wait, as if a transaction had reserved the root.
  ///
  /// - Returns: nil if a transaction's block runs on this thread, whose writes wait for each other.
  private func reserveAll() -> BlockWrites? {
    withAdmission { admission in
      guard admission.transactions.ofThisThread == nil else { return nil }
      let writes = BlockWrites()
      admission.transactions.begin(writes)
      admission.transactions.reserve(.root, timeout: options.reservationTimeout, for: writes)
      return writes
    }
  }

  /// - Parameter writes: what the judge itself has written.
  private func endReservation(_ writes: BlockWrites) {
    withAdmission { $0.transactions.end(writes) }
    if writes.isEmpty { return }
    submit(writes)
    withAdmission { $0.transactions.remove(writes) }
  }

  /// Reads the pages of the tree that a write needs.
  ///
  /// - Returns: why they could not be read.
  func load(_ pages: CheckpointPages, of root: Node, for write: EncodedWrite) -> EngineError? {
    let result = Result { () throws(EngineError) in
      try pages.reading { () throws(PageFailure) in
        try write.withView { view in Result { () throws(PageFailure) in try root.load(for: view) } }
          .get()
      }
    }
    if case .failure(let error) = result { return error }
    return nil
  }

  /// Waits on the calling thread until the batch is under its limit, and on a full disk for one probe.
  func waitForDisk() {
    var waits = permittedWaits()
    while withAdmission({ admission in
      let waits = admission.askForDisk(&waits)
      if waits { stall.begin() }
      return waits
    }) {
      waitForDisk(&waits)
    }
  }

  /// A completion does not wait for the turn of which it is a part: its write waits for nothing any more.
  private func waitForDisk(_ waits: inout PermittedWaits) {
    if groupCommit.isCommitting {
      waits = waits.none
    } else {
      stall.wait()
    }
  }

  /// Measures the tree's memory, unless another thread just has.
  func measureMemory(for write: WriteFacts) {
    measurement.withLock { _ in
      let head = withAdmission { admission -> (roots: TreeRoots, pages: CheckpointPages?)? in
        guard admission.memory.isMeasureDue(for: write) else { return nil }
        admission.memory.beginMeasure()
        return (admission.roots, admission.pages)
      }
      guard let (roots, pages) = head else { return }
      let data = pages?.byteCount(of: roots.data) ?? roots.data.memory().byteCount
      withAdmission { $0.memory.endMeasure(data + roots.system.memory().byteCount) }
    }
  }

  func report(_ refusal: EngineError, _ completion: Completion?) {
    if let completion {
      completion(.failure(refusal))
    } else {
      options.unreportedFailure?(refusal, .zero)
    }
  }

  /// Threads that are blocked in a write at this moment, waiting for the disk or for a transaction.
  var heldThreadCount: Int {
    stall.heldThreadCount + heldWriterCount.load(ordering: .relaxed)
  }
}
