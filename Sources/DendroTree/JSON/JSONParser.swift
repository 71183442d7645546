/// Parses JSON into nodes: strict RFC 8259, plus the rules of the data model.
///
/// - Objects and arrays become branches; `null`, `{}` and `[]` become the empty node. The elements of
///   an array get the keys 0, 1, 2, …; an empty element leaves a gap.
/// - The export form is accepted everywhere: `{".value": v, ".priority": p}` is a leaf with a
///   priority, and `.priority` beside other keys is the priority of a branch. `.value` beside other
///   keys is refused, and so is `.sv`: a document holds data, not requests to the server. Only
///   `parseDraft(…)` accepts server values.
/// - A number without point and exponent that fits Int64 is an integer, any other a double.
/// - If an object has a key twice, the last value counts.
/// - Keys, priorities, string lengths and depth are limited by ``Limits``; pseudo keys do not count as
///   depth.
///
/// A ``JSONError`` gives the position of the error. Nesting beyond the depth limit of the tree is
/// refused, which bounds the recursion of the parser.
package enum JSONParser {
  /// Parses a whole text in memory.
  ///
  /// `depth` is the number of keys in the path at which the node will stand; 0 for the root.
  ///
  /// With `escapesKeys`, characters that keys may not have are escaped: see `Key.init(escaping:)`.
  ///
  /// - Throws: ``JSONError``.
  /// - Complexity: O(n); the memory of the node and of the longest string.
  package static func parse(
    _ bytes: UnsafeRawBufferPointer, depth: Int = 0, escapesKeys: Bool = false
  ) throws(JSONError) -> Node {
    var reader = JSONReader(
      JSONScanner(bytes: bytes), depth: depth, pieceBytes: Int.max, escapesKeys: escapesKeys,
      yield: { _ in })
    do {
      return try reader.document() ?? .empty
    } catch {
      guard case .text(let error) = error else { fatalError("no closure of the caller can throw") }
      throw error
    }
  }

  /// Parses a whole text in memory; see ``parse(_:depth:escapesKeys:)``.
  package static func parse(_ text: String, depth: Int = 0) throws(JSONError) -> Node {
    var text = text
    text.makeContiguousUTF8()
    let result = text.utf8.withContiguousStorageIfAvailable { bytes in
      Result { () throws(JSONError) in
        try parse(UnsafeRawBufferPointer(bytes), depth: depth)
      }
    }
    guard let result else { fatalError("a contiguous string has storage") }
    return try result.get()
  }

  /// Parses the object of an update. Its keys are paths; each value replaces the node at its path, and
  /// null removes it. If a path ends in `.priority`, its value is a priority.
  ///
  /// `depth` is the number of keys in the path of the update.
  ///
  /// - Returns: the entries in the order of the text; if a key occurs twice, its last value.
  /// - Throws: ``JSONError``. Call ``Write/validate()`` to check whether the paths conflict.
  package static func parseEntries(_ bytes: UnsafeRawBufferPointer, depth: Int = 0)
    throws(JSONError) -> [Write.Entry]
  {
    var reader = JSONReader(
      JSONScanner(bytes: bytes), depth: depth, pieceBytes: Int.max, yield: { _ in })
    do {
      return try reader.entries()
    } catch {
      guard case .text(let error) = error else { fatalError("no closure of the caller can throw") }
      throw error
    }
  }

  /// Parses a text of any length and yields it in pieces, in memory that does not grow with the text.
  ///
  /// Written one after the other to an empty location, the pieces make the same node that
  /// `parse(_:depth:)` returns. A small object or array is yielded whole; a larger one child by child,
  /// followed by its priority. If a key occurs twice, the later piece replaces the earlier one: a piece
  /// with the empty node empties the location first.
  ///
  /// - Parameters:
  ///   - depth: the number of keys in the path at which the document will stand.
  ///   - escapesKeys: whether characters that keys may not have are escaped, and not refused.
  ///   - pieceBytes: an object or array whose text is longer than this is yielded in parts.
  ///   - bufferBytes: the size of the buffer that `source` fills.
  ///   - source: writes the next bytes to the front of the buffer and returns their number; 0 ends the
  ///     text.
  ///   - yield: receives the pieces.
  /// - Throws: ``JSONError``, and any error of `source` and `yield`. The pieces before the error were
  ///   valid.
  package static func parse(
    depth: Int = 0, escapesKeys: Bool = false, pieceBytes: Int = 1 << 16,
    bufferBytes: Int = 1 << 20,
    source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int,
    yield: @escaping (JSONPiece) throws -> Void
  ) throws {
    var reader = JSONReader(
      JSONScanner(bufferBytes: bufferBytes, source: source), depth: depth, pieceBytes: pieceBytes,
      escapesKeys: escapesKeys, yield: yield)
    do {
      if let node = try reader.document() {
        try yield(JSONPiece(path: .root, content: .node(node), byteCount: reader.byteCount))
      }
    } catch JSONFailure.text(let error) {
      throw error
    } catch JSONFailure.closure(let error) {
      throw error
    }
  }
}
