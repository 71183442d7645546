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
/// If writers are faster than the drain, the commits that wait are replaced by the state after them.
///
/// Locks: this one may be taken under the admission lock, never the other way round.
package final class ListenHub: CommitObserver {
  private let engine: Engine
  private let state = Mutex(State())
  private let listenCount = Atomic<Int>(0)
  private let queue = DispatchQueue(label: "dendro-listens", autoreleaseFrequency: .workItem)
  private let tree = Mutex(ListenTree())

  /// Commits that wait before they are replaced by a state.
  private static let commitLimit = 4096

  fileprivate struct State {
    var work = WorkQueue<Item>()
    var commitCount = 0
    var isEnded = false
  }

  fileprivate enum Item: Sendable {
    case commit([Change], lsn: UInt64)
    case state(Node, lsn: UInt64)
    case register(Listen, Node, lsn: UInt64)
    /// The listen has missed changes, and begins anew.
    case restart(Listen, Node, lsn: UInt64)
    case unregister(Listen)
    case read(Path, Node, @Sendable (Node) -> Void)
    case call(@Sendable () -> Void)
    case end
  }

  package init(_ engine: Engine) { self.engine = engine }

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
      state.work.append(.commit(changes, lsn: lsn))
      state.commitCount += 1
      if state.commitCount > Self.commitLimit { state.merge(into: root, lsn: lsn) }
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

  /// Calls `body` after the events of all commits so far.
  func afterEvents(_ body: @escaping @Sendable () -> Void) {
    if append(.call(body)) { startDraining() } else { body() }
  }

  /// Ends all listens.
  func end() {
    if append(.end) { startDraining() }
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
      if case .end = item { state.isEnded = true }
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
        return items
      }
      if items.isEmpty { return }
      for item in items { perform(item) }
    }
  }

  private func perform(_ item: Item) {
    switch item {
    case .commit(let changes, let lsn):
      tree.withLock { $0.commit(CommitChanges(changes), lsn: lsn) }
    case .state(let root, let lsn): tree.withLock { $0.replace(root, lsn: lsn) }
    case .register(let listen, let node, let lsn):
      if listen.isOver.load(ordering: .acquiring) {
        // Its end may have come before it, and would not come again.
        listenCount.wrappingSubtract(1, ordering: .sequentiallyConsistent)
      } else {
        tree.withLock { $0.add(listen, node) }
      }
      listen.receiver.begin(shown(node, listen), lsn: lsn)
    case .restart(let listen, let node, let lsn):
      listen.receiver.begin(shown(node, listen), lsn: lsn)
    case .unregister(let listen):
      if tree.withLock({ $0.remove(listen) }) {
        listenCount.wrappingSubtract(1, ordering: .sequentiallyConsistent)
      }
    case .read(_, let node, let body): body(node)
    case .call(let body): body()
    case .end:
      for listen in tree.withLock({ $0.removeAll() }) { listen.receiver.end() }
      listenCount.store(0, ordering: .sequentiallyConsistent)
    }
  }

  private func shown(_ node: Node, _ listen: Listen) -> Node {
    listen.query.map { node.filtered(by: $0) } ?? node
  }
}

extension ListenHub.State {
  /// Replaces the commits that wait by the state after them. The listens that wait to be registered begin with
  /// that state.
  fileprivate mutating func merge(into root: Node, lsn: UInt64) {
    work.replace { waiting in
      [.state(root, lsn: lsn)]
        + waiting.compactMap { item in
          switch item {
          case .commit, .state: nil
          case .register(let listen, _, _):
            .register(listen, root.node(at: listen.path), lsn: lsn)
          case .restart(let listen, _, _):
            .restart(listen, root.node(at: listen.path), lsn: lsn)
          case .read(let path, _, let body): .read(path, root.node(at: path), body)
          case .unregister, .call, .end: item
          }
        }
    }
    commitCount = 0
  }
}
