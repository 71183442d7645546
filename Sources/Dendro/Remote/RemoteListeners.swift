import DendroTree
import Synchronization

/// What listens to one target of a server. The hub's lock guards it.
final class RemoteListeners {
  /// Nil if nothing but sequences listens.
  var syncPoint: SyncPoint?
  var subscriptions: [UInt: Subscription] = [:]

  var isUnused: Bool { syncPoint == nil && subscriptions.isEmpty }
}

extension EventHub.State {
  /// The listeners of a target, which are made if there are none.
  fileprivate mutating func remoteListeners(of target: QueryTarget) -> RemoteListeners {
    if let listeners = remote[target.path]?[target.parameters] { return listeners }
    let listeners = RemoteListeners()
    remote[target.path, default: [:]][target.parameters] = listeners
    return listeners
  }

  private mutating func removeIfUnused(_ listeners: RemoteListeners, of target: QueryTarget) {
    guard listeners.isUnused else { return }
    remote[target.path]?[target.parameters] = nil
    if remote[target.path]?.isEmpty == true { remote[target.path] = nil }
  }

  /// The sync points of exactly this location.
  func syncPoints(at path: Path) -> [SyncPoint] {
    let ended = cancelled.values.filter { $0.path == path }
    if let targets = remote[path] { return targets.values.compactMap(\.syncPoint) + ended }
    if !ended.isEmpty { return Array(ended) }
    return listeners(at: path).syncPoint(at: path).map { [$0] } ?? []
  }

  /// Removes a registration from the listeners of its target.
  ///
  /// - Returns: false if it listens to something else than a server's data.
  mutating func forgetRemote(_ registration: Registration) -> Bool {
    if let syncPoint = cancelled.removeValue(forKey: registration.handle) {
      syncPoint.remove(registration)
      return true
    }
    let target = registration.query.target
    guard let listeners = remote[target.path]?[target.parameters],
      let syncPoint = listeners.syncPoint
    else { return false }
    syncPoint.remove(registration)
    endedUses.append(RemoteUse(target: target, id: registration.handle))
    if syncPoint.isUnused {
      listeners.syncPoint = nil
      removeIfUnused(listeners, of: target)
    }
    if syncPoint.queuePruning() { work.append(.pruning(syncPoint)) }
    return true
  }

  /// Removes a sequence from the listeners of its target.
  ///
  /// - Returns: false if it does not listen to a server's data, or the target has ended.
  mutating func forgetRemote(_ subscription: Subscription, of query: DatabaseQuery) -> Bool {
    guard let id = subscription.remoteID else { return false }
    let target = query.target
    guard let listeners = remote[target.path]?[target.parameters],
      listeners.subscriptions.removeValue(forKey: id) != nil
    else { return true }
    endedUses.append(RemoteUse(target: target, id: id))
    removeIfUnused(listeners, of: target)
    return true
  }

  /// Takes the listeners of a target out, which has ended.
  fileprivate mutating func end(_ target: QueryTarget, _ error: DatabaseError) {
    guard let listeners = remote[target.path]?.removeValue(forKey: target.parameters) else {
      return
    }
    if remote[target.path]?.isEmpty == true { remote[target.path] = nil }
    for subscription in listeners.subscriptions.values {
      if let waiter = subscription.fail(error) { resumable.append(waiter) }
    }
    guard let syncPoint = listeners.syncPoint else { return }
    for registration in syncPoint.registrations { cancelled[registration.handle] = syncPoint }
    work.append(.cancellation(syncPoint, error))
  }

  /// Registers a listener, whose first events are those of what is known.
  fileprivate mutating func add(_ registration: Registration, _ known: Known) {
    let target = registration.query.target
    let listeners = remoteListeners(of: target)
    let syncPoint =
      listeners.syncPoint
      ?? SyncPoint(
        path: target.path, node: known.node, isComplete: known.isComplete, tally: tally)
    listeners.syncPoint = syncPoint
    syncPoint.add(registration)
    byHandle[registration.handle] = registration
    add(.activation(registration, syncPoint), for: syncPoint)
  }

  fileprivate mutating func add(
    _ subscription: Subscription, _ id: UInt, to target: QueryTarget
  ) {
    remoteListeners(of: target).subscriptions[id] = subscription
    subscriptions[ObjectIdentifier(subscription)] = subscription
  }

  /// Notes what is known of a target now.
  fileprivate mutating func note(_ target: QueryTarget, _ known: Known) {
    guard let listeners = remote[target.path]?[target.parameters] else { return }
    let count = replaced.count
    if let syncPoint = listeners.syncPoint,
      syncPoint.note(known.node, isComplete: known.isComplete, replacing: &replaced)
    {
      add(.change(syncPoint), for: syncPoint)
    }
    for subscription in listeners.subscriptions.values {
      if let waiter = subscription.note(
        known.node, isComplete: known.isComplete, replacing: &replaced)
      {
        resumable.append(waiter)
      }
    }
    replacedCount += replaced.count - count
  }
}

// MARK: - Registering

extension EventHub {
  func register(_ registration: Registration, _ remote: any Remote) {
    let use = RemoteUse(target: registration.query.target, id: registration.handle)
    var isOpen = false
    remote.listen(use) { known in
      isOpen = state.withLock { state in
        if state.isClosed { return false }
        state.add(registration, known)
        return true
      }
    }
    handOver()
    if isOpen { return }
    remote.end([use])
    refuse(registration, state.withLock { $0.endError })
  }

  func subscribe(
    to query: DatabaseQuery, keepingStates: Bool, _ remote: any Remote
  ) throws(DatabaseError) -> Subscription {
    let use = RemoteUse(target: query.target, id: Registration.nextHandle())
    let subscription = Subscription(
      path: query.location, keepsStates: keepingStates, remoteID: use.id)
    var isOpen = false
    remote.listen(use) { known in
      isOpen = state.withLock { state in
        if state.isClosed { return false }
        var replaced: [Node] = []
        _ = subscription.note(known.node, isComplete: known.isComplete, replacing: &replaced)
        state.add(subscription, use.id, to: use.target)
        return true
      }
    }
    handOver()
    if isOpen { return subscription }
    remote.end([use])
    throw state.withLock { $0.endError }
  }

  /// Ends the registrations of a target, which the server shows no more.
  func cancelRegistrations(of syncPoint: SyncPoint, _ error: DatabaseError) {
    let registrations = state.withLock { state in
      let registrations = syncPoint.registrations.filter { !$0.isRemoved }
      for registration in registrations { forget(registration, in: &state) }
      return registrations
    }
    cancel(registrations.filter(\.hasCancelBlock), error)
    if registrations.contains(where: { !$0.hasCancelBlock }) { report(error) }
  }
}

// MARK: - What a remote says

extension EventHub {
  func changed(_ target: QueryTarget, _ known: Known) { state.withLock { $0.note(target, known) } }

  func ended(_ target: QueryTarget, _ error: DatabaseError) {
    state.withLock { $0.end(target, error) }
  }
}
