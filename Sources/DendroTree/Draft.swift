/// A write with deferred values, which are computed when the write is admitted: the time, and sums with
/// existing numbers.
package struct Draft: Sendable {
  /// Has a stand-in leaf (any scalar, with the priority that the leaf will keep) for each deferred
  /// value.
  package var write: Write
  package var deferred: [Deferred]

  package init(_ write: Write, deferred: [Deferred] = []) {
    self.write = write
    self.deferred = deferred
  }

  /// One deferred value.
  package struct Deferred: Sendable {
    /// Relative to the path of the write.
    package var path: Path
    /// Whether the priority of the node at the path is deferred instead of the value.
    package var isPriority: Bool
    package var value: Value

    package init(path: Path, isPriority: Bool = false, value: Value) {
      self.path = path
      self.isPriority = isPriority
      self.value = value
    }

    package enum Value: Sendable {
      /// The time of the write in milliseconds since 1970.
      case timestamp
      /// The sum of this number and the one at the same path before the write, if there is one.
      case increment(Number)
    }
  }

  /// Returns the write with every deferred value computed, as it is logged.
  ///
  /// A deferred value keeps the priority of its stand-in; a deferred priority of a node that the
  /// write leaves empty is dropped. To increment a single leaf, prefer `Write.increment`, which is
  /// logged as its delta; a deferred increment becomes a set of the sum.
  ///
  /// - Complexity: O(deferred values · depth).
  package func resolved(time: Int64, against root: Node) -> Write {
    if deferred.isEmpty { return write }
    let before = root.node(at: write.path)
    // Values come first, since a priority needs its node.
    let items = deferred.filter { !$0.isPriority } + deferred.filter(\.isPriority)
    switch write {
    case .set(let base, var node):
      for item in items { item.fill(&node, at: item.path, item.scalar(time, before)) }
      return .set(base, node)
    case .update(let base, var entries):
      Self.fill(&entries, with: items, time, before)
      return .update(base, entries)
    case .setPriority(let base, var priority):
      for item in items where item.isPriority && item.path.isRoot {
        priority = item.scalar(time, before)
      }
      return .setPriority(base, priority)
    case .remove, .increment:
      return write
    }
  }

  private static func fill(
    _ entries: inout [Write.Entry], with items: [Deferred], _ time: Int64, _ before: Node
  ) {
    // The dictionaries avoid a quadratic search: an update may have many entries and deferred values.
    var data: [Path: Int] = [:]
    var priorities: [Path: Int] = [:]
    for (index, entry) in entries.enumerated() {
      switch entry.action {
      case .set: data[entry.path] = index
      case .setPriority: priorities[entry.path] = index
      case .remove, .increment: break
      }
    }
    for item in items {
      let scalar = item.scalar(time, before)
      // At most one entry is a prefix of the path, since no entry lies below another one.
      for depth in 0...item.path.count {
        guard let index = data[item.path.prefix(depth)] else { continue }
        guard case .set(var node) = entries[index].action else { continue }
        // The entry gives up its reference to the node, or the change would copy pages.
        entries[index].action = .remove
        item.fill(&node, at: item.path.dropFirst(depth), scalar)
        entries[index].action = .set(node)
        break
      }
      if item.isPriority, let index = priorities[item.path] {
        entries[index].action = .setPriority(scalar)
      }
    }
  }
}

extension Draft.Deferred {
  fileprivate func scalar(_ time: Int64, _ before: Node) -> Scalar {
    switch value {
    case .timestamp: return .integer(time)
    case .increment(let delta):
      let existing = before.node(at: path)
      return delta.incrementing(isPriority ? existing.priority : existing.scalar)
    }
  }

  fileprivate func fill(_ node: inout Node, at path: Path, _ scalar: Scalar) {
    let standIn = node.node(at: path)
    node.graft(
      isPriority
        ? standIn.settingPriority(scalar) : Node(scalar, priority: standIn.priority),
      at: path)
  }
}
