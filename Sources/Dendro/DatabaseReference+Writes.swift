import DendroEngine
import DendroTree

// Each write has three forms. All of them check the input on the caller's thread, and the tree shows
// the write as soon as the call returns; they differ in how the caller learns that it is durable. A
// write that a transaction's block makes shows once the transaction has ended.
//
// «Durable» is what `DatabaseOptions.durability` makes of it.
//
// - Fire and forget: errors go to the error handler.
// - With a block: called once, on its actor or else on the callback queue, in the order of the writes, after the events
//   of the write but for those of a listener whose data is still being read; also if nothing changed.
// - `async`: returns once the write is as durable as the options ask; throws `DatabaseError`. The write
//   stays if the task is cancelled.
//
// In a database that keeps in step with a server, a block is called and an `async` form returns once the server has
// answered.

// MARK: - Without waiting

extension DatabaseReference {
  /// Calls `body` at once, which writes without waiting: in a function that is `async`, the compiler takes the `async`
  /// forms of all calls otherwise.
  ///
  /// ```swift
  /// ref.withoutWaiting { $0.child("seen").setValue(true) }
  /// ```
  ///
  /// ``DatabaseOptions/errorHandler`` gets the errors of the writes.
  ///
  /// - Returns: what `body` returns.
  public func withoutWaiting<Result>(
    _ body: (DatabaseReference) throws -> Result
  ) rethrows -> Result {
    try body(self)
  }
}

// MARK: - Setting

extension DatabaseReference {
  /// Replaces everything here and below, priorities included; nil removes it.
  ///
  /// - Parameter value: a string, number, boolean, `nil` or `NSNull`, a dictionary with string keys or
  ///   an array of these, or a ``ServerValue``. Anything else is refused.
  /// - Complexity: O(size of the value · log children).
  public func setValue(_ value: Any?) {
    if let value {
      if let scalar = Scalar(exactly: value) { return set(scalar) }
      if let delta = ServerValue.delta(of: value) { return increment(delta) }
    }
    write { (path, use) throws(ValidationError) in try Writes.set(value, at: path, use) }
  }

  /// `setValue(_:)`, and calls `block` once the write is durable or has failed.
  ///
  /// The call waits if too much waits for the disk, but not for blocks of earlier writes: those that were not
  /// called yet take memory, without a limit, as ``Database/callbackQueue`` says. So it is for all writes with a
  /// block.
  @preconcurrency
  public func setValue(
    _ value: Any?,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block)) { (path, use) throws(ValidationError) in
      try Writes.set(value, at: path, use)
    }
  }

  /// `setValue(_:)`, and waits until the write is durable.
  @discardableResult
  public func setValue(_ value: Any?) async throws -> DatabaseReference {
    try await commit(
      made { (path, use) throws(ValidationError) in try Writes.set(value, at: path, use) })
  }

  /// Replaces everything here and below, and gives the location a priority.
  ///
  /// - Parameters:
  ///   - value: as for `setValue(_:)`. A `.priority` in it wins over `priority`.
  ///   - priority: a number, a string, a ``ServerValue`` or nil. Not looked at if nothing is set. Its
  ///     type takes what `Any?` takes, except a trailing closure, which is the completion block of
  ///     `setValue(_:withCompletionBlock:)`.
  public func setValue(_ value: Any?, andPriority priority: (any Copyable)?) {
    write { (path, use) throws(ValidationError) in
      try Writes.set(value, priority: priority, at: path, use)
    }
  }

  /// `setValue(_:andPriority:)`, and calls `block` once the write is durable or has failed.
  @preconcurrency
  public func setValue(
    _ value: Any?, andPriority priority: (any Copyable)?,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block)) { (path, use) throws(ValidationError) in
      try Writes.set(value, priority: priority, at: path, use)
    }
  }

  /// `setValue(_:andPriority:)`, and waits until the write is durable.
  @discardableResult
  public func setValue(
    _ value: Any?, andPriority priority: (any Copyable)?
  ) async throws -> DatabaseReference {
    try await commit(
      made { (path, use) throws(ValidationError) in
        try Writes.set(value, priority: priority, at: path, use)
      })
  }
}

// MARK: - Removing

extension DatabaseReference {
  /// Removes everything here and below. Removing nothing succeeds.
  public func removeValue() { write(Writes.remove) }

  /// `removeValue()`, and calls `block` once the write is durable or has failed.
  @preconcurrency
  public func removeValue(
    @_inheritActorContext completionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block), Writes.remove)
  }

  /// `removeValue()`, and waits until the write is durable.
  @discardableResult
  public func removeValue() async throws -> DatabaseReference {
    try await commit(made(Writes.remove))
  }
}

// MARK: - Priorities

