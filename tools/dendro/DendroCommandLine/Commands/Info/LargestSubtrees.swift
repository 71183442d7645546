import DendroTree

/// The subtrees of the first two levels with the most bytes.
struct LargestSubtrees {
  struct Entry {
    var path: Path
    var leafCount: Int
    /// As JSON, with priorities.
    var byteCount: UInt64
  }

  /// The largest first.
  private(set) var entries: [Entry] = []
  private let limit: Int

  init(of root: Node, limit: Int) {
    self.limit = limit
    guard root.isBranch else { return }
    for (key, child) in root.children {
      let path = Path(keys: [key])
      add(path, child)
      guard child.isBranch else { continue }
      for (key, grandchild) in child.children { add(path.appending(key), grandchild) }
    }
  }

  private mutating func add(_ path: Path, _ node: Node) {
    var byteCount: UInt64 = 0
    try? JSONWriter.write(node, style: JSONStyle(.export)) { byteCount += UInt64($0.count) }
    if entries.count == limit, let last = entries.last, last.byteCount >= byteCount { return }
    let place = entries.firstIndex { $0.byteCount < byteCount } ?? entries.count
    entries.insert(
      Entry(path: path, leafCount: node.leafCount(), byteCount: byteCount), at: place)
    if entries.count > limit { entries.removeLast() }
  }
}
