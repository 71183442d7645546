/// The memory of a tree, computed from the capacities of its pages.
///
/// Pages that were not read from their file yet take none: `unreadChunks` says where they are.
package struct TreeMemory: Hashable, Sendable {
  /// The bytes of heap, including the allocator's 8 bytes for each page and its rounding to 16.
  package var byteCount = 0
  package var pageCount = 0
  package var leafCount = 0
  /// The chunks that were not read and to which the tree refers. Chunks to which only these refer are not among
  /// them.
  package var unreadChunks: Set<UInt32> = []

  package init() {}

  package var bytesPerLeaf: Double { leafCount == 0 ? 0 : Double(byteCount) / Double(leafCount) }
}
