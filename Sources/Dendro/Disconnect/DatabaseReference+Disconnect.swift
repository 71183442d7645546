import DendroEngine
import DendroTree

// Operations registered here are written when the database is taken offline: at `goOffline()`, at `close()`,
// and when the last reference to the database is freed. They are one write: all or nothing, with the events
// of one write. Then they are no longer registered.
//
// - A value at a location replaces the operations registered there and below; one below a registered value
//   becomes a part of that value.
// - Server values are resolved when they are written, against the data of that moment.
// - Operations are kept in memory, and a crash loses them: a program can write what they should have written
//   when it opens the directory again.
//
// Each call has three forms, as the writes have. Input is checked on the caller's thread. The block is
// called, and the `async` form returns, once the operation is registered: nothing waits for the disk.

// MARK: - Setting

extension DatabaseReference {
  /// Registers `setValue(_:)` for the time when the database is taken offline; nil removes.
  ///
  /// - Parameter value: as for `setValue(_:)`.
  public func onDisconnectSetValue(_ value: Any?) {
    register { (path, use) throws(ValidationError) in try Writes.set(value, at: path, use) }
  }

  /// `onDisconnectSetValue(_:)`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectSetValue(
    _ value: Any?,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block) { (path, use) throws(ValidationError) in try Writes.set(value, at: path, use) }
  }

  /// `onDisconnectSetValue(_:)`, throwing if it is refused.
  @discardableResult
  public func onDisconnectSetValue(_ value: Any?) async throws
    -> DatabaseReference
  {
    try registered { (path, use) throws(ValidationError) in try Writes.set(value, at: path, use) }
  }

  /// Registers `setValue(_:andPriority:)` for the time when the database is taken offline.
  ///
  /// - Parameters:
  ///   - value: as for `setValue(_:)`.
  ///   - priority: as for `setValue(_:andPriority:)`.
  public func onDisconnectSetValue(_ value: Any?, andPriority priority: (any Copyable)?) {
    register { (path, use) throws(ValidationError) in
      try Writes.set(value, priority: priority, at: path, use)
    }
  }

  /// `onDisconnectSetValue(_:andPriority:)`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectSetValue(
    _ value: Any?, andPriority priority: (any Copyable)?,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block) { (path, use) throws(ValidationError) in
      try Writes.set(value, priority: priority, at: path, use)
    }
  }

  /// `onDisconnectSetValue(_:andPriority:)`, throwing if it is refused.
  @discardableResult
  public func onDisconnectSetValue(
    _ value: Any?, andPriority priority: (any Copyable)?
  ) async throws -> DatabaseReference {
    try registered { (path, use) throws(ValidationError) in
      try Writes.set(value, priority: priority, at: path, use)
    }
  }
}

// MARK: - Removing

extension DatabaseReference {
  /// Registers `removeValue()` for the time when the database is taken offline.
  public func onDisconnectRemoveValue() { register(Writes.remove) }

  /// `onDisconnectRemoveValue()`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectRemoveValue(
    @_inheritActorContext completionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block, Writes.remove)
  }

  /// `onDisconnectRemoveValue()`, throwing if it is refused.
  @discardableResult
  public func onDisconnectRemoveValue() async throws -> DatabaseReference {
    try registered(Writes.remove)
  }
}

// MARK: - Updating

extension DatabaseReference {
  /// Registers `updateChildValues(_:)` for the time when the database is taken offline: every path as an
  /// operation of its own.
  ///
  /// - Parameter values: as for `updateChildValues(_:)`.
  public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) {
    register { (path, use) throws(ValidationError) in try Writes.update(values, at: path, use) }
  }

  /// `onDisconnectUpdateChildValues(_:)`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectUpdateChildValues(
    _ values: [AnyHashable: Any],
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block) { (path, use) throws(ValidationError) in
      try Writes.update(values, at: path, use)
    }
  }

  /// `onDisconnectUpdateChildValues(_:)`, throwing if it is refused.
  @discardableResult
  public func onDisconnectUpdateChildValues(
    _ values: [AnyHashable: Any]
  ) async throws -> DatabaseReference {
    try registered { (path, use) throws(ValidationError) in try Writes.update(values, at: path, use)
    }
  }
}

// MARK: - Cancelling

extension DatabaseReference {
  /// Cancels the operations registered here and below.
  ///
  /// Of a dictionary that was registered above, the other children stay, each as an operation of its own. A
  /// scalar above stays, since it has no parts; a removal above is cancelled.
  public func cancelDisconnectOperations() {
    if let error = cancelled() { owner.hub.report(error) }
  }

  /// `cancelDisconnectOperations()`, and calls `block` once that is done or was refused.
  @preconcurrency
  public func cancelDisconnectOperations(
    @_inheritActorContext completionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    let block = Callback<CompletionFunction>(block)
    let error = cancelled()
    owner.hub.enqueue(on: block.isolation) { block.call(error, self) }
  }

  /// `cancelDisconnectOperations()`, throwing if it is refused.
  @discardableResult
  public func cancelDisconnectOperations() async throws
    -> DatabaseReference
  {
    if let error = cancelled() { throw error }
    return self
  }

  private func cancelled() -> DatabaseError? {
    do throws(DatabaseError) {
      try checkRegistering()
      try owner.connection.cancel(location)
      return nil
    } catch {
      return error
    }
  }
}

// MARK: - The way of an operation

extension DatabaseReference {
  private func register(_ making: WriteMaking) {
    do throws(DatabaseError) {
      _ = try registered(making)
    } catch {
      owner.hub.report(error)
    }
  }

  private func register(
    _ block: @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void,
    _ making: WriteMaking
  ) {
    let block = Callback<CompletionFunction>(block)
    let refusal: DatabaseError?
    do throws(DatabaseError) {
      _ = try registered(making)
      refusal = nil
    } catch {
      refusal = error
    }
    owner.hub.enqueue(on: block.isolation) { block.call(refusal, self) }
  }

  private func registered(_ making: WriteMaking) throws(DatabaseError) -> DatabaseReference {
    try owner.connection.add(disconnectDraft(making))
    return self
  }

  /// What is registered: checked as it will be when it is written.
  func disconnectDraft(_ making: WriteMaking) throws(DatabaseError) -> Draft {
    try checkRegistering()
    do throws(ValidationError) {
      return try Draft(at: location, making)
    } catch {
      throw DatabaseError(error)
    }
  }

  /// Refuses a registration whose write would be refused later.
  func checkRegistering() throws(DatabaseError) {
    if let refusal = try usable().refusal { throw DatabaseError(refusal) }
    if let writeFailure { throw writeFailure }
  }
}
