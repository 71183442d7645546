import DendroEngine
import DendroTree
import Synchronization

// A transaction reads the data at a location, decides, and writes, as if there were no other writer. Its
// block runs on a thread of the database's own; transactions at one location, above or below run one at a time, in the
// order in which they were started, each on the data at that time.
//
// The block runs without any lock. If another write changes the location meanwhile, the block runs again on
// the new data. After three lost runs, writes by other threads at the location, above or below wait for the
// transaction, so that the fourth run succeeds. They wait a second at most, in all runs together: so a block
// that waits for such a writer does not wait for ever, but loses that run and those after it.

extension DatabaseReference {
  /// Changes what is here in the light of what is here.
  ///
  /// The block is given the data as they are now, changes them, and returns
  /// ``TransactionResult/success(withValue:)`` to have them written, or ``TransactionResult/abort()``.
  /// If another write comes between, the block runs again, 25 times at most: it should do nothing but
  /// look at the data and change them.
  ///
  /// ```swift
  /// post.runTransactionBlock { post in
  ///   let stars = post.childData(byAppendingPath: "stars")
  ///   stars.value = (stars.value as? Int ?? 0) + 1
  ///   return .success(withValue: post)
  /// }
  /// ```
  ///
  /// The block runs on a thread of the database's own and should not wait for other threads: a writer
  /// that it waits for may be waiting for the block, for up to a second, and then overtakes it. Transactions at this
  /// location, above and below wait for the block; if it takes more than a tenth of a second, others go on beside it, up
  /// to 64 blocks in all. A block that has been running for 10 seconds has a line in the log
  /// (``DatabaseOptions/logging``), which names the location; ``DatabaseOptions/transactionTimeLimit`` ends it.
  ///
  /// What the block writes to this database, and transactions that it starts, come after the transaction, once for
  /// each run of the block. `close()` does not wait for the block and may be called by it: a transaction
  /// that has not been admitted by then fails with ``DatabaseError/Code/closed``, and what its block has
  /// written until then is written.
  ///
  /// Up to 16384 transactions wait for their turn; starting more waits until there is room,
  /// but within a block of a transaction it is refused with ``DatabaseError/Code/unavailable``.
  ///
  /// - Parameter block: may run several times, never twice at once. ``DatabaseOptions/errorHandler`` gets
  ///   errors.
  @preconcurrency
  public func runTransactionBlock(_ block: @escaping @Sendable (MutableData) -> TransactionResult) {
    start(block, nil)
  }

  /// `runTransactionBlock(_:)`, and calls `completion` once it is known how it ended.
  ///
  /// - Parameters:
  ///   - block: may run several times, never twice at once.
  ///   - completion: called once, on ``Database/callbackQueue``, after the events of the write, in the
  ///     order of the writes and once the write is durable.
  ///
  ///     | how it ended | error | committed | snapshot |
  ///     | --- | --- | --- | --- |
  ///     | written, or nothing to change | nil | true | what is here now |
  ///     | aborted | nil | false | what the block was given |
  ///     | refused, taken back, or lost 25 times (``DatabaseError/Code/maxRetry``) | why | false | nil |
  @preconcurrency
  public func runTransactionBlock(
    _ block: @escaping @Sendable (MutableData) -> TransactionResult,
    @_inheritActorContext andCompletionBlock completion:
      @escaping @Sendable @isolated(any) (Error?, Bool, DataSnapshot?) -> Void
  ) {
    start(block, Callback(completion))
  }

  /// ``runTransactionBlock(_:andCompletionBlock:)``; the completion may be left out.
  ///
  /// - Parameters:
  ///   - block: may run several times, never twice at once.
  ///   - completion: as above; if there is none, ``DatabaseOptions/errorHandler`` gets errors.
  ///   - localEvents: whether listeners see what the block has made before a server has taken it. It makes no difference
  ///     in a database that owns its data: there listeners get the events once, when the transaction is admitted.
  @preconcurrency
  public func runTransactionBlock(
    _ block: @escaping @Sendable (MutableData) -> TransactionResult,
    @_inheritActorContext andCompletionBlock completion:
      (@Sendable @isolated(any) (Error?, Bool, DataSnapshot?) -> Void)?,
    withLocalEvents localEvents: Bool
  ) {
    start(block, completion.map { Callback($0) }, isVisible: localEvents)
  }

  /// `runTransactionBlock(_:)`, and waits until it is known how it ended.
  ///
  /// If the task is cancelled before the transaction's result is admitted, also while the block runs, it ends with
  /// `CancellationError` and writes nothing; later it continues. One that a cancelled task starts, to clean up, runs as ever.
  ///
  /// - Returns: true and what is here now; false and what the block was given if it aborted.
  /// - Throws: ``DatabaseError``, or `CancellationError`; nothing was written then.
  @preconcurrency
  @discardableResult
  public func runTransactionBlock(
    _ block: @escaping @Sendable (MutableData) -> TransactionResult
  ) async throws -> (Bool, DataSnapshot) {
    switch try await outcome({ Transaction.Step(block($0)) }) {
    case .committed(let snapshot): return (true, snapshot)
    case .aborted(let snapshot): return (false, snapshot)
    case .failed(let error): throw error
    }
  }

