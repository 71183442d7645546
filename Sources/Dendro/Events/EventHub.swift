import DendroEngine
import DendroStorage
package import DendroTree
import Dispatch
import Synchronization

/// Turns commits into events, and delivers the events to the application.
///
/// The way of an event, step by step, is in <doc:EventPath>. The engine calls `committed` on the writer's thread, under its
/// admission lock. There the new states are only noted: O(depth · log children) for each sync point, to find its node. A drain on the callback queue makes
/// events of them, and calls the blocks, under no lock that a writer waits for.
///
/// One drain runs at a time, so that even a concurrent queue keeps the order; one dispatch serves all work
/// that arrives until the drain runs. A change of the callback queue takes effect between two blocks.
/// Completions are work too, and come after the events of their writes. A `Subscription`, from which an
/// asynchronous iterator reads (`QueryFeed`), gets the new node as sync points do, when it is noted; the iterator
/// makes its events.
///
/// Locks: this one may be taken under the admission lock, never the other way round. Under neither is
/// anything dispatched, nor anything freed that may be large or belongs to the application.
final class EventHub: CommitObserver {
  let state: Mutex<State>
  /// What the running drain has taken, and how far it is.
  let delivery = Delivery()
  /// A commit that concerns no listener, the usual case, is recognized by it without the lock.
  let filter = ListenerFilter()
  /// The number of the drain that was dispatched or replaced last. Changed under the lock.
  let drainNumber = Atomic<UInt>(0)
  private let errorHandler: (@Sendable (DatabaseError) -> Void)?
  private let forkCount = ForkCount.current

  /// Whether this process is a fork of the one that made the hub. No block is called then, and no lock
  /// taken: a mutex identifies its holder by a thread number, of which some modules cache the parent's
  /// (`_swift_stdlib_gettid`), so that unlocking it in the child can end the process.
  var isForked: Bool { forkCount != ForkCount.current }

  struct State {
    /// The listeners to the data.
    var data: ListenerTree
    /// The listeners to `.info`, which is a tree of its own.
    var info: ListenerTree
    /// The listeners to data that a server owns.
    var remote: [Path: [QueryParameters: RemoteListeners]] = [:]
    /// The sync points whose listeners are about to be cancelled, by those.
    var cancelled: [DatabaseHandle: SyncPoint] = [:]
    /// Listeners and subscriptions that have ended, of which the server's data are needed no more.
    var endedUses: [RemoteUse] = []
    /// Takes these.
    var endUses: (@Sendable ([RemoteUse]) -> Void)?
    /// Counts the steps of finding, adding and removing listeners.
    let tally = StepTally()
    var byHandle: [DatabaseHandle: Registration] = [:]
    var subscriptions: [ObjectIdentifier: Subscription] = [:]
    var work = WorkQueue<Work>()
    var queue: DispatchQueue
    /// Whether the queue was made here, so that its thread is named while a drain runs.
    var isOwnQueue: Bool
    /// Whether a drain runs, and not only waits for its queue.
    var isDraining = false
    /// The number of single events, and of the first states of sync points, that are being read on other threads, or that
    /// were read and have not become events yet.
    var readCount = 0
    /// Whether the work `.end` waits until these are read.
    var isEndWaiting = false
    /// Calls that wait until these are read.
    var callsAfterReads: [Callback<@Sendable () -> Void>] = []
    /// Suspended consumers to resume once the lock is released.
    var resumable: [Subscription.Waiter] = []
    /// States that no listener will get, to be freed on a thread that no writer waits for.
    var replaced: [Node] = []
    /// The number of such states so far.
    var replacedCount = 0
    /// Whether a block that frees them was dispatched.
    var isFreeing = false
    var isClosed = false
    /// What listeners and sequences get at their end.
    var endError = DatabaseError.closed

    init(queue: DispatchQueue) {
      data = ListenerTree(tally: tally)
      info = ListenerTree(tally: tally)
      self.queue = queue
      isOwnQueue = queue !== DispatchQueue.main
    }

    /// Adds a piece of work for a sync point, which waits while the sync point's first state is read.
    mutating func add(_ work: Work, for syncPoint: SyncPoint) {
      if !syncPoint.hold(work) { self.work.append(work) }
    }

    /// Notes that the events of what was read on another thread were made.
    mutating func endRead() {
      readCount -= 1
      guard readCount == 0 else { return }
      for call in callsAfterReads { work.append(.callAfterReads(call)) }
      callsAfterReads = []
      if isEndWaiting {
        isEndWaiting = false
        work.append(.end)
      }
    }

    /// Whether there are states to free, and no block that will do it.
    var needsFreeing: Bool { !replaced.isEmpty && !isFreeing }
    /// Whether anything is to be done once no lock is held.
    var hasHandOver: Bool {
      work.needsDrain || needsFreeing || !resumable.isEmpty || !endedUses.isEmpty
    }

    /// The listeners of the tree that the path belongs to: the data or `.info`.
    func listeners(at path: Path) -> ListenerTree { listeners(isInfo: path.isInfo) }
    func listeners(isInfo: Bool) -> ListenerTree { isInfo ? info : data }
  }

  /// A piece of work for a drain.
  enum Work: Sendable {
    /// The next state of the sync point's backlog.
    case change(SyncPoint)
    /// The first events of a registration.
    case activation(Registration, SyncPoint)
    /// The only event of a registration, which was read on another thread; nil if there is none yet.
    indirect case reading(Registration, SyncPoint, Event?)
    /// The end of all registrations of a sync point, whose data the server shows no more.
    case cancellation(SyncPoint, DatabaseError)
    /// The end of a reading on another thread, behind the work for what was read: so what waits for readings comes behind
    /// their events, also if it was queued before the reading was done.
    case endOfReading
    /// The sync point's generator may keep windows and orders that no listener needs any more.
    case pruning(SyncPoint)
    case call(Callback<@Sendable () -> Void>)
    /// A call that comes after the events of what is being read on other threads.
    case callAfterReads(Callback<@Sendable () -> Void>)
    /// The end of all registrations, when the database closes.
    case end
  }

