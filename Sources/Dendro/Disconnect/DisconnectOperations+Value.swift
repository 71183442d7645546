import DendroTree

// What an operation sets at its path: a value or a priority.

extension DisconnectOperations {
  /// A value to be set; the empty node removes. Its server values are resolved when it is written.
  struct Value {
    var node: Node
    var deferred: DeferredValues

    init(_ node: Node, _ deferred: DeferredValues) {
      self.node = node
      self.deferred = deferred
    }

    /// The paths of the deferred values are relative to the value's.
    init(_ node: Node, _ deferred: [Draft.Deferred] = []) {
      self.init(node, DeferredValues(deferred, in: node))
    }

    init(_ increment: Number) {
      self.init(
        Node(Draft.Deferred.standIn), [Draft.Deferred(path: .root, value: .increment(increment))])
    }

    /// About the bytes that it takes.
    var byteCount: Int { BodyWriter.byteCount(node) + 64 * deferred.list.count }

    /// Makes a later value a part of this one.
    ///
    /// - Returns: by how much its `byteCount` has grown.
    /// - Complexity: O(depth · log children), and O(size of the part and of what it replaces).
    mutating func merge(_ part: Value, at path: Path) -> Int {
      let before = node
      node.graft(part.node, at: path)
      let place = Self.changedPlace(before, node, at: path)
      // Counted now, so that no second value refers to the deferred ones when they change: they would be copied.
      let count = Self.byteCount(at: place, of: before, deferred)
      deferred.replace(at: path, by: part.deferred, in: node)
      return Self.byteCount(at: place, of: node, deferred) - count
    }

    /// - Returns: by how much its `byteCount` has grown.
    mutating func setPriority(_ priority: Priority, at path: Path) -> Int {
      let before = node.node(at: path)
      if before.isEmpty { return 0 }
      _ = node.apply(.setPriority(path, priority.scalar))
      deferred.replacePriority(at: path, by: priority.deferred)
      func byteCount(_ priority: Scalar?) -> Int {
        // A branch says by its own tag that it has one.
        priority.map { (before.isLeaf ? 1 : 0) + PackedScalar.byteCount($0) } ?? 0
      }
      return byteCount(priority.scalar) - byteCount(before.priority)
    }

    /// The highest node on the way to a path that was not there before, is not there any more, or was a leaf: no other
    /// part of the value takes other bytes if what is at the path has changed.
    private static func changedPlace(_ before: Node, _ after: Node, at path: Path) -> Path {
      for count in 0..<path.count {
        let prefix = path.prefix(count)
        if before.node(at: prefix).isBranch, after.node(at: prefix).isBranch { continue }
        return prefix
      }
      return path
    }

    /// The bytes of the part at a path, with what its parent has of it.
    private static func byteCount(
      at path: Path, of node: Node, _ deferred: DeferredValues
    ) -> Int {
      let part = Value(node.node(at: path), deferred.part(at: path))
      guard let parent = path.parent, let key = path.last else { return part.byteCount }
      let count = BodyWriter.byteCount(ofCount: node.node(at: parent).childCount)
      return part.node.isEmpty
        ? count
        : count + BodyWriter.byteCount(ofCount: key.orderedByteCount) + key.orderedByteCount
          + part.byteCount
    }
  }

  struct Priority {
    var scalar: Scalar?
    var deferred: Draft.Deferred.Value?

    init(_ scalar: Scalar?, _ deferred: Draft.Deferred.Value?) {
      self.scalar = scalar
      self.deferred = deferred
    }

    var byteCount: Int { 64 + (scalar.map { PackedScalar.byteCount($0) } ?? 0) }
  }
}
