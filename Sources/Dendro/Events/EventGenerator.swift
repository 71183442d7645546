package import DendroTree

/// Makes the events of each query of a sync point from two states of it. Between the calls it keeps the
/// orders of the children and the windows of the queries.
///
/// The events come in this order: removed children, then added, moved and changed ones, the value last;
/// within each group in the query's order, removed children by their old position, the others by their new
/// one. A child that moved gets both a moved and a changed event.
///
/// For a query that shows all children in the order of keys nothing is kept. An order is kept once for all
/// queries of a path, and for all generators that share a registry.
///
/// Not thread-safe: `SharedGenerator` hands it from thread to thread.
package struct EventGenerator {
  /// A query and the kinds of events that its listeners wait for.
  package struct Request: Sendable {
    package var parameters: QueryParameters
    package var types: EventTypes

    package init(_ parameters: QueryParameters, _ types: EventTypes) {
      self.parameters = parameters
      self.types = types
    }

    /// Whether its events need more than a comparison of the whole node.
    var needsChildren: Bool { !parameters.showsAll || types != .value }

    /// Whether its events may need the children sorted.
    var mayUseOrder: Bool {
      !parameters.showsAll || !types.isDisjoint(with: [.added, .moved, .changed])
    }
  }

  /// The registry's orders that the queries here use.
  private var orders: [SortOrder: SharedOrder] = [:]
  private var windows = Windows()
  private let registry: OrderRegistry
  private var tally: ComparisonTally { registry.tally }

  /// - Parameter registry: the orders of the path's children, shared with its other generators.
  package init(_ registry: OrderRegistry = OrderRegistry()) { self.registry = registry }

  /// Comparisons made so far, by all generators that share the registry.
  package var comparisonCount: Int { tally.count }

  /// The number of indexes that are kept.
  package var indexCount: Int { orders.values.count { $0.hasIndex } }

  /// Windows and orders that no listener needs any more.
  package struct Unneeded: Sendable {
    var windows: Set<QueryParameters> = []
    var orders: Set<SortOrder> = []

    package init(windows: Set<QueryParameters> = [], orders: Set<SortOrder> = []) {
      self.windows = windows
      self.orders = orders
    }

    var isEmpty: Bool { windows.isEmpty && orders.isEmpty }
  }

  /// Discards windows and orders. One that is needed again is made again.
  ///
  /// - Complexity: O(windows and orders discarded).
  package mutating func discard(_ unneeded: Unneeded) {
    for parameters in unneeded.windows { windows.remove(parameters) }
    for order in unneeded.orders { orders[order] = nil }
  }

  // MARK: First events

  /// The first event of a query, read from the node without keeping anything; nil if the query shows no
  /// child to report.
  ///
  /// - Complexity: as `Node.filtered(by:)`.
  static func onlyEvent(
    of node: Node, for parameters: QueryParameters, _ type: DataEventType
  ) -> Event? {
    let shown = node.filtered(by: reading(parameters, type))
    if type == .value { return Event(value: ShownChildren(node: shown)) }
    guard let first = shown.children(in: parameters.order).first(where: { _ in true }) else {
      return nil
    }
    return Event(.childAdded, key: first.key, node: first.node, previousKey: nil)
  }

  /// The number of children that `onlyEvent` reads at most.
  static func onlyEventCost(
    of node: Node, for parameters: QueryParameters, _ type: DataEventType
  ) -> Int {
    node.filteringCost(reading(parameters, type))
  }

  /// The query with a limit of one child if its first child is all that is wanted. A query of the last
  /// children keeps its limit, which decides which child is the first.
  private static func reading(_ parameters: QueryParameters, _ type: DataEventType)
    -> QueryParameters
  {
    if type == .value { return parameters }
    if case .last? = parameters.limit { return parameters }
    var parameters = parameters
    parameters.limit = .first(1)
    return parameters
  }

  /// The first events of a registration: every child as added, or the value.
  ///
  /// - Parameters:
  ///   - node: the state of the sync point, from which the next change starts.
  ///   - isSingle: whether only the first event is wanted.
  /// - Complexity: O(n log n) for the first query by a child, a value or priorities that are there;
  ///   O(shown · log n) for the others; O(1) for the value of a query that shows everything.
  package mutating func initialEvents(
    of node: Node, for parameters: QueryParameters, _ type: DataEventType, isSingle: Bool = false
  ) -> [Event] {
    if !parameters.showsAll { attach(parameters, node) }
    switch type {
    case .value: return [Event(value: content(of: parameters, node))]
    case .childAdded:
      let siblings = siblings(parameters.order, node)
      let ranks = windows[parameters]?.ranks ?? 0..<siblings.count
      var events: [Event] = []
      if !isSingle { events.reserveCapacity(ranks.count) }
      var previous: Key?
      siblings.forEachChild(in: ranks) { key, child in
        events.append(Event(.childAdded, key: key, node: child, previousKey: previous))
        previous = key
        return !isSingle
      }
      return events
    case .childRemoved, .childChanged, .childMoved: return []
    }
  }

  /// Whether the query's window is kept, so that its children need not be searched for.
  func keeps(_ parameters: QueryParameters) -> Bool { windows[parameters] != nil }

  /// What the query shows.
  private mutating func content(of parameters: QueryParameters, _ node: Node) -> ShownChildren {
    guard !parameters.showsAll else { return ShownChildren(node: node) }
    let siblings = siblings(parameters.order, node)
    return windows.content(of: parameters, over: siblings)
  }

  private mutating func attach(_ parameters: QueryParameters, _ node: Node) {
    guard windows[parameters] == nil else { return }
    windows.insert(Window(parameters, over: siblings(parameters.order, node)))
  }

  private mutating func siblings(_ order: SortOrder, _ node: Node) -> SiblingOrder {
    shared(order).siblings(of: node)
  }

  private mutating func shared(_ order: SortOrder) -> SharedOrder {
    if let used = orders[order] { return used }
    let shared = registry.shared(order)
    orders[order] = shared
    return shared
  }

  // MARK: Events of a change

  /// The events of each query, in the order of the requests.
  ///
  /// - Parameters:
  ///   - old: the state in which the last call left the sync point.
  ///   - changedKey: the key of the only child that may differ, if it is known.
  /// - Complexity: O(changed children · log n) for each query; parts that both states share are skipped.
  ///   If all children changed, O(n log n).
  package mutating func events(
    from old: Node, to new: Node, changedKey: Key? = nil, for requests: [Request]
  ) -> [[Event]] {
    if old.isIdentical(to: new) { return requests.map { _ in [] } }
    guard !orders.isEmpty || requests.contains(where: \.needsChildren) else {
      let isValueWanted = requests.contains { $0.types.contains(.value) }
      let events = isValueWanted && old != new ? [Event(value: ShownChildren(node: new))] : []
      return requests.map { _ in events }
    }
    for request in requests where !request.parameters.showsAll { attach(request.parameters, old) }
    var step = Step(from: old, to: new, changedKey: changedKey)
    var differences: [QueryParameters: ViewDifference] = [:]
    for (order, shared) in orders {
      let shifts = step.shifts(in: order)
      let siblings = shared.siblings(of: new, after: (old, shifts))
      // Windows that show the same as before have no difference here.
      windows.updateAll { window in
        guard window.parameters.order == order, !window.slide(shifts) else { return }
        differences[window.parameters] = window.advance(over: siblings, step.changes, shifts)
      }
    }
    return requests.map { request in
      if request.parameters.showsAll { return events(of: &step, request) }
      guard let difference = differences[request.parameters] else { return [] }
      return events(of: difference, request, !difference.isEmpty, new)
    }
  }

  // MARK: Windows alone

  /// Makes an order before a window needs it.
  ///
  /// - Complexity: O(n log n) by a child, a value or priorities that are there.
  package mutating func prepare(_ order: SortOrder, of node: Node) { _ = siblings(order, node) }

  /// Keeps the window of a query with bounds or a limit.
  ///
  /// - Parameter node: the state of the sync point.
  /// - Complexity: O(log n) if its order was prepared.
  package mutating func keep(_ parameters: QueryParameters, of node: Node) {
    attach(parameters, node)
  }

  /// What changes in the kept windows that show something else now: their children that enter or change, and an empty node for
  /// each that leaves.
  ///
  /// - Parameter old: the state in which the last call left the sync point.
  /// - Complexity: O(changed children) for each window beside them; as `events` for the others.
  package mutating func windowChanges(
    from old: Node, to new: Node
  ) -> [(parameters: QueryParameters, children: [Key: Node])] {
    if old.isIdentical(to: new) { return [] }
    var changed: [(parameters: QueryParameters, children: [Key: Node])] = []
    var step = Step(from: old, to: new, changedKey: nil)
    for (order, shared) in orders {
      let shifts = step.shifts(in: order)
      let siblings = shared.siblings(of: new, after: (old, shifts))
      windows.updateAll { window in
        guard window.parameters.order == order, !window.slide(shifts) else { return }
        let difference = window.advance(over: siblings, step.changes, shifts)
        if difference.isEmpty { return }
        var children: [Key: Node] = [:]
        for entry in difference.removed { children[entry.key] = .empty }
        for entry in difference.added + difference.changed { children[entry.key] = entry.node }
        changed.append((window.parameters, children))
      }
    }
    return changed
  }

  /// The events of a query that shows everything.
  private mutating func events(of step: inout Step, _ request: Request) -> [Event] {
    var difference = ViewDifference()
    if request.types != .value {
      let order = request.parameters.order
      for change in step.changes {
        let shift = change.shift(in: order)
        difference.note(change, from: shift.old, to: shift.new, order)
      }
      difference.sort(countingIn: tally)
    }
    let differs =
      request.types.contains(.value)
      && (!step.changes.isEmpty || step.old.priority != step.new.priority
        || step.old.scalar != step.new.scalar)
    return events(of: difference, request, differs, step.new)
  }

  private mutating func events(
    of difference: ViewDifference, _ request: Request, _ differs: Bool, _ node: Node
  ) -> [Event] {
    var events: [Event] = []
    if request.types.contains(.removed) {
      for entry in difference.removed {
        events.append(
          Event(.childRemoved, key: entry.key, node: entry.node, previousKey: nil))
      }
    }
    let groups: [(DataEventType, [ViewDifference.Entry])] = [
      (.childAdded, difference.added), (.childMoved, difference.moved),
      (.childChanged, difference.changed),
    ]
    for (type, entries) in groups
    where !entries.isEmpty && request.types.contains(EventTypes(type)) {
      let siblings = siblings(request.parameters.order, node)
      let lowest = windows[request.parameters]?.ranks.lowerBound ?? 0
      for entry in entries {
        events.append(
          Event(
            type, key: entry.key, node: entry.node,
            previousKey: siblings.predecessor(of: entry.position, from: lowest)))
      }
    }
    if differs, request.types.contains(.value) {
      events.append(Event(value: content(of: request.parameters, node)))
    }
    return events
  }
}
