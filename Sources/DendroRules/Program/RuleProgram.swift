import DendroTree

/// Compiled rules. Nothing of it ever changes.
final class RuleProgram: Sendable {
  let positions: PositionTable
  let nodes: [RuleNode]
  let rules: [Rule]
  let spans: [Span]

  // What evaluation reads, each kind in one table.

  let nodeCodes: Table<NodeCode>
  let ruleCodes: Table<RuleCode>
  /// The keys of the literal children of all nodes, of each in order, and their nodes.
  let childKeys: Table<KeyView>
  let childNodes: Table<Int32>
  let code: Table<Instruction>
  let constants: Table<Value>
  let paths: Table<ConstantPath>
  let pathKeys: Table<KeyView>
  let names: Table<Text>
  let patterns: [Pattern]
  let blocks = EvaluationBlocks()
  private let bytes: ByteBlock

  init(_ reader: StructureReader) {
    positions = reader.positions
    nodes = reader.nodes
    rules = reader.rules
    code = Table(reader.code.code)
    paths = Table(reader.code.paths)
    patterns = reader.code.patterns
    spans = reader.code.spans
    var nodeCodes: [NodeCode] = []
    var children: [RuleNode.Child] = []
    for node in reader.nodes {
      nodeCodes.append(NodeCode(node, firstChild: children.count))
      children += node.children
    }
    var bytes = ByteBlock(
      capacity: children.reduce(0) { $0 + $1.key.orderedByteCount } + reader.code.byteCount)
    self.nodeCodes = Table(nodeCodes)
    childKeys = Table(children.map { bytes.append($0.key) })
    constants = Table(reader.code.constants.map { Value(constant: $0, &bytes) })
    pathKeys = Table(reader.code.pathKeys.map { bytes.append($0) })
    names = Table(reader.code.names.map { bytes.append($0) })
    self.bytes = bytes
    childNodes = Table(children.map(\.node))
    ruleCodes = Table(reader.rules.map { RuleCode($0) })
  }

  deinit {
    nodeCodes.free()
    ruleCodes.free()
    childKeys.free()
    childNodes.free()
    code.free()
    constants.free()
    paths.free()
    pathKeys.free()
    names.free()
    bytes.free()
  }

  /// The place of a node in the rules, as `/users/$uid`.
  func location(of node: Int) -> String {
    var names: [String] = []
    var current = node
    while let parent = nodes[current].parent {
      names.append(nodes[current].name)
      current = parent
    }
    return "/" + names.reversed().joined(separator: "/")
  }

  /// The node that is for a location; nil if there is none.
  func node(at path: Path) -> RuleNode? {
    path.storedBytes.withUnsafeBytes { path in
      var node = 0
      for key in KeyViews(storedPath: path) {
        node = child(node, key)
        if node < 0 { return nil }
      }
      return nodes[node]
    }
  }

  /// The node that is for a child; -1 if there is none. A literal child hides the one for all keys completely.
  @inline(__always)
  func child(_ node: Int, _ key: KeyView) -> Int {
    let code = nodeCodes[node]
    let literal = literalChild(code, key)
    return literal >= 0 ? literal : Int(code.wildcard)
  }

  func literalChild(_ code: NodeCode, _ key: KeyView) -> Int {
    var low = Int(code.firstChild)
    var high = low &+ Int(code.childCount)
    while high &- low > 4 {
      let middle = (low &+ high) / 2
      if key.precedes(childKeys[middle]) { high = middle } else { low = middle }
    }
    while low < high {
      if childKeys[low] == key { return Int(childNodes[low]) }
      low &+= 1
    }
    return -1
  }
}

extension Value {
  /// - Parameter constant: nil for null.
  fileprivate init(constant: RuleScalar?, _ bytes: inout ByteBlock) {
    switch constant {
    case nil: self = .null
    case .boolean(let value): self = .bool(value)
    case .integer(let value): self = .integer(value)
    case .double(let value): self = .double(value)
    case .string(let value): self = .string(bytes.append(value))
    }
  }
}
