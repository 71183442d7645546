import DendroTree

/// A part of what is imported, small enough for one write.
struct ImportPiece {
  /// Below the location of the import.
  var path: Path
  var content: JSONPiece.Content
  /// The approximate number of bytes of text that it was parsed from.
  var byteCount: Int
}
