import DendroEngine
import DendroTree
import Dispatch
import Synchronization

/// One transaction that was started: its block, and what to call when it has ended.
final class Transaction: Sendable {
  let reference: DatabaseReference
  /// Called with the data of each run, on a thread of the transactions.
  private let block: @Sendable (MutableData) -> Step
  /// Whether listeners see what it makes before a server has taken it.
  private let isVisible: Bool
  private let state: Mutex<State>

  private struct State {
    /// Called once, on any thread; it may not wait. Nil once it has been called.
    var completion: (@Sendable (Outcome) -> Void)?
    /// Whether the engine has the decision of the last run.
    var isDecided = false
    /// What ends it if that decision is not admitted.
    var withdrawal: (any Error)?
  }

  /// The result of one run of the block.
  enum Step {
    case write(MutableData)
    case abort
    /// The block threw.
    case fail(any Error)
  }

  enum Outcome: Sendable {
    /// What is there now.
    case committed(DataSnapshot)
    /// What the block was given.
    case aborted(DataSnapshot)
    case failed(any Error)
  }

  init(
    _ reference: DatabaseReference, isVisible: Bool = true,
    block: @escaping @Sendable (MutableData) -> Step,
    completion: @escaping @Sendable (Outcome) -> Void
  ) {
    self.reference = reference
    self.block = block
    self.isVisible = isVisible
    state = Mutex(State(completion: completion))
  }

  /// It in a queue of transactions.
  func job(hasPlace: Bool, hasTimeLimit: Bool = true) -> TransactionJob {
    TransactionJob(
      at: reference.location, hasPlace: hasPlace, hasTimeLimit: hasTimeLimit,
      run: { self.run(as: $0) }, withdraw: { self.withdraw($0) })
  }

  // MARK: The end

  /// Ends it.
  func finish(_ outcome: Outcome) {
    let completion = state.withLock { state in
      defer { state.completion = nil }
      return state.completion
    }
    completion?(outcome)
  }

  /// Ends it with an error, unless it has ended or its decision is admitted: nothing of it is written. Its block may
  /// still be running, and what that returns does not count.
  func withdraw(_ error: any Error) {
    let completion = state.withLock { state -> (@Sendable (Outcome) -> Void)? in
      if state.isDecided {
        state.withdrawal = error
        return nil
      }
      defer { state.completion = nil }
      return state.completion
    }
    completion?(.failed(error))
  }

  private var hasEnded: Bool { state.withLock { $0.completion == nil } }

  /// Begins a run of the block.
  ///
  /// - Returns: false if it was withdrawn, also while the decision before was not admitted.
  private func beginRun() -> Bool {
    let withdrawal = state.withLock { state in
      state.isDecided = false
      return state.withdrawal
    }
    if let withdrawal { withdraw(withdrawal) }
    return !hasEnded
  }

  /// - Returns: false if it was withdrawn.
  private func endRun() -> Bool {
    state.withLock { state in
      state.isDecided = true
      return state.completion != nil
    }
  }

  // MARK: Running

  /// Runs the block until its decision is admitted. Waits only for the block, and for the disk if that is
  /// behind.
  private func run(as job: TransactionJob) {
    if hasEnded { return }
    let source: DataSource
    do throws(DatabaseError) {
      source = try reference.owner.source(of: reference.location)
    } catch {
      return finish(.failed(error))
    }
    switch source {
    case .engine(let engine): run(on: engine, job)
    case .remote(let remote): run(on: remote, job)
    case .info: finish(.failed(DatabaseError.notWritable(reference.location)))
    }
  }

  private func run(on engine: Engine, _ job: TransactionJob) {
    if let failure = reference.writeFailure {
      // In order: after the completions of earlier writes.
      return engine.submit(Draft(.update(.root, []))) { _ in self.finish(.failed(failure)) }
    }
    if let shared = engine.sharedLog, shared.passesOn { return run(over: shared, engine, job) }
    engine.transact(at: reference.location) { error in
      self.finish(.failed(DatabaseError(error)))
    } begun: {
      job.begins()
    } decide: { input in
      switch step(on: input, job) {
      case .write(let draft): TransactionDecision(draft) { self.finish($0) { .committed($0) } }
      case .abort: TransactionDecision(nil) { self.finish($0) { .aborted($0) } }
      case .ended: TransactionDecision(nil) { _ in }
      case .failed(let error): TransactionDecision(nil) { _ in self.finish(.failed(error)) }
      }
    }
  }

