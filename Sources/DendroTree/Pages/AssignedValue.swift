/// The new node of an assignment, or a leaf in its packed form.
enum AssignedValue {
  case node(Node)
  /// A valid packed leaf.
  case packed(UnsafeRawBufferPointer)

  var isEmpty: Bool { if case .node(let node) = self { node.isEmpty } else { false } }

  var node: Node {
    switch self {
    case .node(let node): node
    case .packed(let bytes): Pages.leaf(bytes.baseAddress.unsafelyUnwrapped)
    }
  }
}
