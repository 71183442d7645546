/// The limits of the data model.
package enum Limits {
  /// The largest key, in bytes of UTF-8.
  package static let keyBytes = 768
  /// The largest depth: the keys of a path plus the levels of the data at it. `.value`, `.priority` and
  /// `.sv` do not count.
  package static let depth = 32
  /// The longest string, in bytes of UTF-8.
  package static let stringBytes = 10 * 1024 * 1024
  /// The most bytes of a leaf of bytes, in the second root.
  package static let leafBytes = stringBytes
}
