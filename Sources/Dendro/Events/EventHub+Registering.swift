import DendroEngine
import DendroTree
import Synchronization

extension EventHub {
  /// Registers a listener and queues its first events.
  func register(_ registration: Registration, engine: Engine) {
    let query = registration.query
    let isOpen = Self.withTree(of: query, engine) { root in
      let node = root.node(at: query.path)
      return add { state in
        guard !state.isClosed else { return false }
        let listeners = state.listeners(at: query.path)
        let location: Location
        if let existing = listeners.location(at: query.path) {
          location = existing
        } else {
          location = Location(path: query.path, node: node, tally: state.tally)
          listeners.insert(location)
          listenerCount.wrappingAdd(1, ordering: .relaxed)
        }
        location.add(registration)
        state.byHandle[registration.handle] = registration
        state.work.append(.joining(registration, location))
        return true
      }
    }
    if !isOpen { refuse(registration, .closed) }
  }

  /// Tells a listener that it was not registered, or is no longer.
  func refuse(_ registration: Registration, _ error: DatabaseError) {
    enqueue { [self] in
      if !registration.cancel(error) { report(error) }
    }
  }

  /// Removes the registration with this handle, if it listens to `query`.
  ///
  /// - Complexity: O(length of the path), however many listen there.
  func remove(_ handle: DatabaseHandle, of query: DatabaseQuery) {
    if isForked { return }
    let removed = add { state -> Registration? in
      guard let registration = state.byHandle[handle], query.failure == nil,
        registration.query.path == query.path,
        Self.covers(query.parameters, registration.query.parameters)
      else { return nil }
      forget(registration, in: &state)
      return registration
    }
    // Its closures are the application's: they go when no lock is held.
    withExtendedLifetime(removed) {}
  }

  /// Removes every registration that `query` stands for.
  ///
  /// - Complexity: O(registrations removed).
  func removeAll(of query: DatabaseQuery) {
    guard query.failure == nil, !isForked else { return }
    let removed = add { state -> [Registration] in
      guard let location = state.listeners(at: query.path).location(at: query.path) else {
        return []
      }
      let registrations =
        query.parameters == QueryParameters()
        ? location.registrations : location.view(query.parameters)?.registrations ?? []
      for registration in registrations { forget(registration, in: &state) }
      return registrations
    }
    withExtendedLifetime(removed) {}
  }

  /// A reference, which has the default parameters, stands for every query at its location.
  private static func covers(_ parameters: QueryParameters, _ others: QueryParameters) -> Bool {
    parameters == QueryParameters() || parameters == others
  }

  /// Removes a registration. The caller holds it: its closures are not to be freed under the lock.
  func forget(_ registration: Registration, in state: inout State) {
    registration.remove()
    guard state.byHandle.removeValue(forKey: registration.handle) != nil else { return }
    let listeners = state.listeners(at: registration.query.path)
    guard let location = listeners.location(at: registration.query.path) else { return }
    location.leave(registration)
    if location.isUnused {
      listeners.remove(location)
      listenerCount.wrappingSubtract(1, ordering: .relaxed)
    }
    // Also of a location that goes: it is freed in the drain, with its index, not here under the lock.
    if location.needsTidying, !location.isTidyingQueued {
      location.isTidyingQueued = true
      state.work.append(.tidying(location))
    }
  }

  // MARK: Subscribing

  /// Makes a subscription, whose first state is that of now.
  func subscribe(
    to query: DatabaseQuery, keepingStates: Bool, engine: Engine
  ) throws(DatabaseError) -> Subscription {
    let subscription = Subscription(path: query.path, keepsStates: keepingStates)
    let isOpen = Self.withTree(of: query, engine) { root in
      let node = root.node(at: query.path)
      return add { state in
        guard !state.isClosed else { return false }
        var replaced: [Node] = []
        _ = subscription.note(node, replacing: &replaced)
        state.listeners(at: query.path).insert(subscription)
        state.subscriptions[ObjectIdentifier(subscription)] = subscription
        listenerCount.wrappingAdd(1, ordering: .relaxed)
        return true
      }
    }
    guard isOpen else { throw .closed }
    return subscription
  }

  func unsubscribe(_ subscription: Subscription, of query: DatabaseQuery) {
    if isForked { return }
    add { state in
      guard state.subscriptions.removeValue(forKey: ObjectIdentifier(subscription)) != nil else {
        return
      }
      state.listeners(at: query.path).remove(subscription)  // Held by the caller.
      listenerCount.wrappingSubtract(1, ordering: .relaxed)
    }
  }
}
