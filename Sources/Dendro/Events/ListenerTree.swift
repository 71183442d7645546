package import DendroTree

/// Who listens where: a tree of locations, so that a write reaches only those that it concerns.
///
/// The hub's lock guards it.
package struct ListenerTree {
  private final class Location {
    var children: [Key: Location] = [:]
    /// In the order in which their first registration came. A location has one view for each set of
    /// query parameters.
    var views: [View] = []
  }

  private let root = Location()

  package init() {}

  /// Whether nobody listens anywhere.
  package var isEmpty: Bool { root.children.isEmpty && root.views.isEmpty }

  /// The views of exactly this location.
  func views(at path: Path) -> [View] { location(path)?.views ?? [] }

  /// Adds a view, after those that its location has.
  package func insert(_ view: View) {
    var location = root
    for key in view.path.keys {
      if let next = location.children[key] {
        location = next
      } else {
        let next = Location()
        location.children[key] = next
        location = next
      }
    }
    location.views.append(view)
  }

  /// Removes a view, and the locations that then lead nowhere.
  package func remove(_ view: View) {
    var trail = [root]
    let keys = Array(view.path.keys)
    for key in keys {
      guard let next = trail[trail.count - 1].children[key] else { return }
      trail.append(next)
    }
    trail[keys.count].views.removeAll { $0 === view }
    for depth in stride(from: keys.count, to: 0, by: -1) {
      guard trail[depth].views.isEmpty, trail[depth].children.isEmpty else { return }
      trail[depth - 1].children[keys[depth - 1]] = nil
    }
  }

  private func location(_ path: Path) -> Location? {
    var location = root
    for key in path.keys {
      guard let next = location.children[key] else { return nil }
      location = next
    }
    return location
  }

  // MARK: Whom a commit concerns

  /// Calls `body` with each view that changes at `paths` may concern and the view's new node: those
  /// above, at and below the changed places; descendants before ancestors, siblings in plain string
  /// order.
  ///
  /// - Complexity: O(length of the paths + views concerned), whoever listens elsewhere.
  package func forEachConcerned(by paths: [Path], root node: Node, _ body: (View, Node) -> Void) {
    if paths.count == 1 {
      var keys = paths[0].keys.makeIterator()
      visit(root, &keys, node, body)
    } else {
      visit(root, paths.map { Array($0.keys)[...] }, node, body)
    }
  }

  private func visit(
    _ location: Location, _ keys: inout Path.Keys.Iterator, _ node: Node,
    _ body: (View, Node) -> Void
  ) {
    guard let key = keys.next() else { return visitAll(location, node, body) }
    if let next = location.children[key] { visit(next, &keys, node.child(key), body) }
    for view in location.views { body(view, node) }
  }

  private func visit(
    _ location: Location, _ paths: [ArraySlice<Key>], _ node: Node, _ body: (View, Node) -> Void
  ) {
    if paths.contains(where: \.isEmpty) { return visitAll(location, node, body) }
    if !location.children.isEmpty {
      var concerned: [Key: [ArraySlice<Key>]] = [:]
      for path in paths {
        guard let key = path.first, location.children[key] != nil else { continue }
        concerned[key, default: []].append(path.dropFirst())
      }
      for key in Self.inStringOrder(concerned.keys) {
        if let next = location.children[key], let rest = concerned[key] {
          visit(next, rest, node.child(key), body)
        }
      }
    }
    for view in location.views { body(view, node) }
  }

  private func visitAll(_ location: Location, _ node: Node, _ body: (View, Node) -> Void) {
    for key in Self.inStringOrder(location.children.keys) {
      if let next = location.children[key] { visitAll(next, node.child(key), body) }
    }
    for view in location.views { body(view, node) }
  }

  /// Not the order of keys: here 10 comes before 9, as in the SDKs.
  private static func inStringOrder(_ keys: some Collection<Key>) -> [Key] {
    guard keys.count > 1 else { return Array(keys) }
    return keys.map { (key: $0, units: Array($0.string.utf16)) }
      .sorted { $0.units.lexicographicallyPrecedes($1.units) }
      .map(\.key)
  }
}
