extension Write {
  /// What makes the branch `old` at `path` into the branch `new`, told by what differs: one change, or an
  /// update of several. What the two share is skipped unread.
  ///
  /// Applied where `old` is, it leaves exactly `new`: no branch on the way is empty at any time, so none
  /// is pruned and loses its priority. Branches that have no key in common are replaced as a whole.
  ///
  /// - Returns: the write, which does nothing where the two are equal; with how many children the
  ///   branches have that it leaves in place, each of which the set of `new` would hold. Nil where only
  ///   the set leaves exactly `new`: nothing is in common, or a number differs in its type alone,
  ///   which counts as no change.
  /// - Complexity: O(nodes that the two do not share).
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
    let place = path.appending(only.path)
    switch only.action {
    case .set where only.path.isRoot: return nil
    case .set(let node): return (.set(place, node), difference.siblingCount)
    case .remove: return (.remove(place), difference.siblingCount)
    case .increment(let delta): return (.increment(place, delta), difference.siblingCount)
    case .setPriority(let priority):
      return (.setPriority(place, priority), difference.siblingCount)
    }
  }
}

/// Gathers the entries of an update.
private struct BranchDifference {
  var entries: [Write.Entry] = []
  var siblingCount = 0
  /// Whether the entries, applied, leave exactly the new tree.
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

  /// Of two that are equal.
  private func hasSameBits(_ a: Scalar?, _ b: Scalar?) -> Bool {
    guard let a, let b else { return true }
    return a.hasBits(of: b)
  }
}
