import DendroTree
import Synchronization

// A drain takes work under the hub's lock, with all that it needs to do it without.

extension EventHub {
  /// One piece of work taken by a drain, with all that it needs to do it without the lock.
  enum Delivery: Sendable {
    case change(SharedGenerator, Audiences, old: Node, new: Node, changedKey: Key?)
    case initial(SharedGenerator, Registration, Node)
    /// Reads the only event of a registration from the node.
    case read(Registration, Guarded, Node)
    case single(Registration, Event)
    case pruning(SharedGenerator, EventGenerator.Unneeded)
    case call(Callback<@Sendable () -> Void>)
    case end([DatabaseHandle: Registration])
    /// Frees a state of a sync point that has no listeners any more.
    case release(Node)
    case nothing
  }

  /// Work taken out of the state, and objects that are freed once the lock is released. Unchecked: only the
  /// drain that took them has them.
  private struct Taken: @unchecked Sendable {
    var deliveries: [Delivery] = []
    var items: [Item] = []
    var trees: [ListenerTree] = []
    var subscriptions: [ObjectIdentifier: Subscription] = [:]
  }

  /// Pieces of work that are taken under one lock.
  private static let takenWorkMax = 32

  /// A sync point outside of the lock that guards it. Unchecked: the holder only passes it back to code
  /// under the lock.
  struct Guarded: @unchecked Sendable {
    let value: SyncPoint

    init(_ value: SyncPoint) { self.value = value }
  }

  /// Takes the next pieces of work: states and calls as many as there are, anything else alone, since it
  /// depends on the work before it having been done.
  ///
  /// - Returns: nothing where no work is left, and this drain has ended.
  func takeWork(atMost limit: Int) -> [Delivery] {
    let taken = state.withLock { state -> Taken in
      var taken = Taken()
      while taken.deliveries.count < min(limit, Self.takenWorkMax), let item = state.work.first {
        switch item {
        case .change, .call: break
        case .activation, .reading, .pruning, .end:
          if !taken.deliveries.isEmpty { return taken }
        }
        _ = state.work.popFirst()
        switch item {
        case .change, .call:
          taken.deliveries.append(begin(item, &state))
          if case .release = taken.deliveries[taken.deliveries.count - 1] {
            taken.items.append(item)
          }
        case .activation, .reading, .pruning:
          taken.deliveries.append(begin(item, &state))
          taken.items.append(item)
          return taken
        case .end:
          if state.readCount > 0 {
            state.isEndWaiting = true
            taken.deliveries.append(.nothing)
          } else {
            taken.deliveries.append(.end(end(&state, &taken)))
          }
          return taken
        }
      }
      if taken.deliveries.isEmpty { state.drain = .none }
      return taken
    }
    return taken.deliveries
  }

  /// Removes all registrations and subscriptions.
  private func end(
    _ state: inout State, _ taken: inout Taken
  ) -> [DatabaseHandle: Registration] {
    let registrations = state.byHandle
    taken.trees = [state.data, state.info]
    taken.subscriptions = state.subscriptions
    state.byHandle = [:]
    state.data = ListenerTree(tally: state.tally)
    state.info = ListenerTree(tally: state.tally)
    state.subscriptions = [:]
    filter.removeAll()
    return registrations
  }

  func begin(_ item: Item, _ state: inout State) -> Delivery {
    switch item {
    case .change(let syncPoint):
      guard let (old, new, changedKey) = syncPoint.takeNextState() else { return .nothing }
      if syncPoint.isUnused { return .release(old) }
      // Also where all listeners still wait for their first events: the generator follows each state.
      return .change(
        syncPoint.generator, syncPoint.audiences, old: old, new: new, changedKey: changedKey)
    case .activation(let registration, let syncPoint):
      guard !registration.isRemoved else { return .nothing }
      if registration.isRead(by: syncPoint.generator) {
        state.readCount += 1
        return .read(registration, Guarded(syncPoint), syncPoint.seen)
      }
      syncPoint.activate(registration)
      // The state that the other listeners saw last: that of the registration's call or a later one.
      return .initial(syncPoint.generator, registration, syncPoint.seen)
    case .reading(let registration, let syncPoint, let event):
      guard !registration.isRemoved else { return .nothing }
      syncPoint.activate(registration)
      // Without a child to report, it listens for the first one from now on, like any other listener.
      return event.map { .single(registration, $0) }
        ?? .initial(syncPoint.generator, registration, syncPoint.seen)
    case .pruning(let syncPoint):
      syncPoint.isPruningQueued = false
      return .pruning(syncPoint.generator, syncPoint.takeUnneeded())
    case .call(let body):
      return .call(body)
    case .end:
      return .nothing  // `takeWork` handles it, since it takes the whole state.
    }
  }
}