  /// `runTransactionBlock(_:)` in the manner of Swift: what `body` leaves is written once it returns,
  /// and nothing if it throws.
  ///
  /// ```swift
  /// let left = try await stock.transaction { stock in
  ///   let count = stock.value as? Int ?? 0
  ///   guard count > 0 else { throw SoldOut() }
  ///   stock.value = count - 1
  ///   return count - 1
  /// }
  /// ```
  ///
  /// - Parameter body: may run several times, never twice at once.
  /// - Returns: what `body` returned in the run that was written, once that is durable.
  /// - Throws: what `body` throws, ``DatabaseError``, or `CancellationError` as with `runTransactionBlock(_:)`; nothing
  ///   was written then.
  @discardableResult
  public func transaction<Value: Sendable>(
    _ body: @escaping @Sendable (MutableData) throws -> Value
  ) async throws -> Value {
    try await transaction(hasTimeLimit: true, body)
  }

  /// `transaction(_:)`, without a time limit if that is for requests alone.
  func transaction<Value: Sendable>(
    hasTimeLimit: Bool, _ body: @escaping @Sendable (MutableData) throws -> Value
  ) async throws -> Value {
    let returned = Mutex<Value?>(nil)
    let outcome = try await outcome(hasTimeLimit: hasTimeLimit) { data in
      do {
        let result = try body(data)
        returned.withLock { $0 = result }
        return .write(data)
      } catch {
        return .fail(error)
      }
    }
    if case .failed(let error) = outcome { throw error }
    guard let result = returned.withLock({ $0 }) else {
      preconditionFailure("a transaction that was written has run its body")
    }
    return result
  }
}

extension DatabaseReference {
  private func start(
    _ block: @escaping @Sendable (MutableData) -> TransactionResult,
    _ completion: Callback<TransactionFunction>?, isVisible: Bool = true
  ) {
    let hub = owner.hub
    let step: @Sendable (MutableData) -> Transaction.Step = { Transaction.Step(block($0)) }
    let transaction = Transaction(self, isVisible: isVisible, block: step) { outcome in
      guard let completion else {
        if case .failed(let error as DatabaseError) = outcome { hub.report(error) }
        return
      }
      hub.enqueue(on: completion.isolation) {
        switch outcome {
        case .committed(let snapshot): completion.call(nil, true, snapshot)
        case .aborted(let snapshot): completion.call(nil, false, snapshot)
        case .failed(let error): completion.call(error, false, nil)
        }
      }
    }
    do throws(DatabaseError) {
      let engine = try startable()
      guard
        owner.transactions.takePlace(
          mayWait: engine.map { !$0.isInTransaction } ?? !owner.transactions.isRunningHere)
      else {
        throw DatabaseError(.tooManyWaiting(limit: TransactionQueue.limit))
      }
      owner.transactions.start(transaction.job(hasPlace: true))
    } catch {
      transaction.finish(.failed(error))
    }
  }

  private func outcome(
    hasTimeLimit: Bool = true, _ block: @escaping @Sendable (MutableData) -> Transaction.Step
  ) async throws(DatabaseError) -> Transaction.Outcome {
    _ = try startable()
    if let writeFailure { throw writeFailure }
    let transactions = owner.transactions
    let started = Mutex<TransactionJob?>(nil)
    let wasCancelled = Task.isCancelled
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        let transaction = Transaction(self, block: block) {
          continuation.resume(returning: $0)
        }
        let job = transaction.job(hasPlace: false, hasTimeLimit: hasTimeLimit)
        if !wasCancelled { started.withLock { $0 = job } }
        transactions.start(job)
        // The handler may have run before it was started.
        if !wasCancelled, Task.isCancelled { transactions.withdraw(job, CancellationError()) }
      }
    } onCancel: {
      if let job = started.withLock({ $0 }) { transactions.withdraw(job, CancellationError()) }
    }
  }

  /// The engine, unless it takes no writes at all; nil if a server owns the data.
  private func startable() throws(DatabaseError) -> Engine? {
    guard case .engine(let engine) = try owner.source(of: .root) else { return nil }
    if let refusal = engine.refusal { throw DatabaseError(refusal) }
    return engine
  }
}

extension Transaction.Step {
  fileprivate init(_ result: TransactionResult) {
    switch result.decision {
    case .write(let data): self = .write(data)
    case .abort: self = .abort
    }
  }
}
