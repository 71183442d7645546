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
    try await registered { (path, use) throws(ValidationError) in
      try Writes.set(value, at: path, use)
    }
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
    try await registered { (path, use) throws(ValidationError) in
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
    try await registered(Writes.remove)
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
    try await registered { (path, use) throws(ValidationError) in
      try Writes.update(values, at: path, use)
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
    let hub = owner.hub
    cancel { if let error = $0 { hub.report(error) } }
  }

  /// `cancelDisconnectOperations()`, and calls `block` once that is done or was refused.
  @preconcurrency
  public func cancelDisconnectOperations(
    @_inheritActorContext completionBlock block:
      @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void
  ) {
    cancel(completion(Callback(block)))
  }

  /// `cancelDisconnectOperations()`, throwing if it is refused.
  @discardableResult
  public func cancelDisconnectOperations() async throws
    -> DatabaseReference
  {
    let error = await withUnsafeContinuation { continuation in
      cancel { continuation.resume(returning: $0) }
    }
    if let error { throw error }
    return self
  }

  private func cancel(_ completion: @escaping @Sendable (DatabaseError?) -> Void) {
    do throws(DatabaseError) {
      switch try registrar() {
      case .remote(let remote): remote.cancelOnDisconnect(location, completion: completion)
      case .engine, .info:
        try owner.connection.cancel(location)
        completion(nil)
      }
    } catch {
      completion(error)
    }
  }
}

// MARK: - The way of an operation

extension DatabaseReference {
  private func register(_ making: WriteMaking) {
    let hub = owner.hub
    register(making) { if let error = $0 { hub.report(error) } }
  }

  private func register(
    _ block: @escaping @Sendable @isolated(any) (Error?, DatabaseReference) -> Void,
    _ making: WriteMaking
  ) {
    register(making, completion(Callback(block)))
  }

  private func registered(_ making: WriteMaking) async throws(DatabaseError) -> DatabaseReference {
    let error = await withUnsafeContinuation { continuation in
      register(making) { continuation.resume(returning: $0) }
    }
    if let error { throw error }
    return self
  }

  private func completion(
    _ block: Callback<CompletionFunction>
  ) -> @Sendable (DatabaseError?) -> Void {
    let hub = owner.hub
    return { [self] error in hub.enqueue(on: block.isolation) { block.call(error, self) } }
  }

  private func register(
    _ making: WriteMaking, _ completion: @escaping @Sendable (DatabaseError?) -> Void
  ) {
    do throws(DatabaseError) {
      let registrar = try registrar()
      let draft = try disconnectDraft(making)
      if case .remote(let remote) = registrar {
        return remote.registerOnDisconnect(draft, completion: completion)
      }
      try owner.connection.add(draft)
      completion(nil)
    } catch {
      completion(error)
    }
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
  func checkRegistering() throws(DatabaseError) { _ = try registrar() }

  /// What keeps the operation, unless its write would be refused later.
  private func registrar() throws(DatabaseError) -> DataSource {
    let source = try source()
    if case .engine(let engine) = source, let refusal = engine.refusal {
      throw DatabaseError(refusal)
    }
    if let writeFailure { throw writeFailure }
    return source
  }
}
