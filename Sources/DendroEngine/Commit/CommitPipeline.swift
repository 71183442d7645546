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
  /// Buffers in which large writes are encoded outside the lock.
  let buffers = PayloadBufferPool()
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
    let limits = Admission.Limits(
      writeByteCount: options.writeByteLimit, stallByteCount: options.stallByteLimit,
      synchronizesAll: options.durability == .everyCommit,
      isPersistent: store != nil, countsWrites: instrumentation.wantsMetrics)
    let readers = HeadReaders()
    self.readers = readers
    admission = AdmissionLock(
      Admission(
        head: Head(root, pages, readers), lastLSN: lastLSN, lastTime: lastTime,
        memory: MemoryGauge(limit: options.memoryByteLimit), limits: limits), wakes: executor)
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
  func submit(_ draft: Draft, completion: Completion?) {
    let body = encodeAhead(draft)
    defer { if let body { buffers.giveBack(body) } }
    // Under inline execution the caller does the disk's work itself.
    var waits = PermittedWaits(disk: executor != nil)
    while true {
      switch offer(draft, body: body, completion, &waits) {
      case .admitted, .held: return
      case .refused(let refusal): return report(refusal, completion)
      case .needsMeasure: measureMemory(for: draft)
      case .needsPages(let root, let pages):
        do throws(EngineError) {
          try pages.reading { () throws(PageFailure) in try root.load(for: draft) }
        } catch {
          return report(error, completion)
        }
      case .needsComparison(let existing): waits.comparison = .init(draft, with: existing)
      case .waitsForDisk: waitForDisk(&waits)
      case .waitsForTransaction(let reservation):
        waitingWriterCount.add(1, ordering: .relaxed)
        heldWriterCount.add(1, ordering: .relaxed)
        waits.transaction = reservation.wait()
        heldWriterCount.subtract(1, ordering: .relaxed)
        waitingWriterCount.subtract(1, ordering: .relaxed)
      }
    }
  }

  /// Admits the write of one leaf, as `Admission.admit(_:at:now:completion:)`.
  @inline(__always)
  func submit(_ edit: LeafEdit, at path: Path, completion: Completion?) -> Bool {
    let now = clock.now()
    return withAdmission { $0.admit(edit, at: path, now: now, completion: completion) }
  }

  /// Admits an update, as `Admission.admit(_:at:now:completion:)`.
  func submit(_ update: PackedUpdate, at base: Path, completion: Completion?) -> Bool {
    let now = clock.now()
    return withAdmission { $0.admit(update, at: base, now: now, completion: completion) }
  }

  /// Admits one write, and waits without blocking a thread until it is as durable as the options ask.
  func write(_ draft: Draft) async -> Result<LogSequenceNumber?, EngineError> {
    let body = encodeAhead(draft)
    defer { if let body { buffers.giveBack(body) } }
    // Under inline execution the caller does the disk's work itself.
    var waits = PermittedWaits(disk: executor != nil)
    var hasStalled = false
    while true {
      let answer = await withUnsafeContinuation { (task: UnsafeContinuation<Answer, Never>) in
        let outcome = offer(
          draft, body: body, { task.resume(returning: .result($0)) }, &waits)
        switch outcome {
        case .admitted, .held: break
        case .refused(let refusal): task.resume(returning: .result(.failure(refusal)))
        case .waitsForDisk, .waitsForTransaction, .needsMeasure, .needsPages, .needsComparison:
          task.resume(returning: .again(outcome))
        }
        if hasStalled { stall.passOn() }
      }
      switch answer {
      case .result(let result): return result
      case .again(.waitsForDisk):
        await stall.waitSuspended(isFirst: hasStalled)
        hasStalled = true
        continue
      case .again(.waitsForTransaction(let reservation)):
        waitingWriterCount.add(1, ordering: .relaxed)
        waits.transaction = await reservation.wait()
        waitingWriterCount.subtract(1, ordering: .relaxed)
      case .again(.needsPages(let root, let pages)):
        do throws(EngineError) {
          try pages.reading { () throws(PageFailure) in try root.load(for: draft) }
        } catch {
          return .failure(error)
        }
      case .again(.needsComparison(let existing)):
        waits.comparison = .init(draft, with: existing)
      case .again: measureMemory(for: draft)
      }
      hasStalled = false
    }
  }

  private enum Answer {
    case result(Result<LogSequenceNumber?, EngineError>)
    case again(AdmissionOutcome)
  }

  private func offer(
    _ draft: Draft, body: PayloadBuffer?, _ completion: Completion?, _ waits: inout PermittedWaits
  ) -> AdmissionOutcome {
    let now = clock.now()
    return withAdmission { admission in
      let outcome = admission.offer(draft, body: body, now: now, completion, &waits)
      // Under the lock: the stall begins before a cycle can take the batch and end it.
      if case .waitsForDisk = outcome { stall.begin() }
      return outcome
    }
  }

  /// Waits on the calling thread until the batch is under its limit, and on a full disk for one probe.
  func waitForDisk() {
    var waits = executor == nil ? PermittedWaits.none : PermittedWaits()
    while withAdmission({ admission in
      guard admission.mustWaitForDisk(&waits) else { return false }
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

  /// Encodes a write that may be large before the lock is taken; nil for the others.
  func encodeAhead(_ draft: Draft) -> PayloadBuffer? {
    guard draft.deferred.isEmpty, WriteCoding.mayBeLarge(draft.write) else { return nil }
    let buffer = buffers.take()
    WriteCoding.encodeBody(of: draft.write, into: buffer)
    return buffer
  }

  /// Measures the tree's memory, unless another thread just has.
  func measureMemory(for draft: Draft) {
    measurement.withLock { _ in
      let head = withAdmission { admission -> (root: Node, pages: CheckpointPages?)? in
        guard admission.memory.isMeasureDue(for: draft.write) else { return nil }
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
