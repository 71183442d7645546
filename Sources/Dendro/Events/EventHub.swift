import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// Where commits become events and events reach the application.
///
/// Under the engine's admission lock a commit is only noted: each concerned location takes its new node,
/// which is O(1). Everything else happens in a drain on the callback queue, one piece of work at a time
/// and no lock held that others wait for: events are worked out from what the location's views were told
/// last and what they are to be told, and blocks are called. One drain runs at a time, so even a
/// concurrent queue keeps the order, and one dispatch serves all that gathers until the drain comes to
/// it.
///
/// Completions go through the same queue, behind the events of their writes. Subscriptions work out
/// their events themselves: they are only resumed from here.
///
/// Locks: the admission lock may be held when this one is taken, never the other way round.
final class EventHub: CommitObserver {
  let state: Mutex<State>
  /// Nobody listens: the usual case, told without the lock. Changed under the admission lock by
  /// registrations, so that a commit after a registration sees it.
  private let listenerCount = Atomic<Int>(0)
  private let errorHandler: (@Sendable (DatabaseError) -> Void)?

  struct State {
    /// Who listens to the data.
    var data = ListenerTree()
    /// Who listens to `.info`, which is a tree apart.
    var info = ListenerTree()
    var byHandle: [DatabaseHandle: Registration] = [:]
    var subscriptions: [ObjectIdentifier: Subscription] = [:]
    var work = Queue<Item>()
    var queue: DispatchQueue
    /// Whether a drain was dispatched that has not yet found the queue empty.
    var isDraining = false
    /// Consumers that can go on, once the lock is free.
    var awakened: [Subscription.Waiter] = []
    var isClosed = false
  }

  enum Item {
    case turn(Location)
    case joining(Registration, Location)
    /// The location's generator may keep what nobody needs any more.
    case tidying(Location)
    case call(@Sendable () -> Void)
    case end
  }

  init(errorHandler: (@Sendable (DatabaseError) -> Void)?) {
    self.errorHandler = errorHandler
    state = Mutex(State(queue: Self.defaultQueue()))
  }

  /// The main queue where a run loop turns it; elsewhere callbacks would never come.
  private static func defaultQueue() -> DispatchQueue {
    #if canImport(Darwin)
      .main
    #else
      DispatchQueue(label: "dendro.callbacks")
    #endif
  }

  var callbackQueue: DispatchQueue {
    get { state.withLock { $0.queue } }
    set { state.withLock { $0.queue = newValue } }
  }

  /// Locations with listeners, and subscriptions.
  var listenedCount: Int { listenerCount.load(ordering: .relaxed) }

  /// Who listens in the tree that the query is about.
  private static func listeners(of query: DatabaseQuery) -> KeyPath<State, ListenerTree> & Sendable
  {
    query.path.isInfo ? \.info : \.data
  }

  /// Runs `body` on the tree that the query is about, while it cannot change.
  private static func withTree<R: Sendable>(
    of query: DatabaseQuery, _ engine: Engine, _ body: (borrowing Node) -> R
  ) -> R {
    query.path.isInfo
      ? query.store.connection.withInfo(body) : engine.withHead { root, _ in body(root) }
  }

  // MARK: Registering

