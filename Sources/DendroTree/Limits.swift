/// The limits of the data model, in one place.
package enum Limits {
  /// Bytes of UTF-8 in one key.
  package static let keyBytes = 768
  /// Segments of the path plus nesting of the data; `.value`, `.priority` and `.sv` do not count.
  package static let depth = 32
  /// Bytes of UTF-8 in one string.
  package static let stringBytes = 10 * 1024 * 1024
}
