import DendroStorage
import DendroTree

/// The trees that a repair puts together, write after write, and how certain they are.
struct SalvagedState {
  private(set) var roots: TreeRoots
  /// The last write in the trees.
  private(set) var lsn: LogSequenceNumber
  /// Of that write, milliseconds since 1970.
  private(set) var time: Int64
  /// The leaves of the data that are as they were; nil if all are.
  private(set) var certain: Node?
  /// The parts of the data that damaged checkpoints have lost and no later write has replaced.
  private(set) var holes: [PartialTree.Hole] = []
  /// Whether all outside of the holes is as it was: what is there, and what is not.
  private var isComplete: Bool
  /// Whether the second root is as it was.
  private(set) var isSystemCertain: Bool

  /// - Parameter isCertain: whether the trees are those after the write.
  init(_ roots: TreeRoots, lsn: LogSequenceNumber, time: Int64, isCertain: Bool) {
    self.roots = roots
    self.lsn = lsn
    self.time = time
    certain = isCertain ? nil : .empty
    isComplete = isCertain
    isSystemCertain = isCertain
  }

  /// Applies a write that is not in the trees yet. If writes between are lost, nothing that was there is certain.
  mutating func apply(_ logged: LoggedWrite) {
    guard logged.lsn > lsn else { return }
    if logged.lsn > lsn.next { loseCertainty() }
    roots.apply(logged)
    certain?.applyCertain(logged.write)
    lsn = logged.lsn
    time = max(time, logged.time)
    if !holes.isEmpty {
      holes.removeAll { logged.write.replaces($0.path) }
      if holes.isEmpty, isComplete { certain = nil }
    }
  }

  private mutating func loseCertainty() {
    certain = .empty
    isComplete = false
    isSystemCertain = false
  }

  /// Goes on with what is left of a checkpoint. What that lacks is taken from the trees so far, where it may be
  /// older than it should be.
  mutating func merge(_ checkpoint: PartialCheckpoint) {
    if checkpoint.lsn > lsn { loseCertainty() }
    let before = self
    var left = checkpoint.data.root
    var isSure = checkpoint.data.root
    for hole in checkpoint.data.holes {
      left.fill(hole, from: before.roots.data)
      isSure.fill(hole, from: before.certain ?? before.roots.data)
    }
    roots.data = left
    holes = checkpoint.data.holes
    if before.isComplete {
      holes = holes.flatMap { hole in hole.rest(behind: before.holes, in: before.roots.data) }
    }
    isComplete = true
    certain = holes.isEmpty ? nil : isSure
    if let system = checkpoint.system {
      var left = system.root
      for hole in system.holes { left.fill(hole, from: before.roots.system) }
      roots.system = left
      isSystemCertain = system.holes.isEmpty || before.isSystemCertain
    } else {
      roots.system = .empty
      isSystemCertain = true
    }
    lsn = checkpoint.lsn
    time = max(time, checkpoint.time)
  }
}

extension PartialTree.Hole {
  /// What is still lost of this hole if a tree is as it was, but for holes of its own.
  fileprivate func rest(behind holes: [Self], in tree: Node) -> [Self] {
    var rest = holes.compactMap { intersection($0) }
    guard rest.count == 1, let childCount, rest[0].path == path, rest[0].childCount == nil else {
      return rest
    }
    // All of its children that the tree has outside of the holes were filled in.
    let node = tree.node(at: path)
    let found = children(of: node) - rest[0].children(of: node)
    rest[0].childCount = max(0, childCount - found)
    return rest
  }

  private func children(of node: Node) -> Int {
    var count = 0
    for (key, _) in first.map({ node.children(from: $0) }) ?? node.children {
      if let end, key >= end { break }
      count += 1
    }
    return count
  }
}

extension Node {
  /// Sets the children that a hole lacks to those of another tree.
  fileprivate mutating func fill(_ hole: PartialTree.Hole, from other: Node) {
    let source = other.node(at: hole.path)
    guard hole.first != nil || hole.end != nil else {
      if !source.isEmpty { _ = apply(.set(hole.path, source)) }
      return
    }
    for (key, child) in hole.first.map({ source.children(from: $0) }) ?? source.children {
      if let end = hole.end, key >= end { return }
      _ = apply(.set(hole.path.appending(key), child))
    }
  }

  /// Applies what a write does whatever was there before: an increment counts only if the number that it
  /// adds to is certain.
  fileprivate mutating func applyCertain(_ write: Write) {
    switch write {
    case .increment(let path, _):
      if node(at: path).isLeaf { _ = apply(write) }
    case .update(let base, let entries):
      let certain = entries.filter { entry in
        guard case .increment = entry.action else { return true }
        return node(at: base.appending(entry.path)).isLeaf
      }
      if !certain.isEmpty { _ = apply(.update(base, certain)) }
    case .set, .remove, .setPriority:
      _ = apply(write)
    }
  }
}

extension Write {
  /// Whether it sets or removes all that is at a path.
  fileprivate func replaces(_ path: Path) -> Bool {
    switch self {
    case .set(let place, _), .remove(let place): place.isPrefix(of: path)
    case .update(let base, let entries):
      entries.contains { entry in
        switch entry.action {
        case .set, .remove: base.appending(entry.path).isPrefix(of: path)
        case .increment, .setPriority: false
        }
      }
    case .increment, .setPriority: false
    }
  }
}
