/// Writes nodes as JSON (RFC 8259), in the tree's own order of keys.
///
/// A branch becomes an array if its keys are whole numbers from 0 and dense enough, with null for each
/// missing number (the rule of Firebase's `value`); in the export form a branch with a priority never
/// does, and as objects none does. The empty node is `null`. Integers are written with all digits, doubles as JavaScript writes
/// them (`JSONNumber`). Parsing an export gives an equal node; parsing the value form gives the same
/// node without priorities.
package enum JSONWriter {
  /// Writes a node piece by piece, so that the text is never in memory as a whole.
  ///
  /// `sink` receives the text in order, at most 64 KiB a call. The bytes are valid only during the call.
  ///
  /// - Throws: the errors of `sink`.
  package static func write(
    _ node: Node, style: JSONStyle = JSONStyle(),
    to sink: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try withoutActuallyEscaping(sink) { sink in
      var output = JSONOutput(style: style, sink: sink)
      try output.node(node)
      try output.flush()
    }
  }

  /// Returns a node as text.
  package static func string(_ node: Node, style: JSONStyle = JSONStyle()) -> String {
    var bytes = [UInt8]()
    do {
      try write(node, style: style) { bytes.append(contentsOf: $0) }
    } catch { fatalError("appending to an array threw: \(error)") }
    return String(decoding: bytes, as: UTF8.self)
  }
}
