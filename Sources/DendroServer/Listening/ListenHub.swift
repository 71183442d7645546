import Dendro
package import DendroEngine
import DendroProtocol
import DendroStorage
package import DendroTree
import Dispatch
import Synchronization

/// Passes the commits of one database on to those of its listens that they concern.
///
/// 1. The engine calls `committed` under its admission lock, and the commit is only noted in a queue: a few
///    references.
/// 2. A drain on the hub's serial queue takes the items one by one. Registrations are items too, each with the
///    node of the moment at which it was queued, so that a listen hears every later commit and none before. A
///    call that is queued when a write has completed comes after the write's events.
/// 3. `ListenTree` says which locations a commit concerns; their listens' receivers get the change.
///
/// If writers are faster than the drain, the commits beyond a number are merged while they wait: their listens get what is
/// at the places that have changed.
///
/// Locks: this one may be taken under the admission lock, never the other way round.
package final class ListenHub: CommitObserver {
  private let engine: Engine
  private let turns: FairQueue
  private let state = Mutex(State())
  private let listenCount = Atomic<Int>(0)
  private let queue = DispatchQueue(label: "dendro-listens", autoreleaseFrequency: .workItem)
  private let tree = Mutex(ListenTree())

  /// Commits that wait before further ones are merged.
  private static let commitLimit = 4096

  fileprivate struct State {
    var work = WorkQueue<Item>()
    var commitCount = 0
    /// The last of the items that wait into which commits are merged. Behind it no item has a state of its own, which would
    /// be older than such a commit.
    var merging: MergedItem?
    var isEnded = false
  }

  fileprivate enum Item: Sendable {
    case commit([Change], lsn: UInt64)
    case merged(MergedItem)
    case register(Listen, Node, lsn: UInt64)
    /// The listen has missed changes, and begins anew.
    case restart(Listen, Node, lsn: UInt64)
    case unregister(Listen)
    /// An order of children was made from a state of before.
    case made(ListenedOrder, EventGenerator, Node)
    /// A value of the listen was made.
    case scanned(Listen)
    case read(Path, Node, @Sendable (Node) -> Void)
    case call(@Sendable () -> Void)
    case end
  }

  /// - Parameter turns: does what takes long.
  init(_ engine: Engine, _ turns: FairQueue) {
    self.engine = engine
    self.turns = turns
  }

  // MARK: Noting

  package func wantsCommit(at storedPath: UnsafeRawBufferPointer) -> Bool {
    listenCount.load(ordering: .relaxed) > 0
  }

  package func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
    guard listenCount.load(ordering: .relaxed) > 0 else { return false }
    let changes = commit.changes
    if changes.isEmpty { return false }
    let lsn = commit.lsn.rawValue
    let root = copy root
    return state.withLock { state in
      if state.isEnded { return false }
      if state.commitCount < Self.commitLimit {
        state.commitCount += 1
        state.work.append(.commit(changes, lsn: lsn))
      } else if let merging = state.merging {
        merging.commits.add(changes, root, lsn: lsn)
      } else {
        let item = MergedItem(MergedCommits(changes, root, lsn: lsn))
        state.merging = item
        state.work.append(.merged(item))
      }
      return state.work.needsDrain
    }
  }

  package func afterAdmission() { startDraining() }

  package func failed(_ error: EngineError) { end() }

  // MARK: Listening

  /// Begins a listen. Its receiver gets the value first.
  func register(_ listen: Listen) {
    listenCount.wrappingAdd(1, ordering: .sequentiallyConsistent)
    enqueue(listen) { .register(listen, $0, lsn: $1) }
  }

  /// Gives the value to a listen that has missed changes.
  func restart(_ listen: Listen) { enqueue(listen) { .restart(listen, $0, lsn: $1) } }

  /// Ends a listen that was registered. What is on its way to its receiver may still come.
  func unregister(_ listen: Listen) {
    listen.isOver.store(true, ordering: .releasing)
    if append(.unregister(listen)) { startDraining() }
  }

  /// Calls `body` with the node at `path`: after the events of the commits that it includes, and before those of
  /// later ones.
  func read(_ path: Path, _ body: @escaping @Sendable (Node) -> Void) {
    let (node, isQueued) = engine.withHead { root, _ in
      let node = root.node(at: path)
      return (node, append(.read(path, node, body)))
    }
    if isQueued { startDraining() } else { body(node) }
  }

  /// Whether no events wait.
  var isIdle: Bool { state.withLock { $0.isEnded || $0.work.isIdle } }

  /// Calls `body` after the events of all commits so far.
  ///
  /// - Parameter isShort: whether `body` may run on this thread. It does if no events wait: a write to a database without
  ///   listeners is then answered without waking another thread.
  func afterEvents(isShort: Bool, _ body: @escaping @Sendable () -> Void) {
    let isQueued = state.withLock { state in
      if state.isEnded || isShort && state.work.isIdle { return false }
      state.work.append(.call(body))
      return true
    }
    if isQueued { startDraining() } else { body() }
  }

  /// Ends all listens.
  func end() {
    let isQueued = state.withLock { state in
      if state.isEnded { return false }
      state.isEnded = true
      // No listen has to end. The queue would wait for a thread, which the system may not have.
      if state.work.isIdle, listenCount.load(ordering: .sequentiallyConsistent) == 0 {
        return false
      }
      state.work.append(.end)
      return true
    }
    if isQueued { startDraining() }
  }

  private func enqueue(_ listen: Listen, _ item: (Node, UInt64) -> Item) {
    let isQueued = engine.withHead { root, lsn in
      append(item(root.node(at: listen.path), lsn.rawValue))
    }
    if isQueued { startDraining() } else { listen.receiver.end() }
  }

  /// Queues an item unless the listens have ended. The caller starts a drain once it holds no lock.
  private func append(_ item: Item) -> Bool {
    state.withLock { state in
      if state.isEnded { return false }
      state.work.append(item)
      switch item {
      case .register, .restart, .read: state.merging = nil
      case .commit, .merged, .unregister, .made, .scanned, .call, .end: break
      }
      return true
    }
  }

  // MARK: Draining

  private func startDraining() {
    if state.withLock({ $0.work.beginDrain() }) { queue.async { self.drain() } }
  }

  private func drain() {
    while true {
      let items = state.withLock { state in
        var items: [Item] = []
        _ = state.work.take { item in
          items.append(item)
          return true
        }
        state.commitCount = 0
        state.merging = nil
        return items
      }
      if items.isEmpty { return }
      for item in items { perform(item) }
    }
  }

  private func perform(_ item: Item) {
    switch item {
    case .commit(let changes, let lsn): perform(CommitChanges(changes), lsn: lsn)
    case .merged(let item): perform(item.commits.commit, lsn: item.commits.lsn)
    case .register(let listen, let node, let lsn):
      if listen.isOver.load(ordering: .acquiring) {
        // Its end may have come before it, and would not come again.
        listenCount.wrappingSubtract(1, ordering: .sequentiallyConsistent)
      } else {
        switch tree.withLock({ $0.add(listen, node, lsn: lsn) }) {
        case .begins: break
        case .needs(let order):
          make(order, for: listen)
          fallthrough
        case .waits:
          listen.waitsForOrder = true
          return prepare(listen)
        }
      }
      begin(listen, node, lsn: lsn)
    case .restart(let listen, let node, let lsn): begin(listen, node, lsn: lsn)
    case .made(let order, let generator, let old):
      for listen in tree.withLock({ _ in order.take(generator, madeFrom: old) }) {
        listen.waitsForOrder = false
        scan(listen, order.node, lsn: order.lsn)
      }
    case .unregister(let listen):
      if tree.withLock({ $0.remove(listen) }) {
        listenCount.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        giveUp(listen)
      }
    case .scanned(let listen):
      listen.unmadeCount -= 1
      if listen.unmadeCount == 0, listen.isStale {
        listen.isStale = false
        // With the state of now, behind what waits.
        restart(listen)
      }
    case .read(_, let node, let body): body(node)
    case .call(let body): body()
    case .end:
      for listen in tree.withLock({ $0.removeAll() }) {
        giveUp(listen)
        listen.receiver.end()
      }
      listenCount.store(0, ordering: .sequentiallyConsistent)
    }
  }

  // MARK: Values

  /// Gives a listen its value, which is made elsewhere if that takes long.
  private func begin(_ listen: Listen, _ node: Node, lsn: UInt64) {
    guard listen.isLong(node) else {
      return listen.receiver.begin(listen.shown(node), lsn: lsn)
    }
    prepare(listen)
    scan(listen, node, lsn: lsn)
  }

  private func perform(_ commit: CommitChanges, lsn: UInt64) {
    for unmade in tree.withLock({ $0.commit(commit, lsn: lsn) }) {
      let listen = unmade.listen
      if listen.unmadeCount > 0 {
        listen.isStale = true
      } else {
        prepare(listen)
        scan(listen, unmade.node, lsn: lsn)
      }
    }
  }

  private func prepare(_ listen: Listen) {
    listen.unmadeCount += 1
    listen.receiver.prepare()
  }

  private func scan(_ listen: Listen, _ node: Node, lsn: UInt64) {
    turns.async(for: listen.receiver.client, at: listen.receiver.address) { [self] in
      if listen.isOver.load(ordering: .acquiring) {
        listen.receiver.giveUp()
      } else {
        listen.receiver.begin(listen.shown(node), lsn: lsn)
      }
      if append(.scanned(listen)) { startDraining() }
    }
  }

  /// A listen that waits for its order gets no value.
  private func giveUp(_ listen: Listen) {
    guard listen.waitsForOrder else { return }
    listen.waitsForOrder = false
    listen.unmadeCount -= 1
    listen.receiver.giveUp()
  }

  /// Makes the order that a listen waits for, and perhaps others.
  private func make(_ order: ListenedOrder, for listen: Listen) {
    let node = order.node
    turns.async(for: listen.receiver.client, at: listen.receiver.address) { [self] in
      var generator = EventGenerator()
      // Otherwise nobody waits for it, or the next one has it made.
      generator.prepare(order.order, of: node)
      if append(.made(order, generator, node)) { startDraining() }
    }
  }
}

/// Commits that are merged while they wait.
///
/// Unchecked: guarded by the lock of the hub's state until it is taken out, and used by the drain alone from then on.
private final class MergedItem: @unchecked Sendable {
  var commits: MergedCommits

  init(_ commits: MergedCommits) { self.commits = commits }
}
