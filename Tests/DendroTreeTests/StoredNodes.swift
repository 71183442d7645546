import DendroTree

extension Node {
  /// The leaves, and the branches that have a priority, with their paths; a branch before its children.
  func stored(at path: Path = .root) -> [(path: Path, node: Node)] {
    if isEmpty { return [] }
    if isLeaf { return [(path, self)] }
    return (priority == nil ? [] : [(path, self)])
      + children.flatMap { $0.node.stored(at: path.appending($0.key)) }
  }

  /// The packed form of a leaf.
  var packedLeaf: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: packedLeafByteCount ?? 0) { target, count in
      count = packedLeafByteCount ?? 0
      if let start = target.baseAddress { writePackedLeaf(to: UnsafeMutableRawPointer(start)) }
    }
  }
}
