package import DendroTree
import Synchronization

/// One location that somebody listens to: its views, what they were last told, and what they are still
/// to be told. The hub's lock guards it.
package final class Location {
  package let path: Path
  /// In the order in which their first registration came; each with other parameters.
  private var views: InsertionOrder<View>
  private let tally: StepTally
  /// How many registrations may need the children in an order.
  private var orderUseCounts: [SortOrder: Int] = [:]
  /// What somebody needed who left.
  private var unneeded = EventGenerator.Unneeded()
  /// What makes the events. Only the one drain that runs uses it, in the order of the work.
  let generator = SharedGenerator()
  /// What the views were told last.
  private(set) var seen: Node
  private var backlog = Queue<Node>()
  /// How often the location stands in the delivery queue.
  private var turns = 0
  /// Whether the generator is to be told what it need not keep any longer.
  var isTidyingQueued = false

  /// States that wait for a slow listener at most.
  package static let backlogLimit = 64

  package init(path: Path, node: Node, tally: StepTally = StepTally()) {
    self.path = path
    self.tally = tally
    views = InsertionOrder(tally: tally)
    seen = node
  }

  var isUnused: Bool { views.isEmpty }

  // MARK: Who listens

  func view(_ parameters: QueryParameters) -> View? { views[parameters] }

  /// All who listen here, also those whose first events wait in the queue.
  var registrations: [Registration] {
    tally.count += views.slots.count
    return views.slots.flatMap { $0?.registrations ?? [] }
  }

  /// Whom to tell of a change now.
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
  func leave(_ registration: Registration) {
    let parameters = registration.query.parameters
    guard let view = views[parameters] else { return }
    view.leave(registration)
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

  /// Whether something may be let go.
  var needsTidying: Bool { isUnused || !unneeded.isEmpty }

  /// What somebody needed who left, and nobody else does.
  func takeUnneeded() -> EventGenerator.Unneeded {
    defer { unneeded = EventGenerator.Unneeded() }
    tally.count += unneeded.windows.count + unneeded.orders.count
    return EventGenerator.Unneeded(
      windows: unneeded.windows.filter { views[$0] == nil },
      orders: unneeded.orders.filter { orderUseCounts[$0] == nil })
  }

  // MARK: What they are told

  /// The number of states that wait.
  var backlogCount: Int { backlog.count }

  /// Notes a new state.
  ///
  /// Past the limit the backlog becomes this one state: the listeners get the difference from what they
  /// saw last. It comes in the place of the oldest state, so it is early rather than late: never after
  /// what is queued once the state was noted.
  ///
  /// `replaced` gets the states that no longer wait. Who calls lets them go when no lock is held, since
  /// freeing what no other state shares may take long.
  ///
  /// - Returns: whether the location is to be appended to the delivery queue.
  package func note(_ node: Node, replacing replaced: inout [Node]) -> Bool {
    if backlog.count >= Self.backlogLimit { backlog.removeAll(into: &replaced) }
    backlog.append(node)
    guard turns < backlog.count else { return false }
    turns += 1
    return true
  }

  /// The location's turn in the queue.
  ///
  /// - Returns: the states between which the views are told the difference; nil where there is nothing to
  ///   tell.
  func takeTurn() -> (old: Node, new: Node)? {
    turns -= 1
    guard let next = backlog.popFirst() else { return nil }
    defer { seen = next }
    return (seen, next)
  }
}

/// An event generator that can be handed to the drain: the lock is never waited for.
final class SharedGenerator: Sendable {
  private let generator = Mutex(EventGenerator())

  func events(from old: Node, to new: Node, for requests: [EventGenerator.Request]) -> [[Event]] {
    generator.withLock { $0.events(from: old, to: new, for: requests) }
  }

  func initialEvents(
    of node: Node, for parameters: QueryParameters, _ type: DataEventType, isSingle: Bool
  ) -> [Event] {
    generator.withLock { $0.initialEvents(of: node, for: parameters, type, isSingle: isSingle) }
  }

  func letGo(_ unneeded: EventGenerator.Unneeded) {
    generator.withLock { $0.letGo(unneeded) }
  }

  /// Comparisons of places made so far.
  var comparisonCount: Int { generator.withLock { $0.comparisonCount } }
}
