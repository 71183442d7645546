import DendroTree

extension Format {
  /// What a node is, in a few words: for questions and refusals.
  static func data(_ node: Node) -> String {
    switch node.scalar {
    case nil: count(node.leafCount(), "leaf")
    case .string(let text):
      "the string \(JSONWriter.string(Node(.string(text.shortened(to: 80)))))"
    case let scalar?: JSONWriter.string(Node(scalar))
    }
  }
}
