package import DendroTree

/// A child with its key.
package struct Child {
  package let key: Key
  package let node: Node

  package init(key: Key, node: Node) {
    self.key = key
    self.node = node
  }
}

/// The default order of children: those without priority, then by priority; ties by key.
enum ChildOrder {
  /// The children of a node in order. Where none has a priority that is the order of the keys, which
  /// costs nothing; otherwise they are sorted once.
  static func children(of node: Node) -> AnySequence<Child> {
    var hasPriorities = false
    for (_, child) in node.children where child.priority != nil {
      hasPriorities = true
      break
    }
    let children = node.children.lazy.map { Child(key: $0.key, node: $0.node) }
    return hasPriorities ? AnySequence(children.sorted(by: precedes)) : AnySequence(children)
  }

  static func precedes(_ a: Child, _ b: Child) -> Bool {
    switch (a.node.priority, b.node.priority) {
    case (nil, nil): return a.key < b.key
    case (nil, _?): return true
    case (_?, nil): return false
    case (let p?, let q?): return p == q ? a.key < b.key : p < q
    }
  }

  /// The key of the child just before `child` among the children of `parent`; nil for the first.
  ///
  /// - Complexity: O(log n) where no child has a priority, O(n) otherwise.
  static func predecessor(of child: Child, in parent: Node) -> Key? {
    if child.node.priority == nil {
      // Children without priority come first and in the order of keys: the nearest one below.
      for (key, node) in parent.reversedChildren(from: child.key)
      where node.priority == nil && key != child.key {
        return key
      }
      return nil
    }
    var nearest: Child?
    for (key, node) in parent.children {
      let candidate = Child(key: key, node: node)
      guard precedes(candidate, child) else { continue }
      if let best = nearest, precedes(candidate, best) { continue }
      nearest = candidate
    }
    return nearest?.key
  }
}