extension DatabaseReference {
  /// Changes the priority of the data here, and nothing else; nil removes it.
  ///
  /// - Parameter priority: a number, a string, a ``ServerValue`` or nil. If there is no data it is
  ///   refused with ``DatabaseError/Code/noData``.
  public func setPriority(_ priority: Any?) {
    write { (path, use) throws(ValidationError) in try Writes.priority(priority, at: path, use) }
  }

  /// `setPriority(_:)`, and calls `block` once the write is durable or has failed.
  @preconcurrency
  public func setPriority(
    _ priority: Any?,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block)) { (path, use) throws(ValidationError) in
      try Writes.priority(priority, at: path, use)
    }
  }

  /// `setPriority(_:)`, and waits until the write is durable.
  @discardableResult
  public func setPriority(_ priority: Any?) async throws
    -> DatabaseReference
  {
    try await commit(
      made { (path, use) throws(ValidationError) in
        try Writes.priority(priority, at: path, use)
      })
  }
}

// MARK: - Updating

extension DatabaseReference {
  /// Writes several paths at once: all or nothing, in memory and on disk.
  ///
  /// - Parameter values: by path relative to this location, such as `"posts/7/title"`; what is at each
  ///   path is replaced, and what is beside it stays. `NSNull` removes. A path may end in `.priority`.
  ///   No path may be above another one.
  @_disfavoredOverload
  public func updateChildValues(_ values: [AnyHashable: Any]) {
    write { (path, use) throws(ValidationError) in try Writes.update(values, at: path, use) }
  }

  /// `updateChildValues(_:)` with keys that are known to be strings: a dictionary of this type need not be
  /// converted.
  public func updateChildValues(_ values: [String: Any]) {
    write { (path, use) throws(ValidationError) in try Writes.update(values, at: path, use) }
  }

  /// `updateChildValues(_:)`, and calls `block` once the write is durable or has failed.
  @preconcurrency
  public func updateChildValues(
    _ values: [AnyHashable: Any],
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    write(Callback(block)) { (path, use) throws(ValidationError) in
      try Writes.update(values, at: path, use)
    }
  }

  /// `updateChildValues(_:)`, and waits until the write is durable.
  @discardableResult
  public func updateChildValues(_ values: [String: Any]) async throws -> DatabaseReference {
    try await commit(
      made { (path, use) throws(ValidationError) in try Writes.update(values, at: path, use) })
  }

  /// `updateChildValues(_:)`, and waits until the write is durable.
  @discardableResult
  @_disfavoredOverload
  public func updateChildValues(
    _ values: [AnyHashable: Any]
  ) async throws -> DatabaseReference {
    try await commit(
      made { (path, use) throws(ValidationError) in try Writes.update(values, at: path, use) })
  }
}

// MARK: - The way of a write

extension DatabaseReference {
  /// Why nothing can be written here.
  var writeFailure: DatabaseError? { failure ?? (location.isInfo ? .notWritable(location) : nil) }

  /// Makes a write, and keeps it.
  func made(_ making: WriteMaking) throws(DatabaseError) -> EncodedWrite {
    if let writeFailure { throw writeFailure }
    do throws(ValidationError) {
      return try EncodedWrite.making(at: location, making)
    } catch {
      throw DatabaseError(error)
    }
  }

  @inline(__always)
  func write(_ making: WriteMaking) {
    do throws(DatabaseError) {
      let source = try source()
      if let writeFailure { throw writeFailure }
      do throws(ValidationError) {
        try making(location) { source.submit($0, reportingTo: owner.hub) }
      } catch {
        throw DatabaseError(error)
      }
    } catch {
      owner.hub.report(error)
    }
  }

  func write(_ block: Callback<CompletionFunction>, _ making: WriteMaking) {
    let hub = owner.hub
    do throws(DatabaseError) {
      let source = try source()
      if let writeFailure { throw writeFailure }
      do throws(ValidationError) {
        try making(location) { source.submit($0, to: self, calling: block) }
      } catch {
        throw DatabaseError(error)
      }
    } catch {
      // In order: after the completions of earlier writes, also if the reference is bad or the database is being closed.
      guard let engine = owner.orderingEngine else {
        hub.enqueue(on: block.isolation) { block.call(error, self) }
        return
      }
      engine.submit(.nothing) { [self] _ in
        hub.enqueue(on: block.isolation) { block.call(error, self) }
      }
    }
  }

  func commit(_ write: EncodedWrite) async throws(DatabaseError) -> DatabaseReference {
    switch try source() {
    case .engine(let engine):
      do throws(EngineError) {
        try await engine.write(write)
      } catch {
        throw DatabaseError(error)
      }
    case .remote(let remote): try await remote.write(write.withView { Draft(decoding: $0) })
    case .info: throw .notWritable(location)
    }
    return self
  }
}
