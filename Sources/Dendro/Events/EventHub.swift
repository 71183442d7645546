import DendroEngine
package import DendroTree
import Dispatch
import Synchronization

/// Where commits become events and events reach the application.
///
/// Under the engine's admission lock a commit is only noted: each concerned location takes its new node,
/// which is O(1). Everything else happens in a drain on the callback queue, one piece of work at a time
/// and no lock held that others wait for: events are worked out from what the location's views were told
/// last and what they are to be told, and blocks are called. One drain runs at a time, so even a
/// concurrent queue keeps the order, and one dispatch serves all that gathers until the drain comes to
/// it. Another callback queue takes over between two blocks.
///
/// Completions go through the same queue, behind the events of their writes. Subscriptions work out
/// their events themselves: they are only resumed from here.
///
/// Locks: the admission lock may be held when this one is taken, never the other way round. Under neither
/// a last reference goes: what an application's closure or a large tree takes to be freed is nobody's to
/// wait for.
final class EventHub: CommitObserver {
  let state: Mutex<State>
  /// Nobody listens: the usual case, told without the lock. Changed under the admission lock by
  /// registrations, so that a commit after a registration sees it.
  let listenerCount = Atomic<Int>(0)
  /// The number of the drain that was dispatched or called off last. Changed under the lock.
  let drainNumber = Atomic<UInt>(0)
  private let errorHandler: (@Sendable (DatabaseError) -> Void)?
  private let forkCount = ForkCount.current

  /// Whether this process is a fork of the one that made it. Nobody is told anything then, and no lock of
  /// the parent's may be taken: a mutex remembers the thread that holds it by a number which a fork changes
  /// for some callers and not for others (`_swift_stdlib_gettid` is cached by module), so that giving it
  /// back can end the process.
  var isForked: Bool { forkCount != ForkCount.current }

  struct State {
    /// Who listens to the data.
    var data: ListenerTree
    /// Who listens to `.info`, which is a tree apart.
    var info: ListenerTree
    /// What finding, adding and removing listeners costs.
    let tally = StepTally()
    var byHandle: [DatabaseHandle: Registration] = [:]
    var subscriptions: [ObjectIdentifier: Subscription] = [:]
    var work = Queue<Item>()
    /// What a drain that had to leave has not called.
    var calls: Calls?
    var queue: DispatchQueue
    var drain = Drain.none
    /// Consumers that can go on, once the lock is free.
    var awakened: [Subscription.Waiter] = []
    /// States that nobody will be told any more, to be freed where nobody waits for it.
    var replaced: [Node] = []
    /// How many there were.
    var replacedCount = 0
    /// Whether a block that frees them was dispatched.
    var isFreeing = false
    var isClosed = false

    init(queue: DispatchQueue) {
      data = ListenerTree(tally: tally)
      info = ListenerTree(tally: tally)
      self.queue = queue
    }

    /// Who listens in the tree that a path leads into.
    func listeners(at path: Path) -> ListenerTree { listeners(isInfo: path.isInfo) }
    func listeners(isInfo: Bool) -> ListenerTree { isInfo ? info : data }
  }

  /// Who works on what waits.
  enum Drain: Equatable {
    case none
    /// The drain with this number, once its queue comes to it; drains with other numbers do nothing.
    case dispatched(UInt)
    case running
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

  /// Locations with listeners, and subscriptions.
  var listenedCount: Int { listenerCount.load(ordering: .relaxed) }

  /// Runs `body` on the tree that the query is about, while it cannot change.
  static func withTree<R: Sendable>(
    of query: DatabaseQuery, _ engine: Engine, _ body: (borrowing Node) -> R
  ) -> R {
    query.path.isInfo
      ? query.store.connection.withInfo(body) : engine.withHead { root, _ in body(root) }
  }

  // MARK: Noting

