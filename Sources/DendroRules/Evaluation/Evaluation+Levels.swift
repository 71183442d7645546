import DendroTree

/// The way from the root to the location whose rule is evaluated.
extension Evaluation {
  /// Makes the levels from the root to the path, and keeps those that the entry before had as well: their rules see
  /// the same data, and are not asked again.
  ///
  /// - Returns: whether there are rules for the path itself.
  mutating func walk(to path: UnsafeRawBufferPointer) -> Bool {
    var depth = 1
    for key in KeyViews(storedPath: path) {
      if depth < levels.count, let known = places[2 &* depth].key, known == key {
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
  mutating func descend(_ key: KeyView) -> Bool {
    let node = program.child(Int(levels[levels.count &- 1].node), key)
    guard node >= 0 else { return false }
    push(key, node, nil)
    return true
  }

  /// - Parameter new: what is there after the write; nil if it is looked up when it is asked for.
  mutating func push(_ key: KeyView, _ node: Int, _ new: Source.View?) {
    let parent = Int32(truncatingIfNeeded: places.count &- 2)
    let depth = Int16(truncatingIfNeeded: levels.count)
    levels.append(Level(node: Int32(truncatingIfNeeded: node)))
    places.append(Place(view: nil, isNew: false, depth: depth, parent: parent, key: key))
    places.append(Place(view: new, isNew: true, depth: depth, parent: parent &+ 1, key: key))
  }

  /// Keeps so many levels.
  mutating func ascend(to count: Int) {
    levels.truncate(to: count)
    forgetExpression()
  }

  /// Forgets the places, texts and objects that belong to no level: no value refers to them any more.
  @inline(__always)
  mutating func forgetExpression() {
    places.truncate(to: 2 &* levels.count)
    texts.reset()
    objects.truncate(to: 0)
  }

  /// The key that the `$` name with a number is bound to.
  mutating func text(ofBinding slot: Int, _ level: Int) -> Text {
    var current = level
    while current > 0, program.nodeCodes[Int(levels[current].node)].slot != slot { current &-= 1 }
    guard let key = places[2 &* current].key else { return texts.text(of: "") }
    if let bytes = key.spelledBytes { return Text(bytes) }
    return texts.text(keeping: key.string)
  }
}
