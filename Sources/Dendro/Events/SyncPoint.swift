package import DendroTree
import Synchronization

/// A path that has listeners: its queries, the state that they saw last, and the backlog of states that they
/// have not seen yet.
///
/// Unchecked: the hub's lock guards it. Without the lock the running drain reads what it alone changes: the state
/// that the queries saw last, and the generator.
package final class SyncPoint: @unchecked Sendable {
  package let path: Path
  /// In the order of the first registrations.
  private var queries: InsertionOrder<ListenedQuery>
  private var keptAudiences: Audiences?
  private let tally: StepTally
  /// For each order, the number of registrations whose events may need the children in it.
  private var orderUseCounts: [SortOrder: Int] = [:]
  /// Windows and orders that removed listeners needed.
  private var unneeded = EventGenerator.Unneeded()
  /// Makes the events. Only the running drain uses it, in the order of the work.
  let generator: SharedGenerator
  /// The state of the last change that a drain has taken, of which its queries have seen the events or are about to. Only the
  /// running drain changes it, once the first one is read.
  private(set) var seen: Node
  /// Whether that is all there is. Of a database that keeps in step with a server only a part may be known.
  private(set) var isSeenComplete: Bool
  private var backlog = Queue<State>()
  /// How many pieces of work `change` for this sync point are in the hub's queue.
  private var queuedCount = 0
  /// Whether a piece of work `pruning` for this sync point is in the hub's queue.
  private var isPruningQueued = false
  /// While the data of the path is read, the work for the sync point, which waits for that; nil at other times.
  private var held: [EventHub.Work]?

  private struct State {
    let node: Node
    let isComplete: Bool
    /// The key of the only child that may differ from the state before; nil if any may.
    let changedKey: Key?
  }

  /// The most states that wait for a slow listener, besides those that a drain has taken.
  package static let backlogLimit = 64

  package init(
    path: Path, node: Node, isComplete: Bool = true, orders: OrderRegistry = OrderRegistry(),
    tally: StepTally = StepTally()
  ) {
    self.path = path
    generator = SharedGenerator(orders)
    self.tally = tally
    queries = InsertionOrder(tally: tally)
    seen = node
    isSeenComplete = isComplete
  }

  var isUnused: Bool { queries.isEmpty }

  // MARK: Listeners

  func listenedQuery(_ parameters: QueryParameters) -> ListenedQuery? { queries[parameters] }

  /// All registrations here, also those whose first events are still queued.
  var registrations: [Registration] {
    tally.count += queries.slots.count
    return queries.slots.flatMap { $0?.registrations ?? [] }
  }

  /// The listeners that a change now reaches. They are kept until a listener is added or removed, or gets its
  /// first events.
  var audiences: Audiences {
    if let keptAudiences { return keptAudiences }
    tally.count += queries.slots.count
    let audiences = Audiences(queries.slots.compactMap { $0?.audience })
    keptAudiences = audiences
    return audiences
  }

  /// Marks a registration as one that gets changes from now on.
  func activate(_ registration: Registration) {
    keptAudiences = nil
    queries[registration.query.parameters]?.activate(registration)
  }

  func add(_ registration: Registration) {
    keptAudiences = nil
    let parameters = registration.query.parameters
    if let query = queries[parameters] {
      query.add(registration)
    } else {
      let query = ListenedQuery(parameters, tally: tally)
      query.add(registration)
      queries.append(query)
    }
    if registration.request.mayUseOrder { orderUseCounts[parameters.order, default: 0] += 1 }
  }

  /// Removes a registration that was added.
  func remove(_ registration: Registration) {
    keptAudiences = nil
    let parameters = registration.query.parameters
    guard let query = queries[parameters] else { return }
    query.remove(registration)
    if query.isUnused {
      queries.remove(parameters)
      if !parameters.showsAll { unneeded.windows.insert(parameters) }
    }
    guard registration.request.mayUseOrder, let count = orderUseCounts[parameters.order] else {
      return
    }
    orderUseCounts[parameters.order] = count > 1 ? count - 1 : nil
    if count == 1 { unneeded.orders.insert(parameters.order) }
  }

  /// Notes that the generator may keep windows or orders that no listener needs.
  ///
  /// - Returns: whether the caller appends a piece of work `pruning` for the sync point to the hub's queue.
  func queuePruning() -> Bool {
    guard isUnused || !unneeded.isEmpty, !isPruningQueued else { return false }
    isPruningQueued = true
    return true
  }

  /// The windows and orders that removed listeners needed and no remaining one needs.
  func takeUnneeded() -> EventGenerator.Unneeded {
    isPruningQueued = false
    defer { unneeded = EventGenerator.Unneeded() }
    tally.count += unneeded.windows.count + unneeded.orders.count
    return EventGenerator.Unneeded(
      windows: unneeded.windows.filter { queries[$0] == nil },
      orders: unneeded.orders.filter { orderUseCounts[$0] == nil })
  }

  // MARK: States

  /// The number of states that wait.
  var backlogCount: Int { backlog.count }

  /// Notes a new state, and the key of the only child that may have changed, if it is known.
  ///
  /// A full backlog is replaced by this one state: the listeners then get the difference from the state
  /// that they saw last. The state takes the queue position of the oldest one that it replaces, so that it
  /// is delivered before everything that is queued later.
  ///
  /// `replaced` gets the replaced states. The caller frees them once it holds no lock, since freeing pages
  /// that no other state shares may take long.
  ///
  /// - Returns: whether the caller appends a piece of work `change` for the sync point to the hub's queue.
  package func note(
    _ node: Node, isComplete: Bool = true, changedKey: Key? = nil, replacing replaced: inout [Node]
  ) -> Bool {
    var changedKey = changedKey
    if backlog.count >= Self.backlogLimit {
      while let state = backlog.popFirst() { replaced.append(state.node) }
      changedKey = nil
    }
    backlog.append(State(node: node, isComplete: isComplete, changedKey: changedKey))
    guard queuedCount < backlog.count else { return false }
    queuedCount += 1
    return true
  }

  /// A step from one state to the next, and the listeners that it reaches.
  struct Change: Sendable {
    let old: Node
    let new: Node
    let wasComplete: Bool
    let isComplete: Bool
    /// The key of the only child that may differ; nil if any may.
    let changedKey: Key?
    /// Nil if no listener is left. Without any audience all listeners still wait for their first events, and
    /// the generator follows the change for them.
    let audiences: Audiences?
  }

  /// Takes the next state from the backlog, which the queries have seen from now on; nil if none waits.
  ///
  /// The caller frees the old state once it holds no lock.
  func takeNextState() -> Change? {
    queuedCount -= 1
    guard let next = backlog.popFirst() else { return nil }
    defer {
      seen = next.node
      isSeenComplete = next.isComplete
    }
    return Change(
      old: seen, new: next.node, wasComplete: isSeenComplete, isComplete: next.isComplete,
      changedKey: next.changedKey, audiences: isUnused ? nil : audiences)
  }

  // MARK: Reading

  /// Makes all work for a new sync point wait until its first state, of which pages were not read yet, is read.
  func beginReading() { held = [] }

  /// Keeps a piece of work for the sync point while its first state is read.
  ///
  /// - Returns: false if it does not wait for that.
  func hold(_ work: EventHub.Work) -> Bool { held?.append(work) != nil }

  /// Sets the first state. No drain has work for the sync point yet.
  ///
  /// - Returns: the work that has waited for it.
  func endReading(_ node: Node) -> [EventHub.Work] {
    seen = node
    defer { held = nil }
    return held ?? []
  }
}
