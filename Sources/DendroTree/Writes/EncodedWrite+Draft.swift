extension EncodedWrite {
  /// Encodes a write that exists as values.
  ///
  /// What is more than a short leaf stays as it is, a tree of pages, unless it has server values.
  ///
  /// - Parameter draft: it keeps the rules that `Write.validate()` checks, and has a stand-in in the place of each
  ///   server value.
  package convenience init(_ draft: Draft) {
    if draft.deferred.isEmpty, case .set(let path, let node) = draft.write, node.isShortLeaf {
      let body = PayloadBuffer()
      BodyWriter.append(node, to: body)
      self.init(.set, at: path, body: body, trees: [], facts: WriteFacts())
      return
    }
    var encoder = DraftEncoder(draft.deferred)
    encoder.append(draft.write)
    self.init(
      encoder.kind, at: draft.write.path, body: encoder.body, trees: encoder.trees,
      facts: encoder.facts)
  }

  package convenience init(_ write: Write) { self.init(Draft(write)) }

  /// Encodes a write that exists as values, after it was checked.
  ///
  /// - Throws: as `Write.validate()`.
  package convenience init(validating draft: Draft) throws(ValidationError) {
    try draft.write.validate()
    self.init(draft)
  }
}

private struct DraftEncoder {
  let body = PayloadBuffer()
  var trees: [Node] = []
  var facts = WriteFacts()
  var kind = WriteKind.remove
  private var values: [Path: Draft.Deferred.Value] = [:]
  private var priorities: [Path: Draft.Deferred.Value] = [:]

  init(_ deferred: [Draft.Deferred]) {
    for item in deferred {
      if item.isPriority {
        priorities[item.path] = item.value
      } else {
        values[item.path] = item.value
      }
    }
  }

  mutating func append(_ write: Write) {
    switch write {
    case .set(_, let node):
      kind = .set
      append(set: node, at: .root)
    case .remove:
      kind = .remove
      facts.removalCount = 1
    case .increment(_, let delta):
      kind = .increment
      BodyWriter.append(delta.scalar, to: body)
    case .setPriority(_, let priority):
      kind = .setPriority
      append(priority: priority, at: .root)
    case .update(_, let entries):
      kind = .update
      append(entries)
    }
  }

  private mutating func append(_ entries: [Write.Entry]) {
    facts.entryCount = entries.count
    body.appendVarint(entries.count)
    var previous = Path.root
    for (index, entry) in entries.enumerated() {
      entry.path.storedBytes.withUnsafeBytes { path in
        previous.storedBytes.withUnsafeBytes { previous in
          if index > 0 {
            facts.isOrdered =
              facts.isOrdered && Path.storedBytes(previous, precedeAsSiblings: path)
          }
          body.append(entry.action.kind.rawValue)
          BodyWriter.append(path: path, after: previous, to: body)
        }
      }
      previous = entry.path
      switch entry.action {
      case .set(let node): append(set: node, at: entry.path)
      case .remove: facts.removalCount += 1
      case .increment(let delta): BodyWriter.append(delta.scalar, to: body)
      case .setPriority(let priority):
        facts.isOrdered = false
        append(priority: priority, at: entry.path)
      }
    }
  }

  private mutating func append(priority: Scalar?, at path: Path) {
    guard priority != nil, let value = priorities[path] else {
      return BodyWriter.append(priority: priority, to: body)
    }
    body.append(1)
    append(value)
  }

  private mutating func append(_ value: Draft.Deferred.Value) {
    facts.hasServerValues = true
    body.append(value)
  }

  private mutating func append(set node: Node, at path: Path) {
    if node.isEmpty { facts.removalCount += 1 }
    if !values.isEmpty || !priorities.isEmpty { return append(node, at: path) }
    if node.isEmpty || node.isShortLeaf { return BodyWriter.append(node, to: body) }
    body.append(BodyTag.tree)
    body.appendVarint(trees.count)
    trees.append(node)
  }

  /// Appends a node with its server values.
  private mutating func append(_ node: Node, at path: Path) {
    if node.isEmpty { return body.append(BodyTag.empty) }
    if node.isLeaf {
      if let priority = node.priority {
        body.append(PackedScalar.priorityTag)
        append(scalar: priority, priorities[path])
      }
      // A leaf has a scalar.
      return append(scalar: node.scalar ?? .bool(false), values[path])
    }
    if let priority = node.priority {
      body.append(BodyTag.branchWithPriority)
      append(scalar: priority, priorities[path])
    } else {
      body.append(BodyTag.branch)
    }
    body.appendVarint(node.childCount)
    for (key, child) in node.children {
      BodyWriter.append(key, to: body)
      append(child, at: path.appending(key))
    }
  }

  private mutating func append(scalar: Scalar, _ serverValue: Draft.Deferred.Value?) {
    if let serverValue { return append(serverValue) }
    BodyWriter.append(scalar, to: body)
  }
}

extension Write.Entry.Action {
  fileprivate var kind: WriteKind {
    switch self {
    case .set: .set
    case .remove: .remove
    case .increment: .increment
    case .setPriority: .setPriority
    }
  }
}

extension Node {
  /// Whether it is a leaf without a priority that fits into a page.
  fileprivate var isShortLeaf: Bool {
    guard priority == nil, let count = packedLeafByteCount else { return false }
    return count <= Page.inlineValueByteCountMax
  }
}

extension PayloadBuffer {
  /// Appends a server value.
  package func append(_ value: Draft.Deferred.Value) {
    switch value {
    case .timestamp: append(BodyTag.timestamp)
    case .increment(let delta):
      append(BodyTag.sum)
      BodyWriter.append(delta.scalar, to: self)
    }
  }
}
