package import DendroTree

/// Who listens where: a tree of places, so that a write reaches only those that it concerns.
///
/// The hub's lock guards it.
package struct ListenerTree {
  package final class Place {
    fileprivate var children: [Key: Place] = [:]
    /// What listeners there are told on the callback queue; nil where there is none.
    package fileprivate(set) var location: Location?
    /// Consumers that fetch states themselves.
    package fileprivate(set) var subscriptions: InsertionOrder<Subscription>

    fileprivate init(tally: StepTally) { subscriptions = InsertionOrder(tally: tally) }

    fileprivate var isUnused: Bool {
      children.isEmpty && location == nil && subscriptions.isEmpty
    }
  }

  private let root: Place
  private let tally: StepTally

  package init(tally: StepTally = StepTally()) {
    root = Place(tally: tally)
    self.tally = tally
  }

  /// Whether nobody listens anywhere.
  package var isEmpty: Bool { root.isUnused }

  /// Who listens at exactly this path.
  package func location(at path: Path) -> Location? { trail(to: path)?.last?.location }

  /// Adds a location, of which there is at most one for each path.
  package func insert(_ location: Location) { place(location.path).location = location }

  package func insert(_ subscription: Subscription) {
    place(subscription.path).subscriptions.append(subscription)
  }

  /// Removes a location if it is there.
  ///
  /// - Complexity: O(length of the path), as for subscriptions.
  package func remove(_ location: Location) {
    remove(at: location.path) { if $0.location === location { $0.location = nil } }
  }

  /// Removes a subscription if it is there.
  package func remove(_ subscription: Subscription) {
    remove(at: subscription.path) { $0.subscriptions.remove(subscription.id) }
  }

  private func place(_ path: Path) -> Place {
    var place = root
    for key in path.keys {
      if let next = place.children[key] {
        place = next
      } else {
        let next = Place(tally: tally)
        place.children[key] = next
        place = next
      }
    }
    return place
  }

  /// The places from the root to the path; nil where they do not lead there.
  private func trail(to path: Path) -> [Place]? {
    var trail = [root]
    for key in path.keys {
      guard let next = trail[trail.count - 1].children[key] else { return nil }
      trail.append(next)
    }
    return trail
  }

  /// Removes something, and the places that then lead nowhere.
  private func remove(at path: Path, _ body: (Place) -> Void) {
    guard let trail = trail(to: path) else { return }
    body(trail[trail.count - 1])
    let keys = Array(path.keys)
    for depth in stride(from: keys.count, to: 0, by: -1) {
      guard trail[depth].isUnused else { return }
      trail[depth - 1].children[keys[depth - 1]] = nil
    }
  }

  // MARK: Whom a commit concerns

  /// Calls `body` with each place where changes at these paths may concern somebody and with its new node:
  /// those above, at and below the changed paths; descendants before ancestors, siblings in plain string
  /// order. Places on the way where nobody listens are among them.
  ///
  /// - Complexity: O(length of the paths + places at and below them), whoever listens elsewhere. For a
  ///   single path that leads to nobody nothing is allocated.
  package func forEachConcerned(
    by path: Path, and others: [Path] = [], root node: Node, _ body: (Place, Node) -> Void
  ) {
    if others.isEmpty {
      var keys = path.keys.makeIterator()
      visit(root, &keys, node, body)
    } else {
      visit(root, ([path] + others).map { Array($0.keys)[...] }, node, body)
    }
  }

  private func visit(
    _ place: Place, _ keys: inout Path.Keys.Iterator, _ node: Node,
    _ body: (Place, Node) -> Void
  ) {
    guard let key = keys.next() else { return visitAll(place, node, body) }
    if let next = place.children[key] { visit(next, &keys, node.child(key), body) }
    body(place, node)
  }

  private func visit(
    _ place: Place, _ paths: [ArraySlice<Key>], _ node: Node, _ body: (Place, Node) -> Void
  ) {
    if paths.contains(where: \.isEmpty) { return visitAll(place, node, body) }
    if !place.children.isEmpty {
      var concerned: [Key: [ArraySlice<Key>]] = [:]
      for path in paths {
        guard let key = path.first, place.children[key] != nil else { continue }
        concerned[key, default: []].append(path.dropFirst())
      }
      for key in Self.inStringOrder(concerned.keys) {
        if let next = place.children[key], let rest = concerned[key] {
          visit(next, rest, node.child(key), body)
        }
      }
    }
    body(place, node)
  }

  private func visitAll(_ place: Place, _ node: Node, _ body: (Place, Node) -> Void) {
    for key in Self.inStringOrder(place.children.keys) {
      if let next = place.children[key] { visitAll(next, node.child(key), body) }
    }
    body(place, node)
  }

  /// Not the order of keys: here 10 comes before 9, as in the SDKs.
  private static func inStringOrder(_ keys: some Collection<Key>) -> [Key] {
    guard keys.count > 1 else { return Array(keys) }
    return keys.map { (key: $0, units: Array($0.string.utf16)) }
      .sorted { $0.units.lexicographicallyPrecedes($1.units) }
      .map(\.key)
  }
}
