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
    register { path throws(ValidationError) in try Draft(setting: value, at: path) }
  }

  /// `onDisconnectSetValue(_:)`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectSetValue(
    _ value: Any?,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block) { path throws(ValidationError) in try Draft(setting: value, at: path) }
  }

  /// `onDisconnectSetValue(_:)`, throwing where it is refused.
  @discardableResult
  public func onDisconnectSetValue(_ value: Any?) async throws
    -> DatabaseReference
  {
    try registered { path throws(ValidationError) in try Draft(setting: value, at: path) }
  }

  /// Registers `setValue(_:andPriority:)` for the time when the database is taken offline.
  ///
  /// - Parameters:
  ///   - value: as for `setValue(_:)`.
  ///   - priority: as for `setValue(_:andPriority:)`.
  public func onDisconnectSetValue(_ value: Any?, andPriority priority: (any Copyable)?) {
    register { path throws(ValidationError) in
      try Draft(setting: value, priority: priority, at: path)
    }
  }

  /// `onDisconnectSetValue(_:andPriority:)`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectSetValue(
    _ value: Any?, andPriority priority: (any Copyable)?,
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block) { path throws(ValidationError) in
      try Draft(setting: value, priority: priority, at: path)
    }
  }

  /// `onDisconnectSetValue(_:andPriority:)`, throwing where it is refused.
  @discardableResult
  public func onDisconnectSetValue(
    _ value: Any?, andPriority priority: (any Copyable)?
  ) async throws -> DatabaseReference {
    try registered { path throws(ValidationError) in
      try Draft(setting: value, priority: priority, at: path)
    }
  }
}

// MARK: - Removing

extension DatabaseReference {
  /// Registers `removeValue()` for the time when the database is taken offline.
  public func onDisconnectRemoveValue() { register { Draft(.remove($0)) } }

  /// `onDisconnectRemoveValue()`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectRemoveValue(
    @_inheritActorContext completionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block) { Draft(.remove($0)) }
  }

  /// `onDisconnectRemoveValue()`, throwing where it is refused.
  @discardableResult
  public func onDisconnectRemoveValue() async throws -> DatabaseReference {
    try registered { Draft(.remove($0)) }
  }
}

// MARK: - Updating

extension DatabaseReference {
  /// Registers `updateChildValues(_:)` for the time when the database is taken offline: every path as an
  /// operation of its own.
  ///
  /// - Parameter values: as for `updateChildValues(_:)`.
  public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) {
    register { path throws(ValidationError) in try Draft(updating: values, at: path) }
  }

  /// `onDisconnectUpdateChildValues(_:)`, and calls `block` once it is registered or was refused.
  @preconcurrency
  public func onDisconnectUpdateChildValues(
    _ values: [AnyHashable: Any],
    @_inheritActorContext withCompletionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    register(block) { path throws(ValidationError) in try Draft(updating: values, at: path) }
  }

  /// `onDisconnectUpdateChildValues(_:)`, throwing where it is refused.
  @discardableResult
  public func onDisconnectUpdateChildValues(
    _ values: [AnyHashable: Any]
  ) async throws -> DatabaseReference {
    try registered { path throws(ValidationError) in try Draft(updating: values, at: path) }
  }
}

// MARK: - Cancelling

extension DatabaseReference {
  /// Cancels the operations registered here and below.
  ///
  /// Of a dictionary that was registered above, the other children stay, each as an operation of its own. A
  /// scalar above stays, since it has no parts; a removal above is cancelled.
  public func cancelDisconnectOperations() {
    if let error = cancelled() { store.hub.report(error) }
  }

  /// `cancelDisconnectOperations()`, and calls `block` once that is done or was refused.
  @preconcurrency
  public func cancelDisconnectOperations(
    @_inheritActorContext completionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    let block = Callback<CompletionFunction>(block)
    let error = cancelled()
    store.hub.enqueue(on: block.isolation) { block.call(error, self) }
  }

  /// `cancelDisconnectOperations()`, throwing where it is refused.
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
      try store.connection.cancel(path)
      return nil
    } catch {
      return error
    }
  }
}

// MARK: - The way of an operation

extension DatabaseReference {
  private func register(_ drafting: Drafting) {
    do throws(DatabaseError) {
      _ = try registered(drafting)
    } catch {
      store.hub.report(error)
    }
  }

  private func register(
    _ block: @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void,
    _ drafting: Drafting
  ) {
    let block = Callback<CompletionFunction>(block)
    let refusal: DatabaseError?
    do throws(DatabaseError) {
      _ = try registered(drafting)
      refusal = nil
    } catch {
      refusal = error
    }
    store.hub.enqueue(on: block.isolation) { block.call(refusal, self) }
  }

  private func registered(_ drafting: Drafting) throws(DatabaseError) -> DatabaseReference {
    try store.connection.add(disconnectDraft(drafting))
    return self
  }

  /// What is registered: checked as it will be when it is written.
  func disconnectDraft(_ drafting: Drafting) throws(DatabaseError) -> Draft {
    try checkRegistering()
    let draft = try draft(drafting)
    do throws(ValidationError) {
      try draft.write.validate()
    } catch {
      throw DatabaseError(error)
    }
    return draft
  }

  /// Refuses a registration whose write would be refused later.
  func checkRegistering() throws(DatabaseError) {
    if let refusal = try usable().refusal { throw DatabaseError(refusal) }
    if let writeFailure { throw writeFailure }
  }
}