  init(errorHandler: (@Sendable (DatabaseError) -> Void)?) {
    self.errorHandler = errorHandler
    state = Mutex(State(queue: Self.defaultQueue()))
  }

  /// The main queue on Apple's platforms, where a run loop serves it. Elsewhere a program may have none, and
  /// callbacks would never come.
  private static func defaultQueue() -> DispatchQueue {
    #if canImport(Darwin)
      .main
    #else
      DispatchQueue(label: ThreadName.callbacks.rawValue)
    #endif
  }

  /// The number of sync points and subscriptions.
  var listenedCount: Int { filter.count }

  /// Runs `body` on the query's location in the head of its tree (the data or `.info`), which cannot change meanwhile.
  static func withPlace<R: Sendable>(
    of query: DatabaseQuery, _ source: DataSource, _ body: (HeadPlace) -> R
  ) -> R {
    if case .engine(let engine) = source, !query.location.isInfo {
      return engine.withPlace(at: query.location, body)
    }
    return query.owner.connection.withInfo { body(HeadPlace($0.node(at: query.location))) }
  }

  /// The number of pieces of work that no drain has taken yet: states of locations that are listened to, and blocks.
  var waitingCount: Int { state.withLock { $0.work.count } }

  // MARK: Noting

  func wantsCommit(at storedPath: UnsafeRawBufferPointer) -> Bool {
    filter.mayConcern(storedPath)
  }

  func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
    let paths = commit.paths
    guard let first = paths.first, paths.contains(where: { filter.mayConcern($0) }) else {
      return false
    }
    return note(first, and: Array(paths.dropFirst()), copy root, isInfo: false)
  }

  func afterAdmission() { handOver() }

  /// Notes a new state of `.info`. The caller holds the lock that guards it, and calls `handOver()` once it
  /// has released that.
  func infoChanged(_ root: Node) {
    guard listenedCount > 0 else { return }
    _ = note(.info, and: [], root, isInfo: true)
  }

  /// Notes changes at these paths of one tree. If no listener is affected, nothing is allocated.
  ///
  /// - Returns: whether `handOver()` has something to do.
  private func note(_ path: Path, and others: [Path], _ root: Node, isInfo: Bool) -> Bool {
    state.withLock { state in
      let listeners = state.listeners(isInfo: isInfo)
      let replacedCount = state.replaced.count
      listeners.forEachAffected(by: path, and: others, root: root) { place, node, changedKey in
        if let syncPoint = place.syncPoint,
          syncPoint.note(node, changedKey: changedKey, replacing: &state.replaced)
        {
          state.add(.change(syncPoint), for: syncPoint)
        }
        if place.subscriptions.isEmpty { return }
        for case let subscription? in place.subscriptions.slots {
          if let waiter = subscription.note(node, replacing: &state.replaced) {
            state.resumable.append(waiter)
          }
        }
      }
      state.replacedCount += state.replaced.count - replacedCount
      return state.hasHandOver
    }
  }

  /// Queues a call of `body`, on the actor or else on the callback queue.
  func enqueue(on actor: (any Actor)? = nil, _ body: @escaping @Sendable () -> Void) {
    if isForked { return }
    add { $0.work.append(.call(Callback(isolation: actor, call: body))) }
  }

  /// Queues a call of `body` on the callback queue, after all events and calls that wait now.
  func enqueueAfterReads(_ body: @escaping @Sendable () -> Void) {
    if isForked { return body() }
    add { $0.work.append(.callAfterReads(Callback(isolation: nil, call: body))) }
  }

  /// Passes an error to the error handler; without one, to standard error.
  func report(_ error: DatabaseError) {
    if let errorHandler {
      enqueue { errorHandler(error) }
    } else {
      StandardError.report(error)
    }
  }

  /// Ends every registration and subscription, behind all queued work; later ones are refused.
  func close() { end(.closed) }

  /// Ends all as `close()` does, but with an error: the writer in another process cannot be followed any more.
  func failed(_ error: EngineError) { end(DatabaseError(error)) }

  private func end(_ error: DatabaseError) {
    if isForked { return }
    add { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      state.endError = error
      state.work.append(.end)
      state.resumable += state.subscriptions.values.compactMap { $0.end() }
    }
  }

  /// Why sequences have ended, unless the database was closed.
  var failure: DatabaseError? {
    state.withLock { $0.endError.code == .closed ? nil : $0.endError }
  }
}

extension Database {
  /// The number of paths that have listeners, and of asynchronous iterators in use. For tests.
  package var listenedCount: Int { hub.listenedCount }

  /// The number of pieces of work that wait for the callback queue. For tests.
  package var waitingWorkCount: Int { hub.waitingCount }

  /// States that slow listeners did not get, and that were freed without a lock. For tests.
  package var replacedStateCount: Int { hub.state.withLock { $0.replacedCount } }

  /// Slots of listeners that were read or moved so far. For tests.
  package var listenerStepCount: Int { hub.state.withLock { $0.tally.count } }

  /// Comparisons of children's positions for the listeners at a path so far. For tests.
  package func comparisonCount(at path: Path) -> Int {
    let generator = hub.state.withLock { $0.data.syncPoint(at: path)?.generator }
    return generator?.comparisonCount ?? 0
  }
}