  /// Runs the block on what this server shows, and has the one that leads write what it makes, if the same is there; otherwise
  /// runs it again once this server shows more. Waits for that.
  private func run(over shared: any SharedLog, _ engine: Engine, _ job: TransactionJob) {
    job.begins()
    for _ in 0..<Engine.transactionRunLimit {
      let outcome: SharedRequestOutcome
      let data: Node?
      do {
        let input = try engine.view(at: reference.location)
        switch step(on: input, job) {
        case .write(let draft):
          let write = try EncodedWrite(validating: draft)
          let result = PassedOnResult()
          guard shared.forward(write, from: input, { result.set($0, $1) }) else {
            // This server may have begun to lead.
            if !shared.passesOn { return run(on: engine, job) }
            return finish(.failed(DatabaseError(EngineError.unavailable("too many writes wait"))))
          }
          (outcome, data) = result.wait()
        case .abort: return finish(.aborted(DataSnapshot(input, at: reference)))
        case .ended: return
        case .failed(let error): return finish(.failed(error))
        }
      } catch let error as EngineError {
        return finish(.failed(DatabaseError(error)))
      } catch let error as ValidationError {
        return finish(.failed(DatabaseError(error)))
      } catch {
        return finish(.failed(error))
      }
      switch outcome {
      case .stale: continue
      case .made:
        let node =
          data.map { $0.node(at: reference.location) }
          ?? ((try? engine.view(at: reference.location)) ?? .empty)
        return finish(.committed(DataSnapshot(node, at: reference)))
      case .answered:
        return finish(
          .failed(DatabaseError(EngineError.unavailable("the leader is of another version"))))
      case .failed(let error): return finish(.failed(DatabaseError(error)))
      }
    }
    let limit = Engine.transactionRunLimit
    finish(.failed(DatabaseError(EngineError.overtaken(reference.location, runs: limit))))
  }

  private func run(on remote: any Remote, _ job: TransactionJob) {
    if let failure = reference.writeFailure { return finish(.failed(failure)) }
    let reference = reference
    job.begins()
    remote.transact(
      RemoteTransaction(
        path: reference.location, isVisible: isVisible,
        run: { input in
          switch self.step(on: input, job) {
          case .write(let draft): return .write(draft)
          case .abort: return .abort
          case .ended: return .ended
          case .failed(let error):
            self.finish(.failed(error))
            return .ended
          }
        },
        completion: { end in
          switch end {
          case .committed(let node): self.finish(.committed(DataSnapshot(node, at: reference)))
          case .aborted(let node): self.finish(.aborted(DataSnapshot(node, at: reference)))
          case .failed(let error): self.finish(.failed(error))
          }
        }))
  }

  /// What one run of the block comes to.
  private enum Result {
    case write(Draft)
    case abort
    /// It was withdrawn, and has ended.
    case ended
    case failed(any Error)
  }

  private func step(on input: Node, _ job: TransactionJob) -> Result {
    guard beginRun() else { return .ended }
    let draft = TransactionDraft(at: reference.location, input: input)
    let step = job.runBlock { block(MutableData(draft, at: .root)) }
    guard endRun() else { return .ended }
    if case .fail(let error) = step { return .failed(error) }
    if let error = draft.error { return .failed(error) }
    guard case .write(let data) = step else { return .abort }
    do throws(DatabaseError) {
      return .write(try write(of: data, draft))
    } catch {
      return .failed(error)
    }
  }

  private func finish(
    _ result: Swift.Result<Node, EngineError>, _ outcome: (DataSnapshot) -> Outcome
  ) {
    switch result {
    case .success(let node): finish(outcome(DataSnapshot(node, at: reference)))
    case .failure(let error): finish(.failed(DatabaseError(error)))
    }
  }

  private func write(of data: MutableData, _ draft: TransactionDraft) throws(DatabaseError) -> Draft
  {
    if let error = data.draft.error { throw error }
    guard let path = data.path else { return Draft(.remove(reference.location)) }
    let write = data.draft.write(of: path, to: reference.location)
    // The depth was checked for the location of the data's own transaction.
    if data.draft !== draft {
      do throws(ValidationError) {
        try write.write.validate()
      } catch {
        throw DatabaseError(error)
      }
    }
    return write
  }
}

/// What has become of a result that was passed on.
private final class PassedOnResult: Sendable {
  private let outcome = Mutex<(SharedRequestOutcome, Node?)?>(nil)
  private let isSet = DispatchSemaphore(value: 0)

  func set(_ outcome: SharedRequestOutcome, _ data: Node?) {
    self.outcome.withLock { $0 = (outcome, data) }
    isSet.signal()
  }

  /// Waits for it.
  func wait() -> (SharedRequestOutcome, Node?) {
    isSet.wait()
    guard let outcome = outcome.withLock({ $0 }) else { preconditionFailure("it was set") }
    return outcome
  }
}
