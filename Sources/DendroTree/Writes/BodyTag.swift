/// The first bytes of what stands in a write's body in the place of a packed scalar.
package enum BodyTag {
  /// The empty node.
  package static let empty: UInt8 = 0x40
  /// A branch: the count of its children, then their keys and nodes in the order of keys.
  package static let branch: UInt8 = 0x41
  /// A branch with a priority, which stands before the count.
  package static let branchWithPriority: UInt8 = 0x42

  // The following are never in the log of the data: admission puts bytes of the kinds above into their places.

  /// A tree that exists as pages: its number among those of the write, as a varint.
  package static let tree: UInt8 = 0x43
  /// A server value: the time of the write. It stands where a scalar may, also as a priority.
  package static let timestamp: UInt8 = 0x44
  /// A server value: the sum of a packed number, which follows, and of the number at the same place before the write.
  package static let sum: UInt8 = 0x45
}
