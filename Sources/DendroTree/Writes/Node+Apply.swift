/// One replaced node. Events are generated from changes, and writes are undone with them.
package struct Change: Sendable {
  package var path: Path
  package var replaced: Node
  package var new: Node

  package init(path: Path, replaced: Node, new: Node) {
    self.path = path
    self.replaced = replaced
    self.new = new
  }
}

extension Node {
  /// Applies a valid write, as `TreeEditor` does: for tools and tests, which have writes as values. Pages that no other
  /// value shares are changed in place.
  ///
  /// - Returns: the changes; none if the tree equals the one before (1 equals 1.0).
  package mutating func apply(_ write: Write) -> [Change] {
    var changes: [Change] = []
    apply(write, recording: &changes)
    return changes
  }

  /// `apply(_:)`, which appends its changes.
  package mutating func apply(_ write: Write, recording changes: inout [Change]) {
    var taken = Node.empty
    swap(&taken, &self)
    var editor = TreeEditor(taken, remembersPlace: false)
    taken = .empty
    let first = changes.count
    EncodedWrite(write).withView { view in
      editor.apply(view) { path, replaced in
        changes.append(
          Change(path: Path(trusted: path), replaced: Node(replaced), new: .empty))
      }
    }
    self = editor.finish()
    changes[first...].complete(in: self)
  }

  /// The tree after a write, which shares its pages with this one.
  ///
  /// - Parameters:
  ///   - write: its pages are in memory.
  ///   - time: for its server values; milliseconds since 1970.
  package func applying(_ write: EncodedWrite, time: Int64) -> Node {
    var editor = TreeEditor(self, remembersPlace: false)
    write.withView { view in
      guard view.facts.hasServerValues else { return editor.apply(view) { _, _ in } }
      let body = PayloadBuffer(capacity: view.body.count)
      view.appendResolved(time: time, against: self, to: body)
      var facts = view.facts
      facts.hasServerValues = false
      body.withBytes { body in
        editor.apply(WriteView(view.kind, at: view.path, body: body, facts: facts)) { _, _ in }
      }
    }
    return editor.finish()
  }

  /// Makes `node` the node at `path`, for example to undo a change.
  ///
  /// `for change in changes.reversed() { root.graft(change.replaced, at: change.path) }` restores
  /// exactly the tree before the write that returned these changes.
  ///
  /// - Complexity: O(depth · log children).
  package mutating func graft(_ node: Node, at path: Path) {
    assign(node, at: path)
  }
}

extension MutableCollection where Element == Change, Index == Int {
  /// Fills in what is there after each change of one write.
  ///
  /// - Parameter root: the tree after all of them.
  /// - Complexity: O(changes · depth · log children); pages are copied only if one change lies below another.
  package mutating func complete(in root: Node) {
    for index in indices { self[index].new = root.node(at: self[index].path) }
    let paths = map(\.path).sorted()
    guard zip(paths, paths.dropFirst()).contains(where: { $0.isPrefix(of: $1) }) else { return }
    // What a later change has made below is not there yet: it is taken back, the last one first.
    var root = root
    for index in indices.reversed() {
      self[index].new = root.node(at: self[index].path)
      root.graft(self[index].replaced, at: self[index].path)
    }
  }
}

extension Node {
  /// The node that a change replaces.
  package init(_ replaced: TreeEditor.Replaced) {
    switch replaced {
    case .nothing: self = .empty
    case .leaf(let leaf): self.init(packedLeaf: leaf)
    case .node(let node): self = node
    }
  }
}
