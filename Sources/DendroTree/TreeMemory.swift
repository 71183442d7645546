/// The memory that a tree takes, as computed from the capacities of its pages.
package struct TreeMemory: Hashable, Sendable {
  /// Bytes of heap, with the allocator's own 8 bytes and rounding to 16.
  package var byteCount = 0
  package var pageCount = 0
  package var leafCount = 0

  package init() {}

  package var bytesPerLeaf: Double { leafCount == 0 ? 0 : Double(byteCount) / Double(leafCount) }
}
