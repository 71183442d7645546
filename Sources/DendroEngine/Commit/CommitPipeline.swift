import DendroStorage
import DendroTree
import Synchronization

/// The way of a write from the call to its completion.
///
/// Any thread may call it. A write is admitted on the caller's thread, under one short lock
/// (`AdmissionLock`): encoded into the open batch, applied to the head, numbered and shown to the observer.
/// The commit thread (`GroupCommit`) then takes the whole batch, writes it to the disk and calls its
/// completions, while the next batch grows. `TransactionRunner` admits the result of a transaction.
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
    root: Node, pages: CheckpointPages? = nil, lastLSN: LogSequenceNumber, lastTime: Int64,
    store: consuming sending Store?, clock: any Clock, options: EngineOptions
  ) {
    self.options = options
    self.clock = clock
    instrumentation = Instrumentation(options)
    executor = options.execution == .thread ? BlockingExecutor(name: "dendro-commit") : nil
    isPersistent = store != nil
    let limits = Admission.Limits(
      writeByteCount: options.writeByteLimit, stallByteCount: options.stallByteLimit,
      synchronizesAll: options.durability == .everyCommit,
      isPersistent: isPersistent, countsWrites: instrumentation.wantsMetrics)
    let readers = HeadReaders()
    self.readers = readers
    admission = AdmissionLock(
      Admission(
        head: Head(root, pages, readers), lastLSN: lastLSN, lastTime: lastTime,
        memory: MemoryGauge(limit: options.memoryByteLimit), limits: limits,
        schedule: CommitSchedule(options)), wakes: executor)
    groupCommit = GroupCommit(
      admission: admission, stall: stall, disk: DiskState(store: store),
      hasThread: executor != nil, instrumentation: instrumentation, options: options)
  }

  @inline(__always)
  func withAdmission<R: Sendable>(_ body: (inout Admission) -> R) -> R { admission.withLock(body) }

  // MARK: Writing

  /// Admits one write: once this returns the head shows it, or `completion` gets the reason why not. A
  /// write made by a transaction's block is admitted after the transaction.
  ///
  /// Waits on the calling thread where the disk is behind or full, or a transaction has reserved the
  /// path. A call from within a completion does not wait.
  ///
  /// - Parameter write: copied where it has to wait.
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
  func submit(_ write: EncodedWrite, completion: Completion?) {
    write.prepare(isLogged: isPersistent)
    // Under inline execution the caller does the disk's work itself.
    var waits = PermittedWaits(disk: executor != nil)
    finish(offer(write, completion, &waits), write, completion, waits)
  }

  /// Waits for what an offer has asked for, and offers the write again until it is settled.
  private func finish(
    _ first: AdmissionOutcome, _ write: EncodedWrite, _ completion: Completion?,
    _ permitted: PermittedWaits
  ) {
    var waits = permitted
    var outcome = first
    while true {
      switch outcome {
      case .admitted, .held: return
      case .refused(let refusal): return report(refusal, completion)
      case .waitsForDisk: waitForDisk(&waits)
      case .waitsForTransaction(let reservation):
        waitingWriterCount.add(1, ordering: .relaxed)
        heldWriterCount.add(1, ordering: .relaxed)
        waits.transaction = reservation.wait()
        heldWriterCount.subtract(1, ordering: .relaxed)
        waitingWriterCount.subtract(1, ordering: .relaxed)
      default:
        if let failure = prepare(write, for: outcome, &waits) { return report(failure, completion) }
      }
      outcome = offer(write, completion, &waits)
    }
  }

  /// Admits one write, and waits without blocking a thread until it is as durable as the options ask.
  func write(_ write: EncodedWrite) async -> Result<LogSequenceNumber?, EngineError> {
    write.prepare(isLogged: isPersistent)
    // Under inline execution the caller does the disk's work itself.
    var waits = PermittedWaits(disk: executor != nil)
    var hasStalled = false
    while true {
      let answer = await withUnsafeContinuation { (task: UnsafeContinuation<Answer, Never>) in
        let outcome = offer(write, { task.resume(returning: .result($0)) }, &waits)
        switch outcome {
        case .admitted, .held: break
        case .refused(let refusal): task.resume(returning: .result(.failure(refusal)))
        case .waitsForDisk, .waitsForTransaction, .needsMeasure, .needsPages, .needsComparison:
          task.resume(returning: .again(outcome))
        }
        if hasStalled { stall.passOn() }
      }
      guard case .again(let outcome) = answer else {
        if case .result(let result) = answer { return result }
        preconditionFailure("an answer is a result or asks for another offer")
      }
      switch outcome {
      case .waitsForDisk:
        await stall.waitSuspended(isFirst: hasStalled)
        hasStalled = true
        continue
      case .waitsForTransaction(let reservation):
        waitingWriterCount.add(1, ordering: .relaxed)
        waits.transaction = await reservation.wait()
        waitingWriterCount.subtract(1, ordering: .relaxed)
      default: if let failure = prepare(write, for: outcome, &waits) { return .failure(failure) }
      }
      hasStalled = false
    }
  }

  private enum Answer {
    case result(Result<LogSequenceNumber?, EngineError>)
    case again(AdmissionOutcome)
  }

  /// Does without the lock what an offer has asked for, unless that is to wait.
  ///
  /// - Returns: why it cannot be done.
  private func prepare(
    _ write: EncodedWrite, for outcome: AdmissionOutcome, _ waits: inout PermittedWaits
  ) -> EngineError? {
    switch outcome {
    case .needsMeasure: measureMemory(for: write.facts)
    case .needsPages(let root, let pages): return load(pages, of: root, for: write)
    case .needsComparison(let existing):
      waits.comparison = write.withView { PermittedWaits.Comparison($0, with: existing) }
    case .admitted, .held, .refused, .waitsForDisk, .waitsForTransaction: break
    }
    return nil
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

  private func offer(
    _ write: EncodedWrite, _ completion: Completion?, _ waits: inout PermittedWaits
  ) -> AdmissionOutcome {
    write.withView { offer($0, completion, holding: { write }, &waits) }
  }

  @inline(__always)
  private func offer(
    _ write: WriteView, _ completion: Completion?, holding: () -> EncodedWrite,
    _ waits: inout PermittedWaits
  ) -> AdmissionOutcome {
    let now = clock.now()
    return withAdmission { admission in
      let outcome = admission.offer(write, now: now, completion, holding: holding, &waits)
      // Under the lock: the stall begins before a turn can take the batch and end it.
      if case .waitsForDisk = outcome { stall.begin() }
      return outcome
    }
  }

  /// Waits on the calling thread until the batch is under its limit, and on a full disk for one probe.
  func waitForDisk() {
    var waits = executor == nil ? PermittedWaits.none : PermittedWaits()
    while withAdmission({ admission in
      admission.requestProbe(&waits)
      guard admission.mustWaitForDisk(waits) else { return false }
      stall.begin()
      return true
    }) {
      waitForDisk(&waits)
    }
  }

  private func waitForDisk(_ waits: inout PermittedWaits) {
    if groupCommit.isCommitting {
      waits = .none
    } else {
      stall.wait()
    }
  }

  /// Measures the tree's memory, unless another thread just has.
  func measureMemory(for write: WriteFacts) {
    measurement.withLock { _ in
      let head = withAdmission { admission -> (root: Node, pages: CheckpointPages?)? in
        guard admission.memory.isMeasureDue(for: write) else { return nil }
        admission.memory.beginMeasure()
        return (admission.root, admission.pages)
      }
      guard let (root, pages) = head else { return }
      let byteCount = pages?.byteCount(of: root) ?? root.memory().byteCount
      withAdmission { $0.memory.endMeasure(byteCount) }
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
