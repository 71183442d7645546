import DendroTree

/// Compiled rules. Nothing of it ever changes.
final class RuleProgram: Sendable {
  let positions: PositionTable
  let nodes: [RuleNode]
  let rules: [Rule]
  let code: [Instruction]
  let constants: [Value]
  let paths: [ConstantPath]
  let names: [String]
  let patterns: [Pattern]
  let spans: [Span]

  init(_ reader: StructureReader) {
    positions = reader.positions
    nodes = reader.nodes
    rules = reader.rules
    code = reader.code.code
    constants = reader.code.constants
    paths = reader.code.paths
    names = reader.code.names
    patterns = reader.code.patterns
    spans = reader.code.spans
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
      node = Int(nodes[node].child(key))
      if node < 0 { return nil }
    }
    return nodes[node]
  }
}
