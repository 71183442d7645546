import DendroEngine
import DendroTree
import Dispatch
import Synchronization

/// Where commits become events and events reach the application.
///
/// Under the engine's admission lock a commit is only noted: each concerned view takes the new node of
/// its location, which is O(1). Everything else happens in a drain on the callback queue, one piece of
/// work at a time and no lock held: events are worked out from what the view's listeners saw last and
/// what they are to see, and blocks are called. One drain runs at a time, so even a concurrent queue
/// keeps the order, and one dispatch serves all that gathers until the drain comes to it.
///
/// Completions go through the same queue, behind the events of their writes.
///
/// Locks: the admission lock may be held when this one is taken, never the other way round.
final class EventHub: CommitObserver {
  private let state: Mutex<State>
  /// Nobody listens: the usual case, told without the lock. Changed under the admission lock by
  /// registrations, so that a commit after a registration sees it.
  private let viewCount = Atomic<Int>(0)
  private let errorHandler: (@Sendable (DatabaseError) -> Void)?

  private struct State {
    var listeners = ListenerTree()
    /// Who listens to `.info`, which is a tree apart.
    var infoListeners = ListenerTree()
    var byHandle: [DatabaseHandle: Registration] = [:]
    var work = Queue<Item>()
    var queue: DispatchQueue
    /// Whether a drain was dispatched that has not yet found the queue empty.
    var isDraining = false
    /// Counts the states that were noted: which of two is newer.
    var time: UInt64 = 0
    var isClosed = false
  }

  private enum Item {
    case turn(View)
    case joining(Registration, View, Node, at: UInt64)
    case call(@Sendable () -> Void)
    case end
  }

  /// What a drain does next, taken out of the lock's reach.
  private enum Delivery: Sendable {
    case change([Registration], old: Node, new: Node)
    case initial(Registration, Node)
    case call(@Sendable () -> Void)
    case cancel([Registration])
    /// Was removed before its first event. Its closures are the application's: they go when no lock is
    /// held.
    case drop(Registration)
  }

  /// Pieces of work after which a drain makes room for others on its queue.
  private static let drainQuantum = 256

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

  /// Who listens in the tree that a path is of.
  private static func listeners(at path: Path) -> KeyPath<State, ListenerTree> & Sendable {
    path.isInfo ? \.infoListeners : \.listeners
  }

  /// Runs `body` on the tree that a query is about, while it cannot change.
  private static func withTree<R: Sendable>(
    of query: DatabaseQuery, _ engine: Engine, _ body: (borrowing Node) -> R
  ) -> R {
    query.path.isInfo
      ? query.store.connection.withInfo(body) : engine.withHead { root, _ in body(root) }
  }

  // MARK: Registering

