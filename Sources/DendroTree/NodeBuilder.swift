/// Builds the children of one branch.
///
/// Any order will do; ascending is fast and leaves full pages. Of several nodes at one key the last
/// holds, be it empty. Not thread-safe.
package struct NodeBuilder: @unchecked Sendable {  // See `Page`.
  private var root: Page?

  package init() {}

  /// - Complexity: O(log children), O(1) on average for ascending keys.
  package mutating func append(_ key: Key, _ child: Node) {
    key.withOrderedBytes { append(orderedBytes: $0, .node(child)) }
  }

  /// Appends a leaf from stored bytes, without making values of them.
  ///
  /// - Returns: false, and nothing is done, unless the bytes are those of a legal key and of one
  ///   packed leaf.
  package mutating func append(
    storedKey key: UnsafeRawBufferPointer, packedLeaf leaf: UnsafeRawBufferPointer
  ) -> Bool {
    guard KeyCoding.isValid(orderedBytes: key),
      PackedScalar.leafEnd(validating: leaf, at: 0) == leaf.count
    else { return false }
    append(orderedBytes: key, .packed(leaf))
    return true
  }

  /// Appends at the ordered bytes of a legal key, which are not looked at again.
  mutating func append(orderedBytes key: UnsafeRawBufferPointer, _ new: Assigned) {
    if root == nil {
      if new.isEmpty { return }
      root = Page.make(.leaf, hasReferences: false, capacity: 8)
    }
    Pages.assign(&root, PathStep(key: key), new)
  }

  /// The branch, or the empty node if no child is left.
  package consuming func finish(priority: Scalar? = nil) -> Node {
    root.map { Node(content: .page($0), priority: priority) } ?? .empty
  }
}
