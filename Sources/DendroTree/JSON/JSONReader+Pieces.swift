extension JSONReader {
  /// Records the keys that were yielded, in memory that does not grow with their number: it has the
  /// first keys, and the largest one, which is enough for keys that come in order.
  struct YieldedKeys {
    private static let limit = 1024
    private var first = Set<Key>()
    private var largest: Key?

    mutating func insert(_ key: Key) {
      if first.count < Self.limit { first.insert(key) }
      if let largest, key < largest { return }
      largest = key
    }

    /// False only if the key was certainly not inserted.
    func mayContain(_ key: Key) -> Bool {
      guard let largest, key <= largest else { return false }
      return first.count == Self.limit || first.contains(key)
    }
  }

  /// Appends a child, whose key is the last of `keys`, to the innermost level. The node is nil if the
  /// child was yielded in pieces.
  mutating func append(_ node: Node?, from start: Int) throws(JSONFailure) {
    let key = keys.removeLast()
    // Splitting the child has split this level too.
    guard let node else { return }
    let level = levels.count - 1
    // In an object, an empty value removes the value of an earlier equal key.
    if node.isEmpty, levels[level].isArray { return }
    if let path = levels[level].path {
      levels[level].yieldedKeys.insert(key)
      try yieldNode(node, at: path.appending(key), byteCount: scanner.offset - start)
    } else {
      levels[level].builder.append(key, node)
      if scanner.offset - levels[level].start > pieceBytes { try split() }
    }
  }

  /// Switches all open levels, outermost first, from building a node to yielding each child. `keys`
  /// leads to the innermost level.
  mutating func split() throws(JSONFailure) {
    /// Whether an earlier equal key may have yielded a value for this level. It is emptied first, or its
    /// children would remain.
    var mayBeOccupied = false
    for level in levels.indices {
      if levels[level].path == nil {
        let path = Path(keys: keys[..<level])
        if mayBeOccupied { try yieldNode(.empty, at: path, byteCount: 0) }
        levels[level].path = path
        var builder = NodeBuilder()
        swap(&builder, &levels[level].builder)
        let node = builder.finish(priority: nil)
        let share = (scanner.offset - levels[level].start) / max(1, node.childCount)
        for (key, child) in node.children {
          levels[level].yieldedKeys.insert(key)
          try yieldNode(child, at: path.appending(key), byteCount: share)
        }
      }
      guard level < keys.count else { continue }
      mayBeOccupied = !levels[level].isArray && levels[level].yieldedKeys.mayContain(keys[level])
      levels[level].yieldedKeys.insert(keys[level])
    }
  }

  private func yieldNode(_ node: Node, at path: Path, byteCount: Int) throws(JSONFailure) {
    do {
      try yield(JSONPiece(path: path, content: .node(node), byteCount: byteCount))
    } catch { throw .closure(error) }
  }

  /// Closes the innermost level. Returns its node, or nil if its children were yielded.
  mutating func finish(priority: Scalar?) throws(JSONFailure) -> Node? {
    guard let level = levels.popLast() else { fatalError("no level is open") }
    guard let path = level.path else {
      return level.builder.finish(priority: priority)
    }
    if let priority {
      do {
        try yield(JSONPiece(path: path, content: .priority(priority), byteCount: 0))
      } catch { throw .closure(error) }
    }
    return nil
  }
}
