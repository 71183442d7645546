import DendroTree

/// A value that a client sends: a node, in which server values may stand that the server computes.
struct SyncValue: Sendable {
  /// Has a stand-in in the place of each server value.
  private(set) var node: Node
  private var serverValues: DeferredValues

  init(_ node: Node, _ serverValues: [Draft.Deferred] = []) {
    self.node = node
    self.serverValues = DeferredValues(serverValues, in: node)
  }

  /// Replaces what is at a path.
  mutating func put(_ value: SyncValue, at path: Path) {
    node.graft(value.node, at: path)
    serverValues.replace(at: path, by: value.serverValues, in: node)
  }

  /// Appends the value as JSON in export form.
  func append(to text: inout [UInt8]) { Self.append(node, serverValues, to: &text) }

  private static func append(_ node: Node, _ values: DeferredValues, to text: inout [UInt8]) {
    if values.isEmpty { return append(node, to: &text) }
    let priority = node.priority
    if let scalar = node.scalar, priority == nil { return append(scalar, values.value, to: &text) }
    text.append(UInt8(ascii: "{"))
    var isFirst = true
    func begin(_ name: String) {
      if !isFirst { text.append(UInt8(ascii: ",")) }
      isFirst = false
      JSONText.append(string: name, to: &text)
      text.append(UInt8(ascii: ":"))
    }
    if let scalar = node.scalar {
      begin(".value")
      append(scalar, values.value, to: &text)
    }
    node.forEachChild { key, child in
      begin(key.string)
      append(child, values.children[key] ?? DeferredValues(), to: &text)
    }
    if let priority {
      begin(".priority")
      append(priority, values.priority, to: &text)
    }
    text.append(UInt8(ascii: "}"))
  }

  private static func append(_ node: Node, to text: inout [UInt8]) {
    var whole = JSONText(node, style: JSONStyle(.export))
    while !whole.isAtEnd { text += whole.next() }
  }

  private static func append(
    _ scalar: Scalar, _ value: Draft.Deferred.Value?, to text: inout [UInt8]
  ) {
    switch value {
    case nil: JSONText.append(scalar, to: &text)
    case .timestamp: text += "{\".sv\":\"timestamp\"}".utf8
    case .increment(let delta):
      text += "{\".sv\":{\"increment\":".utf8
      JSONText.append(delta.scalar, to: &text)
      text += "}}".utf8
    }
  }
}

extension SyncValue {
  /// A number that the server adds to what is there.
  init(incrementBy delta: Number) {
    self.init(
      Node(Draft.Deferred.standIn), [Draft.Deferred(path: .root, value: .increment(delta))])
  }

  /// A priority, as a leaf or nothing.
  init(priority: Scalar?, _ value: Draft.Deferred.Value?) {
    self.init(
      priority.map { Node($0) } ?? .empty,
      value.map { [Draft.Deferred(path: .root, value: $0)] } ?? [])
  }
}
