import DendroTree

/// What writes put to one location and those below it, with the numbers of the writes.
struct PlacedWrites: Sendable {
  /// What was put to the location, and to its priority.
  private var nodes = NumberedNodes()
  private var priorities = NumberedNodes()
  private var children: [Key: PlacedWrites] = [:]

  private var isEmpty: Bool { nodes.isEmpty && priorities.isEmpty && children.isEmpty }

  /// - Parameter number: above those of all before it.
  mutating func append(_ node: Node, at place: DataPlace, _ number: Int) {
    if let key = place.path.first {
      children[key, default: PlacedWrites()].append(node, at: place.droppingFirst(), number)
    } else if place.isPriority {
      priorities.append(node, number)
    } else {
      nodes.append(node, number)
    }
  }

  /// What there is beside a write that was removed from a place.
  struct Rest {
    /// Whether a later write is at the place, or covers it.
    var isCovered = false
    /// Whether an earlier write has put a node to the location, or to one above it.
    var hasEarlierNode = false
    /// Whether no write is at the location, above it or below.
    var isNothing = true
  }

  mutating func remove(_ number: Int, at place: DataPlace) -> Rest {
    var rest = Rest()
    _ = remove(number, at: place, &rest)
    return rest
  }

  /// - Returns: whether nothing is left here.
  private mutating func remove(
    _ number: Int, at place: DataPlace, _ rest: inout Rest
  ) -> Bool {
    if let key = place.path.first {
      if let index = children.index(forKey: key),
        children.values[index].remove(number, at: place.droppingFirst(), &rest)
      {
        children.remove(at: index)
      }
    } else {
      if place.isPriority { priorities.remove(number) } else { nodes.remove(number) }
      rest.isNothing = priorities.isEmpty && children.isEmpty
      if place.isPriority { rest.isCovered = priorities.isNewer(than: number) }
    }
    if let first = nodes.first {
      rest.isNothing = false
      if first.number < number { rest.hasEarlierNode = true }
      if nodes.isNewer(than: number) { rest.isCovered = true }
    }
    return isEmpty
  }

  /// Whether a later write than one of this number is at the place, or covers it.
  func isCovered(_ place: DataPlace, after number: Int) -> Bool {
    if nodes.isNewer(than: number) { return true }
    if let key = place.path.first {
      return children[key]?.isCovered(place.droppingFirst(), after: number) ?? false
    }
    return place.isPriority && priorities.isNewer(than: number)
  }

  /// How many keys lead to the first location on a way to which a node was put; nil if there is none.
  func depthOfFirst(on path: Path) -> Int? {
    if !nodes.isEmpty { return 0 }
    guard let key = path.first else { return nil }
    return children[key]?.depthOfFirst(on: path.dropFirst(1)).map { $0 + 1 }
  }

  /// The last node that was put to a location, and the last priority.
  func last(at path: Path) -> (node: (number: Int, node: Node)?, priority: Node?) {
    guard let key = path.first else { return (nodes.last, priorities.last?.node) }
    return children[key]?.last(at: path.dropFirst(1)) ?? (nil, nil)
  }

  /// What was put to the priority of a location and to places below it, in order.
  ///
  /// - Parameter number: of the write behind which to begin; nil for all.
  /// - Complexity: O(n log n) for the writes there.
  func entries(below path: Path, after number: Int?) -> [PendingWrites.Entry] {
    guard let key = path.first else {
      var found: [(number: Int, entry: PendingWrites.Entry)] = []
      collect(into: &found, at: .root, isTop: true, after: number ?? .min)
      return found.sorted { $0.number < $1.number }.map(\.entry)
    }
    return children[key]?.entries(below: path.dropFirst(1), after: number) ?? []
  }

  /// What was put to a location, above it and below, in no order.
  func entries(relatedTo path: Path) -> [(number: Int, entry: PendingWrites.Entry)] {
    var found: [(number: Int, entry: PendingWrites.Entry)] = []
    var here = self
    for (depth, key) in path.keys.enumerated() {
      for item in here.nodes.all(after: .min) {
        found.append((item.number, PendingWrites.Entry(DataPlace(path.prefix(depth)), item.node)))
      }
      guard let next = here.children[key] else { return found }
      here = next
    }
    here.collect(into: &found, at: path, isTop: false, after: .min)
    return found
  }

  private func collect(
    into found: inout [(number: Int, entry: PendingWrites.Entry)], at path: Path, isTop: Bool,
    after number: Int
  ) {
    for item in priorities.all(after: number) {
      found.append(
        (item.number, PendingWrites.Entry(DataPlace(path, isPriority: true), item.node)))
    }
    if !isTop {
      for item in nodes.all(after: number) {
        found.append((item.number, PendingWrites.Entry(DataPlace(path), item.node)))
      }
    }
    for (key, child) in children {
      child.collect(into: &found, at: path.appending(key), isTop: false, after: number)
    }
  }
}

/// Nodes with ascending numbers, of which mostly the first is removed.
private struct NumberedNodes: Sendable {
  private var items: [(number: Int, node: Node)] = []
  /// So many items at the beginning were removed.
  private var head = 0

  var isEmpty: Bool { head == items.count }
  var first: (number: Int, node: Node)? { isEmpty ? nil : items[head] }
  var last: (number: Int, node: Node)? { isEmpty ? nil : items.last }

  func isNewer(than number: Int) -> Bool { last.map { $0.number > number } ?? false }

  func all(after number: Int) -> ArraySlice<(number: Int, node: Node)> {
    items[max(head, index(of: number + (number == .max ? 0 : 1)))...]
  }

  mutating func append(_ node: Node, _ number: Int) { items.append((number, node)) }

  mutating func remove(_ number: Int) {
    let index = index(of: number)
    guard index < items.count, items[index].number == number else { return }
    guard index == head else {
      items.remove(at: index)
      return
    }
    items[index].node = .empty
    head += 1
    if head * 2 > items.count {
      items.removeFirst(head)
      head = 0
    }
  }

  /// The index of the first item with a number of at least this.
  private func index(of number: Int) -> Int {
    var (low, high) = (head, items.count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
