package import DendroTree

/// A location, or the priority of what is there.
package struct DataPlace: Hashable, Sendable {
  package var path: Path
  package var isPriority: Bool

  package init(_ path: Path, isPriority: Bool = false) {
    self.path = path
    self.isPriority = isPriority
  }

  /// The location from which places count.
  static let root = DataPlace(.root)

  /// Whether it is the location from which places count, and not its priority.
  var isRoot: Bool { path.isRoot && !isPriority }

  /// The same place as seen from the child on its way.
  func droppingFirst() -> DataPlace { DataPlace(path.dropFirst(1), isPriority: isPriority) }

  /// The place as seen from further above.
  func below(_ path: Path) -> DataPlace {
    DataPlace(path.appending(self.path), isPriority: isPriority)
  }
}

extension Node {
  /// What is at a place: of a priority, a leaf that is it.
  func node(at place: DataPlace) -> Node {
    let node = node(at: place.path)
    return place.isPriority ? node.priority.map { Node($0) } ?? .empty : node
  }

  /// Makes `node` what is at a place. Nothing has no priority.
  mutating func put(_ node: Node, at place: DataPlace) {
    guard place.isPriority else { return graft(node, at: place.path) }
    if place.path.isRoot {
      self = settingPriority(node.scalar)
      return
    }
    let there = self.node(at: place.path)
    if there.isEmpty { return }
    graft(there.settingPriority(node.scalar), at: place.path)
  }

  func has(_ key: Key) -> Bool { !child(key).isEmpty }

  mutating func put(_ node: Node, at key: Key) { graft(node, at: Path.root.appending(key)) }
}
