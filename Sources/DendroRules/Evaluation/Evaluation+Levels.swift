import DendroTree

/// The way from the root to the location whose rule is evaluated.
extension Evaluation {
  /// Makes the levels from the root to the path, and keeps those that the entry before had as well: their rules see
  /// the same data, and are not asked again.
  ///
  /// - Returns: whether there are rules for the path itself.
  mutating func walk(to path: Path) -> Bool {
    var depth = 1
    for key in path.keys {
      if depth < levels.count, ownKeys[depth &- 1] == key {
        depth &+= 1
        continue
      }
      ascend(to: depth)
      guard descend(key) else { return false }
      depth &+= 1
    }
    ascend(to: depth)
    return true
  }

  /// - Returns: false if there are no rules for the child.
  mutating func descend(_ key: Key) -> Bool {
    let node = program.child(Int(levels[levels.count &- 1].node), key)
    guard node >= 0 else { return false }
    push(key, node, nil)
    return true
  }

  /// - Parameter new: what is there after the write; nil if it is looked up when it is asked for.
  mutating func push(_ key: Key, _ node: Int, _ new: Source.View?) {
    let parent = Int32(truncatingIfNeeded: places.count &- 2)
    let depth = Int16(truncatingIfNeeded: levels.count)
    let index = KeyIndex.own(Int32(truncatingIfNeeded: ownKeys.count))
    ownKeys.append(key)
    levels.append(Level(node: Int32(truncatingIfNeeded: node)))
    places.append(Place(view: nil, key: index, parent: parent, depth: depth, isNew: false))
    places.append(Place(view: new, key: index, parent: parent &+ 1, depth: depth, isNew: true))
  }

  /// Keeps so many levels.
  mutating func ascend(to count: Int) {
    while levels.count > count {
      let slot = program.nodeCodes[Int(levels[levels.count &- 1].node)].slot
      if slot >= 0, slot == boundSlot { boundSlot = -1 }
      levels.removeLast()
    }
    dropPlaces()
  }

  /// Forgets the places and keys that belong to no level.
  mutating func dropPlaces() {
    places.truncate(to: 2 &* levels.count)
    ownKeys.truncate(to: levels.count &- 1)
  }

  /// The key that the `$` name with a number is bound to.
  mutating func name(ofBinding slot: Int, _ level: Int) -> String {
    if slot == boundSlot { return boundName }
    var current = level
    while current > 0, program.nodeCodes[Int(levels[current].node)].slot != slot { current &-= 1 }
    boundName = current > 0 ? ownKeys[current &- 1].string : ""
    boundSlot = slot
    return boundName
  }
}
