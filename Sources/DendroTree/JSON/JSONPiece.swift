/// A part of a document, small enough for one write.
package struct JSONPiece: Sendable {
  package enum Content: Sendable {
    /// The new node at the path; the empty node removes the old one.
    case node(Node)
    /// The priority of the branch at the path, whose children were yielded before.
    case priority(Scalar)
  }

  /// Relative to the document.
  package var path: Path
  package var content: Content
  /// The approximate number of bytes of text that the piece was parsed from.
  package var byteCount: Int
}
