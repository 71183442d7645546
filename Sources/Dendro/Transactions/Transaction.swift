import DendroEngine
import DendroTree

/// One transaction that was started: its block, and what to call when it has ended.
struct Transaction: Sendable {
  let location: DatabaseReference
  /// Called with the data of each run, on the queue of the transactions.
  let block: @Sendable (MutableData) -> Step
  /// Called once, on any thread; it may not wait.
  let completion: @Sendable (Outcome) -> Void

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

  /// Runs the block until its decision is admitted. Waits only for the block, and for the disk if that is
  /// behind.
  func run() {
    let engine: Engine
    do throws(DatabaseError) {
      engine = try location.owner.usable()
    } catch {
      return completion(.failed(error))
    }
    if let failure = location.writeFailure {
      // In order: after the completions of earlier writes.
      return engine.submit(Draft(.update(.root, []))) { [completion] _ in
        completion(.failed(failure))
      }
    }
    engine.transact(at: location.path) { [completion] error in
      completion(.failed(DatabaseError(error)))
    } decide: { input in
      decide(on: input)
    }
  }

  private func decide(on input: Node) -> TransactionDecision {
    let draft = TransactionDraft(at: location.path, input: input)
    let step = block(MutableData(draft, at: .root))
    do {
      return try decision(step, draft)
    } catch {
      return TransactionDecision(nil) { [completion] _ in completion(.failed(error)) }
    }
  }

  /// - Throws: what the block threw or gave that cannot be used.
  private func decision(_ step: Step, _ draft: TransactionDraft) throws -> TransactionDecision {
    let location = location
    let completion = completion
    if case .fail(let error) = step { throw error }
    if let error = draft.error { throw error }
    guard case .write(let data) = step else {
      return TransactionDecision(nil) { result in
        switch result {
        case .success(let node): completion(.aborted(DataSnapshot(node, at: location)))
        case .failure(let error): completion(.failed(DatabaseError(error)))
        }
      }
    }
    return TransactionDecision(try write(of: data, draft)) { result in
      switch result {
      case .success(let node): completion(.committed(DataSnapshot(node, at: location)))
      case .failure(let error): completion(.failed(DatabaseError(error)))
      }
    }
  }

  private func write(of data: MutableData, _ draft: TransactionDraft) throws(DatabaseError) -> Draft
  {
    if let error = data.draft.error { throw error }
    guard let path = data.path else { return Draft(.remove(location.path)) }
    let write = data.draft.write(of: path, to: location.path)
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