  func committed(_ commit: borrowing Commit, root: borrowing Node) {
    guard listenerCount.load(ordering: .relaxed) > 0 else { return }
    let changes = commit.changes
    let path = changes[changes.startIndex].path
    let others = changes.count == 1 ? [] : changes.dropFirst().map(\.path)
    note(path, and: others, copy root, isInfo: false)
  }

  /// Notes what `.info` says from now on. Whoever changes it holds its lock.
  func infoChanged(_ root: Node) {
    guard listenerCount.load(ordering: .relaxed) > 0 else { return }
    note(.info, and: [], root, isInfo: true)
  }

  /// Notes that something changed at these paths of one tree. Where it concerns nobody, nothing is
  /// allocated.
  private func note(_ path: Path, and others: [Path], _ root: Node, isInfo: Bool) {
    add { state in
      var concerned: [Location] = []
      var awakened: [Subscription.Waiter] = []
      var replaced: [Node] = []
      state.listeners(isInfo: isInfo).forEachConcerned(by: path, and: others, root: root) {
        place, node in
        if let location = place.location, location.note(node, replacing: &replaced) {
          concerned.append(location)
        }
        for case let subscription? in place.subscriptions.slots {
          if let waiter = subscription.note(node, replacing: &replaced) { awakened.append(waiter) }
        }
      }
      for location in concerned { state.work.append(.turn(location)) }
      if !awakened.isEmpty { state.awakened += awakened }
      if !replaced.isEmpty {
        state.replaced += replaced
        state.replacedCount += replaced.count
      }
    }
  }

  /// Calls `body` on the callback queue, after all that was queued before.
  func enqueue(_ body: @escaping @Sendable () -> Void) {
    if isForked { return }
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
    if isForked { return }
    add { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      state.work.append(.end)
      state.awakened += state.subscriptions.values.compactMap { $0.end() }
    }
  }

  /// Changes the state and sees to it that somebody works on what it brought.
  @discardableResult
  func add<R: Sendable>(_ body: @Sendable (inout State) -> R) -> R {
    let (result, drain, awakened, frees) = state.withLock {
      state -> (R, DispatchedDrain?, [Subscription.Waiter], Bool) in
      let result = body(&state)
      let awakened = state.awakened
      state.awakened = []
      let frees = !state.replaced.isEmpty && !state.isFreeing
      if frees { state.isFreeing = true }
      let drain = state.drain == .none && !state.work.isEmpty ? newDrain(&state) : nil
      return (result, drain, awakened, frees)
    }
    drain.map(dispatch)
    // Not here, where the admission lock may be held: an executor may be the application's, and what is
    // freed may be large.
    if !awakened.isEmpty {
      Self.awakeningQueue.async { for waiter in awakened { waiter.resume() } }
    }
    if frees { Self.freeingQueue.async { self.freeReplaced() } }
    return result
  }

  /// Not global queues, whose threads an application may hold up.
  private static let awakeningQueue = DispatchQueue(label: "dendro.awakening")
  private static let freeingQueue = DispatchQueue(label: "dendro.freeing")

  private func freeReplaced() {
    let replaced = state.withLock { state in
      let replaced = state.replaced
      state.replaced = []
      state.isFreeing = false
      return replaced
    }
    withExtendedLifetime(replaced) {}
  }
}

extension Database {
  /// Locations that have listeners, and iterators of their events that are under way. For tests.
  package var listenedCount: Int { hub.listenedCount }

  /// States that listeners were too slow for, and that were freed away from all locks. For tests.
  package var replacedStateCount: Int { hub.state.withLock { $0.replacedCount } }

  /// Places of listeners that were looked at or moved so far. For tests.
  package var listenerStepCount: Int { hub.state.withLock { $0.tally.count } }

  /// How often the listeners at a path made the places of children be compared. For tests.
  package func comparisonCount(at path: Path) -> Int {
    let generator = hub.state.withLock { $0.data.location(at: path)?.generator }
    return generator?.comparisonCount ?? 0
  }
}
