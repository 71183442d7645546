/// One atomic change of the tree. Log sequence numbers count writes.
///
/// A write has no deferred values: applying it to the same tree gives the same tree, on any machine and
/// in any version. Paths lead to nodes; a write of a priority is a case of its own, not a path with a
/// pseudo key.
package enum Write: Sendable {
  /// Replaces the node at the path, priorities included. The empty node removes it.
  case set(Path, Node)
  /// Makes several changes below the path at once, and keeps all other data.
  case update(Path, [Entry])
  case remove(Path)
  /// Adds the number to the leaf at the path, or sets the leaf to it if there is no number.
  case increment(Path, Number)
  /// Replaces the priority of the node at the path, if there is one.
  case setPriority(Path, Scalar?)

  /// One of the changes of an update.
  package struct Entry: Sendable {
    /// Relative to the path of the update.
    package var path: Path
    package var action: Action

    package init(path: Path, action: Action) {
      self.path = path
      self.action = action
    }

    package enum Action: Sendable {
      case set(Node)
      case remove
      case increment(Number)
      case setPriority(Scalar?)

      package var isPriority: Bool { if case .setPriority = self { true } else { false } }
    }
  }

  /// The path of the write; for an update, the path that its entries are relative to.
  package var path: Path {
    switch self {
    case .set(let path, _), .update(let path, _), .remove(let path), .increment(let path, _),
      .setPriority(let path, _):
      path
    }
  }
}

extension Write {
  /// Checks the rules that the types do not enforce: the depth, conflicts between the paths of an update,
  /// and the validity of priorities and increments.
  ///
  /// - Throws: `ValidationError` of kind `.invalidData`.
  /// - Complexity: O(nodes in the write + entries · log entries).
  package func validate() throws(ValidationError) {
    switch self {
    case .set(let path, let node): try Write.check(depthAt: .root, path, and: node)
    case .remove(let path): try Write.check(.root, path, .remove)
    case .increment(let path, let delta): try Write.check(.root, path, .increment(delta))
    case .setPriority(let path, let priority): try Write.check(.root, path, .setPriority(priority))
    case .update(let base, let entries):
      for entry in entries { try Write.check(base, entry.path, entry.action) }
      try Write.checkConflicts(entries)
    }
  }

  // The whole path is made for an error only.

  private static func check(
    depthAt base: Path, _ relative: Path, and node: Node
  ) throws(ValidationError) {
    let depth = base.count + relative.count + node.height()
    if depth > Limits.depth {
      let path = base.appending(relative).prefix(Limits.depth)
      throw ValidationError(
        .invalidData, "The write at \(path) is \(depth) levels deep; the limit is \(Limits.depth).")
    }
  }

  private static func check(
    _ base: Path, _ relative: Path, _ action: Entry.Action
  ) throws(ValidationError) {
    if case .set(let node) = action { return try check(depthAt: base, relative, and: node) }
    try check(depthAt: base, relative, and: .empty)
    var path: Path { base.appending(relative) }
    switch action {
    case .increment(let delta) where !delta.isFinite:
      throw ValidationError(.invalidData, "The increment at \(path) is not a finite number.")
    case .setPriority(let priority?):
      if !priority.isValidPriority {
        throw ValidationError(
          .invalidData, "The priority at \(path) is neither a number nor a string.")
      }
      if case .double(let value) = priority, !value.isFinite {
        throw ValidationError(.invalidData, "The priority at \(path) is not a finite number.")
      }
    default: break
    }
  }

  /// Checks that no entry is at or above another one. A priority counts as below its node.
  private static func checkConflicts(_ entries: [Entry]) throws(ValidationError) {
    let sorted = entries.inOrder
    // In this order, all paths below a path follow it without a gap. So only the last path that is not
    // below another one can be above the next path.
    var above: Path?
    var lastPriority: Path?
    for entry in sorted {
      if let above, above.isPrefix(of: entry.path) {
        let name = entry.path.description + (entry.action.isPriority ? "/.priority" : "")
        throw ValidationError(
          .invalidData,
          above == entry.path && !entry.action.isPriority
            ? "The update has the path \(name) twice."
            : "The update's path \(above) is an ancestor of \(name).")
      }
      if entry.action.isPriority {
        if entry.path == lastPriority {
          throw ValidationError(
            .invalidData, "The update has the path \(entry.path)/.priority twice.")
        }
        lastPriority = entry.path
      } else {
        above = entry.path
      }
    }
  }
}

extension [Write.Entry] {
  /// The entries in the order of their paths, of one path the priority last. What is in order already is
  /// not sorted.
  ///
  /// - Complexity: O(n) if they are in order, else O(n log n).
  package var inOrder: [Write.Entry] {
    for index in indices.dropFirst() where !Self.isInOrder(self[index - 1], self[index]) {
      return sorted { !Self.isInOrder($1, $0) }
    }
    return self
  }

  /// Whether `a` need not come after `b`.
  private static func isInOrder(_ a: Write.Entry, _ b: Write.Entry) -> Bool {
    if a.path < b.path { return true }
    return a.path == b.path && (!a.action.isPriority || b.action.isPriority)
  }
}
