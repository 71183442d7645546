import DendroTree

/// What writes make of the data where they reach, whatever the data is otherwise.
///
/// A node here stands for a location. It is empty where nothing is written.
struct WriteLayer: Sendable {
  /// All that is at the location, if writes cover it; there is nothing else in this node then.
  private(set) var whole: Node?
  /// The priority as a leaf or nothing, if the priority is written and the location is not.
  private(set) var priority: Node?
  private(set) var children: [Key: WriteLayer] = [:]
  /// The children that writes do not cover.
  private(set) var parts: Set<Key> = []

  init() {}

  init(whole: Node) { self.whole = whole }

  var isEmpty: Bool { whole == nil && priority == nil && children.isEmpty }

  // MARK: Writing

  /// Puts a write over those before it.
  mutating func put(_ node: Node, at place: DataPlace) {
    if whole != nil {
      whole?.put(node, at: place)
      return
    }
    if let key = place.path.first {
      change(key) { $0.put(node, at: place.droppingFirst()) }
    } else if place.isPriority {
      priority = node
    } else {
      self = WriteLayer(whole: node)
    }
  }

  /// Puts another layer in the place of what is at a location, which no write above it covers.
  mutating func replace(_ path: Path, by layer: WriteLayer) {
    guard let key = path.first else {
      self = layer
      return
    }
    change(key) { $0.replace(path.dropFirst(1), by: layer) }
  }

  /// Forgets that the priority of a location was written, or has it be written otherwise. No write covers the location.
  mutating func replacePriority(at path: Path, by priority: Node?) {
    guard let key = path.first else {
      self.priority = priority
      return
    }
    change(key) { $0.replacePriority(at: path.dropFirst(1), by: priority) }
  }

  private mutating func change(_ key: Key, _ body: (inout WriteLayer) -> Void) {
    let (was, became) = Self.change(&children[key, default: WriteLayer()], body)
    if became == .nothing { children[key] = nil }
    if was == became { return }
    if became == .part { parts.insert(key) } else { parts.remove(key) }
  }

  private static func change(
    _ child: inout WriteLayer, _ body: (inout WriteLayer) -> Void
  ) -> (Reach, Reach) {
    let was = child.reach
    body(&child)
    return (was, child.reach)
  }

  /// How much of the location writes cover.
  private enum Reach { case nothing, part, all }

  private var reach: Reach { whole != nil ? .all : isEmpty ? .nothing : .part }

  // MARK: Reading

  /// What is at a place, if writes cover it.
  func covering(_ place: DataPlace) -> Node? {
    if let whole { return whole.node(at: place) }
    if let key = place.path.first { return children[key]?.covering(place.droppingFirst()) }
    return place.isPriority ? priority : nil
  }

  /// What is written at a child of the location.
  func below(_ key: Key) -> WriteLayer {
    if let whole { return WriteLayer(whole: whole.child(key)) }
    return children[key] ?? WriteLayer()
  }

  /// What is written at a location and below.
  func below(_ path: Path) -> WriteLayer {
    var layer = self
    for key in path.keys { layer = layer.below(key) }
    return layer
  }

  /// What is written at a place and below: nothing at a priority that is not covered.
  func below(_ place: DataPlace) -> WriteLayer {
    guard place.isPriority else { return below(place.path) }
    return covering(place).map { WriteLayer(whole: $0) } ?? WriteLayer()
  }

  /// The node with the writes.
  ///
  /// - Complexity: O(places that are written).
  func applied(to node: Node) -> Node {
    if let whole { return whole }
    var node = node
    put(into: &node, where: { _, _ in true })
    // Last: what has come to be there has a priority, and nothing has none.
    if let priority, !node.isEmpty { node = node.settingPriority(priority.scalar) }
    return node
  }

  /// The children that are wholly known: those of a node that has known ones, with the writes, and those that writes cover.
  ///
  /// - Complexity: O(places that are written).
  func knownChildren(over node: Node) -> Node {
    if let whole { return whole.isBranch ? whole.settingPriority(nil) : .empty }
    var known = node.isBranch ? node.settingPriority(nil) : .empty
    put(into: &known) { child, layer in !child.isEmpty || layer.whole != nil }
    return known
  }

  /// Puts the writes of the children into a node. What is removed goes last: a node that never is without children keeps its
  /// priority.
  private func put(
    into node: inout Node, where isMeant: (_ child: Node, _ layer: WriteLayer) -> Bool
  ) {
    var removed: [Key] = []
    for (key, layer) in children {
      let child = node.child(key)
      guard isMeant(child, layer) else { continue }
      let new = layer.applied(to: child)
      if new.isEmpty { removed.append(key) } else { node.put(new, at: key) }
    }
    for key in removed { node.put(.empty, at: key) }
  }
}
