/// A write with values that only admission can know: the time, and sums with what is there.
package struct Draft: Sendable {
  /// Has a stand-in leaf (any scalar, with its priority if it has one) where a value is deferred.
  package var write: Write
  package var deferred: [Deferred]

  package init(_ write: Write, deferred: [Deferred] = []) {
    self.write = write
    self.deferred = deferred
  }

  /// One value to be filled in.
  package struct Deferred: Sendable {
    /// Seen from the write's path.
    package var path: Path
    /// Whether it is the priority of the node at the path, not its value.
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
      /// The sum of this and the number at the same place before the write, if there is one.
      case increment(Number)
    }
  }

  /// The write as it is logged.
  ///
  /// A deferred value keeps the priority of its stand-in; a deferred priority of a node that the
  /// write leaves empty is dropped. An increment of a whole leaf is better given as
  /// `Write.increment`, which is logged as its delta; here it becomes the set of the sum.
  ///
  /// - Complexity: O(deferred values · depth).
  package func resolved(time: Int64, against root: Node) -> Write {
    if deferred.isEmpty { return write }
    let before = root.node(at: write.path)
    var write = write
    // Values first: a priority needs its node.
    for item in deferred where !item.isPriority { item.fill(&write, time: time, before: before) }
    for item in deferred where item.isPriority { item.fill(&write, time: time, before: before) }
    return write
  }
}

extension Draft.Deferred {
  fileprivate func fill(_ write: inout Write, time: Int64, before: Node) {
    let existing = before.node(at: path)
    let scalar: Scalar =
      switch value {
      case .timestamp: .integer(time)
      case .increment(let delta):
        delta.incrementing(isPriority ? existing.priority : existing.scalar)
      }
    switch write {
    case .set(let base, var node):
      fill(&node, at: path, scalar)
      write = .set(base, node)
    case .update(let base, var entries):
      for index in entries.indices {
        guard let relative = path.relative(to: entries[index].path) else { continue }
        switch entries[index].action {
        case .set(var node):
          fill(&node, at: relative, scalar)
          entries[index].action = .set(node)
        case .setPriority where isPriority && relative.isRoot:
          entries[index].action = .setPriority(scalar)
        default: break
        }
      }
      write = .update(base, entries)
    case .setPriority(let base, _) where isPriority && path.isRoot:
      write = .setPriority(base, scalar)
    case .remove, .increment, .setPriority: break
    }
  }

  private func fill(_ node: inout Node, at path: Path, _ scalar: Scalar) {
    let standIn = node.node(at: path)
    node.graft(
      isPriority
        ? standIn.settingPriority(scalar) : Node(scalar, priority: standIn.priority),
      at: path)
  }
}
