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
  let childKeys: Table<Key>
  let childNodes: Table<Int32>
  let code: Table<Instruction>
  let constants: Table<Value>
  let paths: Table<ConstantPath>
  let pathKeys: Table<Key>
  let names: [String]
  let patterns: [Pattern]

  init(_ reader: StructureReader) {
    positions = reader.positions
    nodes = reader.nodes
    rules = reader.rules
    code = Table(reader.code.code)
    constants = Table(reader.code.constants)
    paths = Table(reader.code.paths)
    pathKeys = Table(reader.code.pathKeys)
    names = reader.code.names
    patterns = reader.code.patterns
    spans = reader.code.spans
    var nodeCodes: [NodeCode] = []
    var children: [RuleNode.Child] = []
    for node in reader.nodes {
      nodeCodes.append(NodeCode(node, firstChild: children.count))
      children += node.children
    }
    self.nodeCodes = Table(nodeCodes)
    childKeys = Table(children.map(\.key))
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
    var node = 0
    for key in path.keys {
      node = child(node, key)
      if node < 0 { return nil }
    }
    return nodes[node]
  }

  /// The node that is for a child; -1 if there is none. A literal child hides the one for all keys completely.
  @inline(__always)
  func child(_ node: Int, _ key: Key) -> Int {
    let literal = literalChild(node, key)
    return literal >= 0 ? literal : Int(nodeCodes[node].wildcard)
  }

  func literalChild(_ node: Int, _ key: Key) -> Int {
    var low = Int(nodeCodes[node].firstChild)
    var high = low &+ Int(nodeCodes[node].childCount)
    while high &- low > 4 {
      let middle = (low &+ high) / 2
      if childKeys[middle] <= key { low = middle } else { high = middle }
    }
    while low < high {
      if childKeys[low] == key { return Int(childNodes[low]) }
      low &+= 1
    }
    return -1
  }
}
