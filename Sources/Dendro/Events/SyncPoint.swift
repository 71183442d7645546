package import DendroTree
import Synchronization

/// One place that has listeners: its views, the state that they saw last, and the states that they have yet
/// to see. The hub's lock guards it.
package final class SyncPoint {
  package let path: Path
  /// In the order in which their first registration came; each with other parameters.
  private var views: InsertionOrder<View>
  private let tally: StepTally
  /// How many registrations may need the children in an order.
  private var orderUseCounts: [SortOrder: Int] = [:]
  /// What removed listeners needed.
  private var unneeded = EventGenerator.Unneeded()
  /// What makes the events. Only the one drain that runs uses it, in the order of the work.
  let generator: SharedGenerator
  /// The state that the views saw last.
  private(set) var seen: Node
  private var backlog = Queue<Node>()
  /// How many pieces of work in the queue are for this sync point's states.
  private var queuedCount = 0
  /// Whether the queue holds a piece of work that discards what the generator need not keep.
  var isPruningQueued = false

  /// States that wait for a slow listener at most.
  package static let backlogLimit = 64

  package init(
    path: Path, node: Node, orders: OrderRegistry = OrderRegistry(),
    tally: StepTally = StepTally()
  ) {
    self.path = path
    generator = SharedGenerator(orders)
    self.tally = tally
    views = InsertionOrder(tally: tally)
    seen = node
  }

  var isUnused: Bool { views.isEmpty }

  // MARK: Listeners

  func view(_ parameters: QueryParameters) -> View? { views[parameters] }

  /// All listeners here, also those whose first events wait in the queue.
  var registrations: [Registration] {
    tally.count += views.slots.count
    return views.slots.flatMap { $0?.registrations ?? [] }
  }

  /// The listeners that get a change now.
  var audiences: [Audience] {
    tally.count += views.slots.count
    return views.slots.compactMap { $0?.audience }
  }

  func add(_ registration: Registration) {
    let parameters = registration.query.parameters
    if let view = views[parameters] {
      view.add(registration)
    } else {
      let view = View(parameters, tally: tally)
      view.add(registration)
      views.append(view)
    }
    if registration.request.mayUseOrder { orderUseCounts[parameters.order, default: 0] += 1 }
  }

  /// Removes a registration that was added.
  func remove(_ registration: Registration) {
    let parameters = registration.query.parameters
    guard let view = views[parameters] else { return }
    view.remove(registration)
    if view.isUnused {
      views.remove(parameters)
      if !parameters.showsAll { unneeded.windows.insert(parameters) }
    }
    guard registration.request.mayUseOrder, let count = orderUseCounts[parameters.order] else {
      return
    }
    orderUseCounts[parameters.order] = count > 1 ? count - 1 : nil
    if count == 1 { unneeded.orders.insert(parameters.order) }
  }

  /// Whether the generator may keep what is not needed.
  var needsPruning: Bool { isUnused || !unneeded.isEmpty }

  /// What removed listeners needed and no other one needs.
  func takeUnneeded() -> EventGenerator.Unneeded {
    defer { unneeded = EventGenerator.Unneeded() }
    tally.count += unneeded.windows.count + unneeded.orders.count
    return EventGenerator.Unneeded(
      windows: unneeded.windows.filter { views[$0] == nil },
      orders: unneeded.orders.filter { orderUseCounts[$0] == nil })
  }

  // MARK: States

  /// The number of states that wait.
  var backlogCount: Int { backlog.count }

  /// Notes a new state.
  ///
  /// Past the limit the backlog becomes this one state: the listeners get the difference from what they
  /// saw last. It comes in the place of the oldest state, so it is early rather than late: never after
  /// what is queued once the state was noted.
  ///
  /// `replaced` gets the states that no longer wait. The caller frees them once no lock is held, since
  /// freeing what no other state shares may take long.
  ///
  /// - Returns: whether the sync point is to be appended to the delivery queue.
  package func note(_ node: Node, replacing replaced: inout [Node]) -> Bool {
    if backlog.count >= Self.backlogLimit { backlog.removeAll(into: &replaced) }
    backlog.append(node)
    guard queuedCount < backlog.count else { return false }
    queuedCount += 1
    return true
  }

  /// Takes the next state from the backlog.
  ///
  /// - Returns: the state that the views saw last and the one that they see now; nil where none waits.
  func takeNextState() -> (old: Node, new: Node)? {
    queuedCount -= 1
    guard let next = backlog.popFirst() else { return nil }
    defer { seen = next }
    return (seen, next)
  }
}