  /// Registers a listener and queues its first events.
  func register(_ registration: Registration, engine: Engine) {
    let path = registration.query.path
    let listeners = Self.listeners(at: path)
    let isOpen = Self.withTree(of: registration.query, engine) { root in
      let node = root.node(at: path)
      return add { state in
        guard !state.isClosed else { return false }
        state.time += 1
        let view: View
        if let existing = state[keyPath: listeners].views(at: path).first {
          view = existing
        } else {
          view = View(path: path, node: node, at: state.time)
          state[keyPath: listeners].insert(view)
          viewCount.wrappingAdd(1, ordering: .relaxed)
        }
        view.willJoin()
        state.byHandle[registration.handle] = registration
        state.work.append(.joining(registration, view, node, at: state.time))
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
    let removed = state.withLock { state -> Registration? in
      guard let registration = state.byHandle[handle], Self.covers(query, registration) else {
        return nil
      }
      forget(registration, in: &state)
      return registration
    }
    // Its closures are the application's: they go when no lock is held.
    withExtendedLifetime(removed) {}
  }

  /// Removes every registration that `query` stands for.
  func removeAll(of query: DatabaseQuery) {
    let removed = state.withLock { state in
      let registrations = state.byHandle.values.filter { Self.covers(query, $0) }
      for registration in registrations { forget(registration, in: &state) }
      return registrations
    }
    withExtendedLifetime(removed) {}
  }

  /// A reference stands for every query at its location.
  private static func covers(_ query: DatabaseQuery, _ registration: Registration) -> Bool {
    query.failure == nil && registration.query.path == query.path
  }

  private func forget(_ registration: Registration, in state: inout State) {
    registration.remove()
    state.byHandle[registration.handle] = nil
    let path = registration.query.path
    for view in state[keyPath: Self.listeners(at: path)].views(at: path) {
      if view.leave(registration) { dropIfUnused(view, in: &state) }
    }
  }

  private func dropIfUnused(_ view: View, in state: inout State) {
    guard view.isUnused else { return }
    state[keyPath: Self.listeners(at: view.path)].remove(view)
    viewCount.wrappingSubtract(1, ordering: .relaxed)
  }

  // MARK: Noting

  func committed(_ commit: borrowing Commit, root: borrowing Node) {
    guard viewCount.load(ordering: .relaxed) > 0 else { return }
    note(commit.changes.map(\.path), copy root, \.listeners)
  }

  /// Notes what `.info` says from now on. Whoever changes it holds its lock.
  func infoChanged(_ root: Node) { note([.info], root, \.infoListeners) }

  /// Notes that something changed at these paths of a tree.
  private func note(
    _ paths: [Path], _ root: Node, _ listeners: KeyPath<State, ListenerTree> & Sendable
  ) {
    add { state in
      state.time += 1
      let time = state.time
      var concerned: [View] = []
      state[keyPath: listeners].forEachConcerned(by: paths, root: root) { view, node in
        if view.note(node, at: time) { concerned.append(view) }
      }
      for view in concerned { state.work.append(.turn(view)) }
    }
  }

  /// Calls `body` on the callback queue, after all that was queued before.
  func enqueue(_ body: @escaping @Sendable () -> Void) {
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

  /// Ends every registration after what was queued before; later ones are refused.
  func close() {
    add { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      state.work.append(.end)
    }
  }

  /// Changes the state and sees to it that somebody works on what it brought.
  private func add<R: Sendable>(_ body: @Sendable (inout State) -> R) -> R {
    let (result, queue) = state.withLock { state -> (R, DispatchQueue?) in
      let result = body(&state)
      guard !state.isDraining, !state.work.isEmpty else { return (result, nil) }
      state.isDraining = true
      return (result, state.queue)
    }
    queue?.async { self.drain() }
    return result
  }

  // MARK: Delivering

  private func drain() {
    for _ in 0..<Self.drainQuantum {
      guard let delivery = next() else { return }
      deliver(delivery)
    }
    callbackQueue.async { self.drain() }
  }

  private func next() -> Delivery? {
    state.withLock { state in
      while let item = state.work.popFirst() {
        switch item {
        case .turn(let view):
          if let (old, new) = view.takeTurn() {
            return .change(view.registrations, old: old, new: new)
          }
        case .joining(let registration, let view, let node, let time):
          let first = view.join(registration, from: node, at: time)
          if !registration.isRemoved { return .initial(registration, first) }
          dropIfUnused(view, in: &state)
          return .drop(registration)
        case .call(let body):
          return .call(body)
        case .end:
          let registrations = state.byHandle.values.sorted { $0.handle < $1.handle }
          for registration in registrations { forget(registration, in: &state) }
          return .cancel(registrations)
        }
      }
      state.isDraining = false
      return nil
    }
  }

  private func deliver(_ delivery: Delivery) {
    switch delivery {
    case .call(let body):
      body()
    case .initial(let registration, let node):
      let events = EventGenerator.initialEvents(of: node, for: registration.type)
      for event in events { tell([registration], event) }
    case .change(let registrations, let old, let new):
      let wanted = registrations.reduce(into: EventTypes()) { $0.insert(EventTypes($1.type)) }
      for event in EventGenerator.events(from: old, to: new, for: wanted) {
        tell(registrations, event)
      }
    case .drop:
      break
    case .cancel(let registrations):
      for registration in registrations { _ = registration.cancel(.closed) }
    }
  }

  private func tell(_ registrations: [Registration], _ event: Event) {
    for registration in registrations where registration.type == event.type {
      if registration.isSingle {
        // Before the block is called: what it writes does not call it again.
        guard registration.remove() else { continue }
        state.withLock { forget(registration, in: &$0) }
      } else if registration.isRemoved {
        continue
      }
      let location = registration.query.ref
      let place = event.key.map { location.appending($0) } ?? location
      registration.tell(DataSnapshot(event.node, at: place), event.previousKey?.string)
    }
  }
}
