/// Why bytes are not the pages of a chunk.
package struct PageImageError: Error, CustomStringConvertible {
  package var expected: String
  package var found: String
  /// Where in the raw bytes of the chunk.
  package var offset: Int

  package init(expected: String, found: String, offset: Int) {
    self.expected = expected
    self.found = found
    self.offset = offset
  }

  package var description: String { "expected \(expected) at byte \(offset), found \(found)" }

  static func mismatch(_ reference: PageReference) -> PageImageError {
    PageImageError(
      expected: "page \(reference.root) with \(reference.total) children, as the page above says",
      found: "another page", offset: 0)
  }
}
