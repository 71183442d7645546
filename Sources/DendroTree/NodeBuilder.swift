/// Builds a branch from its children.
///
/// Children may be appended in any order; ascending order is fastest and fills the pages. If a key is
/// appended more than once, the last node counts, even if it is empty. Not thread-safe.
package struct NodeBuilder: @unchecked Sendable {  // See `Page`.
  private var root: Page?
  /// Room for the fields of most objects, so that the page does not grow with each of them. `finish` gives back
  /// what is left.
  private static let firstCapacity = 512 - Page.overhead

  package init() {}

  /// - Complexity: O(log children), O(1) on average for ascending keys.
  package mutating func append(_ key: Key, _ child: Node) {
    key.withOrderedBytes { append(orderedBytes: $0, .node(child)) }
  }

  /// Appends a leaf without making a `Key` and a `Node`.
  ///
  /// - Parameters:
  ///   - key: legal or not.
  ///   - scalar: a valid one: a finite number, a string of at most `Limits.stringBytes`.
  /// - Returns: false if the key is illegal; nothing is appended then.
  package mutating func append(_ key: String, _ scalar: Scalar) -> Bool {
    let byteCount = PackedScalar.byteCount(scalar)
    var key = key
    return key.withUTF8 { utf8 in
      let utf8 = UnsafeRawBufferPointer(utf8)
      guard KeyCoding.problem(utf8) == nil else { return false }
      KeyCoding.withOrderedBytes(utf8) { key in
        guard byteCount <= Page.inlineValueByteCountMax else {
          return append(orderedBytes: key, .node(Node(scalar)))
        }
        withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { leaf in
          _ = PackedScalar.write(scalar, to: leaf.baseAddress.unsafelyUnwrapped)
          append(orderedBytes: key, .packed(UnsafeRawBufferPointer(leaf)))
        }
      }
      return true
    }
  }

  /// Appends a leaf from stored bytes, without decoding them into a `Key` and a `Scalar`.
  ///
  /// - Returns: false if the bytes are not those of a legal key and one packed leaf; nothing is appended
  ///   then.
  package mutating func append(
    storedKey key: UnsafeRawBufferPointer, packedLeaf leaf: UnsafeRawBufferPointer
  ) -> Bool {
    guard KeyCoding.isValid(orderedBytes: key),
      PackedScalar.leafEnd(validating: leaf, at: 0) == leaf.count
    else { return false }
    append(orderedBytes: key, .packed(leaf))
    return true
  }

  /// Appends a child whose key has these ordered bytes, which are not validated.
  mutating func append(orderedBytes key: UnsafeRawBufferPointer, _ new: AssignedValue) {
    if root == nil {
      if new.isEmpty { return }
      root = Page.make(.leaf, hasReferences: false, capacity: Self.firstCapacity)
    }
    Pages.assign(&root, PathStep(key: key), new)
  }

  /// Returns the branch, or the empty node if there is no child.
  package consuming func finish(priority: Scalar? = nil) -> Node {
    guard let root else { return .empty }
    return Node(content: .page(root.trimmed), priority: priority)
  }
}
