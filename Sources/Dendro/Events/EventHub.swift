import DendroEngine
package import DendroTree
import Dispatch
import Synchronization

/// Where commits become events and events reach the application.
///
/// The way of an event:
///
/// 1. The engine calls `committed` under its admission lock. The commit is only noted: each sync point that
///    it affects (`ListenerTree`) appends its new node to its backlog, which is O(1), and a piece of work
///    to the queue here.
/// 2. A drain takes the work, one piece at a time, on the callback queue (`EventHub+Delivery`). It holds no
///    lock that a writer waits for.
/// 3. The sync point's `EventGenerator` makes events of the difference between the node that its views saw
///    last and the next one of the backlog.
/// 4. The drain calls the blocks (`PendingCallbacks`) one after the other, on the callback queue or on the
///    actor that a block belongs to.
///
/// One drain runs at a time, so that even a concurrent queue keeps the order, and one dispatch serves all
/// work that arrives until the drain runs. Another callback queue takes over between two blocks.
/// Completions take the same way, behind the events of their writes. A `Subscription`, which an iterator
/// reads from, gets the new node in step 1 and makes its own events.
///
/// Locks: the admission lock may be held when this one is taken, never the other way round. Under neither
/// is anything freed that may be large or the application's.
final class EventHub: CommitObserver {
  let state: Mutex<State>
  /// Sync points and subscriptions: 0 is the usual case, which a commit recognises without the lock.
  /// Registrations change it under the admission lock, so that a commit after a registration sees it.
  let listenerCount = Atomic<Int>(0)
  /// The number of the drain that was dispatched or called off last. Changed under the lock.
  let drainNumber = Atomic<UInt>(0)
  private let errorHandler: (@Sendable (DatabaseError) -> Void)?
  private let forkCount = ForkCount.current

  /// Whether this process is a fork of the one that made it. No block is called then, and no lock of the
  /// parent's may be taken: a mutex remembers the thread that holds it by a number which a fork changes
  /// for some callers and not for others (`_swift_stdlib_gettid` is cached by module), so that giving it
  /// back can end the process.
  var isForked: Bool { forkCount != ForkCount.current }

  struct State {
    /// The listeners to the data.
    var data: ListenerTree
    /// The listeners to `.info`, which is a tree of its own.
    var info: ListenerTree
    /// What finding, adding and removing listeners costs.
    let tally = StepTally()
    var byHandle: [DatabaseHandle: Registration] = [:]
    var subscriptions: [ObjectIdentifier: Subscription] = [:]
    var work = Queue<Item>()
    /// What a drain that had to leave has not called.
    var calls: PendingCallbacks?
    var queue: DispatchQueue
    /// Whether the queue is our own, whose thread has our name while it works.
    var isOwnQueue: Bool
    var drain = Drain.none
    /// Single events that are being read on other threads.
    var readCount = 0
    /// Whether the end waits for them.
    var isEndWaiting = false
    /// Consumers that can go on, once the lock is free.
    var resumable: [Subscription.Waiter] = []
    /// States that no listener will get, to be freed where no writer waits.
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
      isOwnQueue = queue !== DispatchQueue.main
    }

    /// The listeners in the tree that a path leads into.
    func listeners(at path: Path) -> ListenerTree { listeners(isInfo: path.isInfo) }
    func listeners(isInfo: Bool) -> ListenerTree { isInfo ? info : data }
  }

  /// Which drain works on the queue.
  enum Drain: Equatable {
    case none
    /// The drain with this number, once its queue comes to it; drains with other numbers do nothing.
    case dispatched(UInt)
    case running
  }

  enum Item {
    case change(SyncPoint)
    case activation(Registration, SyncPoint)
    /// The only events of a registration, which were read elsewhere.
    case reading(Registration, SyncPoint, Event?)
    /// The sync point's generator may keep what no listener needs any more.
    case pruning(SyncPoint)
    case call(Callback<@Sendable () -> Void>)
    case end
  }

  init(errorHandler: (@Sendable (DatabaseError) -> Void)?) {
    self.errorHandler = errorHandler
    state = Mutex(State(queue: Self.defaultQueue()))
  }

  /// The main queue where a run loop queuedCount it; elsewhere callbacks would never come.
  private static func defaultQueue() -> DispatchQueue {
    #if canImport(Darwin)
      .main
    #else
      DispatchQueue(label: ThreadName.callbacks.rawValue)
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

  /// Notes the new `.info`. The caller holds its lock.
  func infoChanged(_ root: Node) {
    guard listenerCount.load(ordering: .relaxed) > 0 else { return }
    note(.info, and: [], root, isInfo: true)
  }

  /// Notes that something changed at these paths of one tree. Where no listener is affected, nothing is
  /// allocated.
  private func note(_ path: Path, and others: [Path], _ root: Node, isInfo: Bool) {
    add { state in
      var concerned: [SyncPoint] = []
      var resumable: [Subscription.Waiter] = []
      var replaced: [Node] = []
      state.listeners(isInfo: isInfo).forEachAffected(by: path, and: others, root: root) {
        place, node in
        if let syncPoint = place.syncPoint, syncPoint.note(node, replacing: &replaced) {
          concerned.append(syncPoint)
        }
        for case let subscription? in place.subscriptions.slots {
          if let waiter = subscription.note(node, replacing: &replaced) { resumable.append(waiter) }
        }
      }
      for syncPoint in concerned { state.work.append(.change(syncPoint)) }
      if !resumable.isEmpty { state.resumable += resumable }
      if !replaced.isEmpty {
        state.replaced += replaced
        state.replacedCount += replaced.count
      }
    }
  }

  /// Calls `body` on the actor, else on the callback queue, after all that was queued before.
  func enqueue(on actor: (any Actor)? = nil, _ body: @escaping @Sendable () -> Void) {
    if isForked { return }
    add { $0.work.append(.call(Callback(isolation: actor, call: body))) }
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
      state.resumable += state.subscriptions.values.compactMap { $0.end() }
    }
  }

  /// Changes the state, and dispatches a drain where there is new work and none runs.
  @discardableResult
  func add<R: Sendable>(_ body: @Sendable (inout State) -> R) -> R {
    let (result, drain, resumable, frees) = state.withLock {
      state -> (R, DispatchedDrain?, [Subscription.Waiter], Bool) in
      let result = body(&state)
      let resumable = state.resumable
      state.resumable = []
      let frees = !state.replaced.isEmpty && !state.isFreeing
      if frees { state.isFreeing = true }
      let drain = state.drain == .none && !state.work.isEmpty ? newDrain(&state) : nil
      return (result, drain, resumable, frees)
    }
    drain.map(dispatch)
    // Not here, where the admission lock may be held: an executor may be the application's, and what is
    // freed may be large.
    if !resumable.isEmpty {
      Self.resumingQueue.async {
        ThreadName.resuming.during { for waiter in resumable { waiter.resume() } }
      }
    }
    if frees { Self.freeingQueue.async { ThreadName.freeing.during { self.freeReplaced() } } }
    return result
  }

  /// Not global queues, whose threads an application may hold up.
  private static let resumingQueue = DispatchQueue(label: ThreadName.resuming.rawValue)
  private static let freeingQueue = DispatchQueue(label: ThreadName.freeing.rawValue)

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
    let generator = hub.state.withLock { $0.data.syncPoint(at: path)?.generator }
    return generator?.comparisonCount ?? 0
  }
}
