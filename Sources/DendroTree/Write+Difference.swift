extension Write {
  /// Finds a write that turns the branch `old` at `path` into the branch `new` and has only the
  /// differences: a single change, or an update of several. Shared pages are skipped without being read.
  ///
  /// Applied to a tree with `old` at `path`, the write leaves exactly `new` there. No branch on the way is
  /// empty at any time, so none is pruned and loses its priority. Branches without a common key are
  /// replaced as a whole.
  ///
  /// - Returns: the write, which changes nothing if the branches are equal, and the number of children in
  ///   the branches that the write does not replace. A set of `new` would have to include each of them.
  ///   Nil if only a set leaves exactly `new`: the branches have no common key, or a number differs only in
  ///   its type, which a write treats as no change.
  /// - Complexity: O(nodes that the two trees do not share).
  package static func changing(
    _ old: Node, to new: Node, at path: Path
  ) -> (write: Write, siblingCount: Int)? {
    guard old.isBranch, new.isBranch else { return nil }
    var difference = BranchDifference()
    difference.add(.root, old, new)
    guard difference.isExact else { return nil }
    guard difference.entries.count == 1, let only = difference.entries.first else {
      return (.update(path, difference.entries), difference.siblingCount)
    }
    let target = path.appending(only.path)
    switch only.action {
    case .set where only.path.isRoot: return nil
    case .set(let node): return (.set(target, node), difference.siblingCount)
    case .remove: return (.remove(target), difference.siblingCount)
    case .increment(let delta): return (.increment(target, delta), difference.siblingCount)
    case .setPriority(let priority):
      return (.setPriority(target, priority), difference.siblingCount)
    }
  }
}

/// Collects the entries of the update from one branch to another.
private struct BranchDifference {
  var entries: [Write.Entry] = []
  var siblingCount = 0
  /// Whether applying the entries leaves exactly the new tree.
  var isExact = true

  mutating func add(_ path: Path, _ old: Node, _ new: Node) {
    if old.isIdentical(to: new) { return }
    guard old.isBranch, new.isBranch else {
      if old != new {
        entries.append(.init(path: path, action: new.isEmpty ? .remove : .set(new)))
      } else {
        isExact =
          isExact && hasSameBits(old.scalar, new.scalar) && hasSameBits(old.priority, new.priority)
      }
      return
    }
    let firstEntry = entries.count
    let siblings = siblingCount
    siblingCount += new.childCount
    if old.priority != new.priority {
      entries.append(.init(path: path, action: .setPriority(new.priority)))
    } else {
      isExact = isExact && hasSameBits(old.priority, new.priority)
    }
    var removedCount = 0
    Node.forEachUnshared(old, new) { key, a, b in
      if b.isEmpty { removedCount += 1 }
      add(path.appending(key), a, b)
      return isExact
    }
    guard removedCount == old.childCount else { return }
    entries.removeSubrange(firstEntry...)
    entries.append(.init(path: path, action: .set(new)))
    siblingCount = siblings
  }

  /// Whether two equal scalars, or two missing ones, have the same packed form.
  private func hasSameBits(_ a: Scalar?, _ b: Scalar?) -> Bool {
    guard let a, let b else { return true }
    return a.hasSameBits(as: b)
  }
}
