package import DendroTree

/// The oracle: a tree so plain that it is obviously right, to compare `Node` with.
///
/// Children are in a dictionary by the bytes of their keys: Swift's strings would merge keys that
/// are only canonically equal.
package struct ModelTree: Equatable, Sendable {
  package var scalar: Scalar?
  package var children: [[UInt8]: ModelTree] = [:]
  package var priority: Scalar?

  package static let empty = ModelTree()
  package var isEmpty: Bool { scalar == nil && children.isEmpty }

  package init() {}

  /// The same tree as a node has.
  package init(_ node: Node) {
    scalar = node.scalar
    priority = node.priority
    node.forEachChild { key, child in children[Array(key.string.utf8)] = ModelTree(child) }
  }

  package func node(at path: [[UInt8]]) -> ModelTree {
    path.reduce(self) { tree, key in tree.children[key] ?? .empty }
  }

  /// Makes `new` the node at `path`: the table of assignments, row by row.
  package mutating func assign(_ new: ModelTree, at path: ArraySlice<[UInt8]>) {
    guard let key = path.first else {
      self = new
      return
    }
    var child = children[key] ?? .empty
    child.assign(new, at: path.dropFirst())
    if child.isEmpty {
      if scalar != nil { return }  // Deleting below a leaf.
      children[key] = nil
      if children.isEmpty { self = .empty }  // The last child takes the priority with it.
    } else {
      scalar = nil  // A leaf becomes a branch and keeps its priority.
      children[key] = child
    }
  }
}

extension ModelTree {
  package static func path(_ path: Path) -> [[UInt8]] { path.keys.map { Array($0.string.utf8) } }

  package mutating func apply(_ write: Write) {
    switch write {
    case .set(let path, let node): apply(.set(node), at: path)
    case .remove(let path): apply(.remove, at: path)
    case .increment(let path, let delta): apply(.increment(delta), at: path)
    case .setPriority(let path, let priority): apply(.setPriority(priority), at: path)
    case .update(let base, let entries):
      let sorted = entries.sorted { $0.path < $1.path }
      for entry in sorted where !ModelTree.isPriority(entry) {
        apply(entry.action, at: base.appending(entry.path))
      }
      for entry in sorted where ModelTree.isPriority(entry) {
        apply(entry.action, at: base.appending(entry.path))
      }
    }
  }

  private static func isPriority(_ entry: Write.Entry) -> Bool {
    if case .setPriority = entry.action { true } else { false }
  }

  private mutating func apply(_ action: Write.Entry.Action, at path: Path) {
    let path = ModelTree.path(path)
    let existing = node(at: path)
    switch action {
    case .set(let node):
      let new = ModelTree(node)
      if new != existing { assign(new, at: path[...]) }
    case .remove:
      assign(.empty, at: path[...])
    case .increment(let delta):
      var new = ModelTree()
      new.scalar = ModelTree.sum(existing.scalar, delta)
      if new != existing { assign(new, at: path[...]) }
    case .setPriority(let priority):
      if existing.isEmpty || existing.priority == priority { return }
      var new = existing
      new.priority = priority
      assign(new, at: path[...])
    }
  }

  private static func sum(_ existing: Scalar?, _ delta: Number) -> Scalar {
    switch (existing, delta) {
    case (.integer(let a), .integer(let b)):
      let (sum, overflows) = a.addingReportingOverflow(b)
      return overflows ? .double(Double(a) + Double(b)) : .integer(sum)
    case (.integer(let a), .double(let b)): return .double(Double(a) + b)
    case (.double(let a), .integer(let b)): return .double(a + Double(b))
    case (.double(let a), .double(let b)): return .double(a + b)
    case (_, .integer(let b)): return .integer(b)
    case (_, .double(let b)): return .double(b)
    }
  }
}
