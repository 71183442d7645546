import DendroTree

/// Which locations the tracked targets cover: all of a location, or of one the children that a query shows.
///
/// A node here stands for a location.
struct TrackedPlaces: Sendable {
  /// Whether all of the location is covered.
  private var isWhole = false
  /// The children that queries of the location show.
  private var windows: [QueryParameters: Set<Key>] = [:]
  private var children: [Key: TrackedPlaces] = [:]

  private var isEmpty: Bool { !isWhole && windows.isEmpty && children.isEmpty }

  /// The places of a location; nil if nothing is tracked there and below.
  func places(at path: Path) -> TrackedPlaces? {
    guard let key = path.first else { return self }
    return children[key]?.places(at: path.dropFirst(1))
  }

  /// Whether all of a location is covered, by a target there or above.
  func covers(_ path: Path) -> Bool {
    if isWhole { return true }
    guard let key = path.first else { return false }
    if windows.values.contains(where: { $0.contains(key) }) { return true }
    return children[key]?.covers(path.dropFirst(1)) ?? false
  }

  /// The children of which all is covered.
  var wholeChildren: Set<Key> {
    windows.values.reduce(into: Set(children.filter { $0.value.isWhole }.keys)) {
      $0.formUnion($1)
    }
  }

  /// Covers what a target shows, or no more.
  ///
  /// - Parameter keys: the children that the query shows; nil if the target is not tracked any more.
  mutating func set(_ target: QueryTarget, keys: Set<Key>?) {
    change(at: target.path) { places in
      if target.parameters.showsAll {
        places.isWhole = keys != nil
      } else {
        places.windows[target.parameters] = keys
      }
    }
  }

  /// Has a query show a child, or no more.
  mutating func setChild(_ key: Key, of target: QueryTarget, isShown: Bool) {
    change(at: target.path) { places in
      if isShown {
        places.windows[target.parameters]?.insert(key)
      } else {
        places.windows[target.parameters]?.remove(key)
      }
    }
  }

  private mutating func change(at path: Path, _ body: (inout TrackedPlaces) -> Void) {
    guard let key = path.first else { return body(&self) }
    children[key, default: TrackedPlaces()].change(at: path.dropFirst(1), body)
    if children[key]?.isEmpty == true { children[key] = nil }
  }

  /// What of a location's node is covered. The location itself is not, by anything above it.
  ///
  /// - Complexity: O(what is tracked there and below).
  func covered(of node: Node) -> Node {
    if isWhole || node.isEmpty { return node }
    var covered = Node.empty
    let shown = windows.values.reduce(into: Set<Key>()) { $0.formUnion($1) }
    for key in shown { covered.put(node.child(key), at: key) }
    for (key, places) in children where !shown.contains(key) {
      covered.put(places.covered(of: node.child(key)), at: key)
    }
    return covered
  }
}