  /// Registers a listener and queues its first events.
  func register(_ registration: Registration, engine: Engine) {
    let query = registration.query
    let tree = Self.listeners(of: query)
    let isOpen = Self.withTree(of: query, engine) { root in
      let node = root.node(at: query.path)
      return add { state in
        guard !state.isClosed else { return false }
        let location: Location
        if let existing = state[keyPath: tree].location(at: query.path) {
          location = existing
        } else {
          location = Location(path: query.path, node: node)
          state[keyPath: tree].insert(location)
          listenerCount.wrappingAdd(1, ordering: .relaxed)
        }
        location.viewForJoining(query.parameters).willJoin(registration)
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
  func remove(_ handle: DatabaseHandle, of query: DatabaseQuery) {
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
  func removeAll(of query: DatabaseQuery) {
    guard query.failure == nil else { return }
    let tree = Self.listeners(of: query)
    let removed = add { state -> [Registration] in
      guard let location = state[keyPath: tree].location(at: query.path) else { return [] }
      let registrations = location.views
        .filter { Self.covers(query.parameters, $0.parameters) }
        .flatMap { $0.registrations + $0.joining }
      for registration in registrations { forget(registration, in: &state) }
      return registrations
    }
    withExtendedLifetime(removed) {}
  }

  /// A reference, which has the default parameters, stands for every query at its location.
  private static func covers(_ parameters: QueryParameters, _ others: QueryParameters) -> Bool {
    parameters == QueryParameters() || parameters == others
  }

  func forget(_ registration: Registration, in state: inout State) {
    registration.remove()
    guard state.byHandle.removeValue(forKey: registration.handle) != nil else { return }
    let tree = Self.listeners(of: registration.query)
    guard let location = state[keyPath: tree].location(at: registration.query.path) else { return }
    location.leave(registration)
    if location.isUnused {
      state[keyPath: tree].remove(location)
      listenerCount.wrappingSubtract(1, ordering: .relaxed)
    }
    // Also of a location that goes: an index is let go in the drain, not here under the lock.
    if !location.isTidyingQueued {
      location.isTidyingQueued = true
      state.work.append(.tidying(location))
    }
  }

  // MARK: Subscribing

  /// Makes a subscription, whose first state is that of now.
  func subscribe(
    to query: DatabaseQuery, keepingStates: Bool, engine: Engine
  ) throws(DatabaseError) -> Subscription {
    let tree = Self.listeners(of: query)
    let subscription = Subscription(path: query.path, keepsStates: keepingStates)
    let isOpen = Self.withTree(of: query, engine) { root in
      let node = root.node(at: query.path)
      return add { state in
        guard !state.isClosed else { return false }
        _ = subscription.note(node)
        state[keyPath: tree].insert(subscription)
        state.subscriptions[ObjectIdentifier(subscription)] = subscription
        listenerCount.wrappingAdd(1, ordering: .relaxed)
        return true
      }
    }
    guard isOpen else { throw .closed }
    return subscription
  }

  func unsubscribe(_ subscription: Subscription, of query: DatabaseQuery) {
    let tree = Self.listeners(of: query)
    add { state in
      guard state.subscriptions.removeValue(forKey: ObjectIdentifier(subscription)) != nil else {
        return
      }
      state[keyPath: tree].remove(subscription)
      listenerCount.wrappingSubtract(1, ordering: .relaxed)
    }
  }

  // MARK: Noting

  func committed(_ commit: borrowing Commit, root: borrowing Node) {
    guard listenerCount.load(ordering: .relaxed) > 0 else { return }
    note(commit.changes.map(\.path), copy root, \.data)
  }

  /// Notes what `.info` says from now on. Whoever changes it holds its lock.
  func infoChanged(_ root: Node) {
    guard listenerCount.load(ordering: .relaxed) > 0 else { return }
    note([.info], root, \.info)
  }

  /// Notes that something changed at these paths of a tree.
  private func note(
    _ paths: [Path], _ root: Node, _ tree: KeyPath<State, ListenerTree> & Sendable
  ) {
    add { state in
      var concerned: [Location] = []
      var awakened: [Subscription.Waiter] = []
      state[keyPath: tree].forEachConcerned(by: paths, root: root) { place, node in
        if let location = place.location, location.note(node) { concerned.append(location) }
        for subscription in place.subscriptions {
          if let waiter = subscription.note(node) { awakened.append(waiter) }
        }
      }
      for location in concerned { state.work.append(.turn(location)) }
      state.awakened += awakened
    }
  }

  /// Calls `body` on the callback queue, after all that was queued before.
  func enqueue(_ body: @escaping @Sendable () -> Void) {
    if Mutant.completionOrder.isPlanted { return body() }
    add { $0.work.append(.call(body)) }
  }

  /// Hands an error to the error handler.
  func report(_ error: DatabaseError) {
    if let errorHandler {
      enqueue { errorHandler(error) }
    } else {
      StandardError.report(error)
    }
  }

  /// Ends every registration and subscription after what was queued before; later ones are refused.
  func close() {
    add { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      state.work.append(.end)
      state.awakened += state.subscriptions.values.compactMap { $0.end() }
    }
  }

  /// Changes the state and sees to it that somebody works on what it brought.
  @discardableResult
  private func add<R: Sendable>(_ body: @Sendable (inout State) -> R) -> R {
    let (result, queue, awakened) = state.withLock {
      state -> (R, DispatchQueue?, [Subscription.Waiter]) in
      let result = body(&state)
      let awakened = state.awakened
      state.awakened = []
      guard !state.isDraining, !state.work.isEmpty else { return (result, nil, awakened) }
      state.isDraining = true
      return (result, state.queue, awakened)
    }
    queue?.async { self.drain() }
    if !awakened.isEmpty {
      // Not here, where the admission lock may be held: an executor may be the application's.
      DispatchQueue.global().async { for waiter in awakened { waiter.resume() } }
    }
    return result
  }
}

extension Database {
  /// Locations that have listeners, and iterators of their events that are under way. For tests.
  package var listenedCount: Int { hub.listenedCount }
}
