import DendroEngine
import DendroTree
import Synchronization

extension EventHub {
  /// Registers a listener and queues its first events. They come once the data of its location is read, which is done
  /// on another thread if the disk may have to be waited for.
  func register(_ registration: Registration, _ source: DataSource) {
    if case .remote(let remote) = source { return register(registration, remote) }
    let query = registration.query
    let (isOpen, unread) = Self.withPlace(of: query, source) { place in
      state.withLock { state -> (Bool, (HeadPlace, SyncPoint)?) in
        guard !state.isClosed else { return (false, nil) }
        let listeners = state.listeners(at: query.location)
        var unread: (HeadPlace, SyncPoint)?
        let syncPoint: SyncPoint
        if let existing = listeners.syncPoint(at: query.location) {
          syncPoint = existing
        } else {
          syncPoint = SyncPoint(
            path: query.location, node: place.node?.node ?? .empty,
            orders: listeners.orders(at: query.location), tally: state.tally)
          if place.node?.isPartial ?? true {
            syncPoint.beginReading()
            state.readCount += 1
            unread = (place, syncPoint)
          }
          listeners.insert(syncPoint)
          filter.add(query.location)
        }
        syncPoint.add(registration)
        state.byHandle[registration.handle] = registration
        state.add(.activation(registration, syncPoint), for: syncPoint)
        return (true, unread)
      }
    }
    if let (place, syncPoint) = unread { read(place, for: syncPoint) }
    handOver()
    if !isOpen { refuse(registration, state.withLock { $0.endError }) }
  }

  /// Reads the first state of a sync point: here if all of it is in memory.
  private func read(_ place: HeadPlace, for syncPoint: SyncPoint) {
    if let node = place.loadedNode { return add { $0.begin(syncPoint, with: node) } }
    BackgroundThread.read { [self] in
      do throws(EngineError) {
        let node = try place.read().whole()
        add { $0.begin(syncPoint, with: node) }
      } catch {
        let error = DatabaseError(error)
        for registration in abandon(syncPoint) { refuse(registration, error) }
        add { $0.work.append(.endOfReading) }
      }
    }
  }

  /// Removes all registrations of a sync point whose first state cannot be read. The reading ends once they are refused.
  private func abandon(_ syncPoint: SyncPoint) -> [Registration] {
    let (registrations, held) = add { state -> ([Registration], [Work]) in
      let registrations = syncPoint.registrations.filter { !$0.isRemoved }
      for registration in registrations { forget(registration, in: &state) }
      let held = syncPoint.endReading(.empty)
      return (registrations, held)
    }
    // Freed here, where no lock is held.
    withExtendedLifetime(held) {}
    return registrations
  }

  /// Calls the cancel block of a listener that could not be registered, or the error handler if there
  /// is none.
  func refuse(_ registration: Registration, _ error: DatabaseError) {
    guard registration.hasCancelBlock else { return report(error) }
    enqueue(on: registration.cancelIsolation) { registration.cancel(error) }
  }

  /// Removes the registration with this handle, if it listens to `query`.
  ///
  /// - Complexity: O(length of the path), however many listeners there are.
  func remove(_ handle: DatabaseHandle, of query: DatabaseQuery) {
    if isForked { return }
    let removed = add { state -> Registration? in
      guard let registration = state.byHandle[handle], query.failure == nil,
        registration.query.location == query.location,
        Self.covers(query.parameters, registration.query.parameters)
      else { return nil }
      forget(registration, in: &state)
      return registration
    }
    // Its closures are the application's, and are freed here, where no lock is held.
    withExtendedLifetime(removed) {}
  }

  /// Removes every registration that `query` covers.
  ///
  /// - Complexity: O(registrations removed).
  func removeAll(of query: DatabaseQuery) {
    guard query.failure == nil, !isForked else { return }
    let removed = add { state -> [Registration] in
      let registrations = state.syncPoints(at: query.location).flatMap { syncPoint in
        query.parameters == QueryParameters()
          ? syncPoint.registrations : syncPoint.listenedQuery(query.parameters)?.registrations ?? []
      }
      for registration in registrations { forget(registration, in: &state) }
      return registrations
    }
    withExtendedLifetime(removed) {}
  }

  /// A reference, which has the default parameters, covers every query at its location.
  private static func covers(_ parameters: QueryParameters, _ others: QueryParameters) -> Bool {
    parameters == QueryParameters() || parameters == others
  }

  /// Removes a registration. The caller keeps a reference, since its closures must not be freed under the
  /// lock.
  func forget(_ registration: Registration, in state: inout State) {
    registration.remove()
    guard state.byHandle.removeValue(forKey: registration.handle) != nil,
      !state.forgetRemote(registration)
    else { return }
    let listeners = state.listeners(at: registration.query.location)
    guard let syncPoint = listeners.syncPoint(at: registration.query.location) else { return }
    syncPoint.remove(registration)
    if syncPoint.isUnused {
      listeners.remove(syncPoint)
      filter.remove()
    }
    // Also if the sync point was removed: then the drain frees it with its indexes, without the lock.
    if syncPoint.queuePruning() { state.work.append(.pruning(syncPoint)) }
  }

  // MARK: Subscribing

  /// Makes a subscription, whose first state is the present one.
  func subscribe(
    to query: DatabaseQuery, keepingStates: Bool, _ source: DataSource
  ) throws(DatabaseError) -> Subscription {
    if case .remote(let remote) = source {
      return try subscribe(to: query, keepingStates: keepingStates, remote)
    }
    let subscription = Self.withPlace(of: query, source) { place in
      let node = place.node?.node ?? .empty
      return state.withLock { state -> Subscription? in
        guard !state.isClosed else { return nil }
        let listeners = state.listeners(at: query.location)
        let subscription = Subscription(
          path: query.location, keepsStates: keepingStates,
          orders: listeners.orders(at: query.location))
        var replaced: [Node] = []
        _ = subscription.note(node, replacing: &replaced)
        listeners.insert(subscription)
        state.subscriptions[ObjectIdentifier(subscription)] = subscription
        filter.add(query.location)
        return subscription
      }
    }
    guard let subscription else { throw state.withLock { $0.endError } }
    return subscription
  }

  func unsubscribe(_ subscription: Subscription, of query: DatabaseQuery) {
    if isForked { return }
    add { state in
      guard state.subscriptions.removeValue(forKey: ObjectIdentifier(subscription)) != nil else {
        return
      }
      // Not freed here: the caller has a reference.
      if state.forgetRemote(subscription, of: query) { return }
      state.listeners(at: query.location).remove(subscription)
      filter.remove()
    }
  }

  // MARK: Orders

  /// The order of the children at a path, if a listener or an iterator uses it.
  func usedOrder(_ order: SortOrder, at path: Path) -> SharedOrder? {
    guard listenedCount > 0 else { return nil }
    return state.withLock { $0.data.existingOrders(at: path) }?.existing(order)
  }
}

extension EventHub.State {
  /// Begins to notify a sync point whose first state was read.
  fileprivate mutating func begin(_ syncPoint: SyncPoint, with node: Node) {
    for held in syncPoint.endReading(node) { work.append(held) }
    work.append(.endOfReading)
  }
}
