/// Why a JSON text was refused, and where.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// Not JSON by RFC 8259, or a number or nesting that no double or tree can hold.
    case syntax
    /// JSON, but not data that the tree takes: a forbidden key, a wrong priority, too deep, too long.
    case data(ValidationError.Kind)
  }

  package var kind: Kind
  /// What is wrong, without the place.
  package var message: String
  /// Where in the text.
  package var position: JSONPosition
  /// The location inside the document, as `/a/b`; `/` for the document itself.
  package var path: String

  package init(_ kind: Kind, _ message: String, at position: JSONPosition, path: String = "/") {
    self.kind = kind
    self.message = message
    self.position = position
    self.path = path
  }

  package var description: String {
    let place = path == "/" ? "" : ", at \(path)"
    return "\(position)\(place): \(message)"
  }
}

/// A place in a text.
package struct JSONPosition: Hashable, Sendable, CustomStringConvertible {
  /// Bytes before it.
  package var offset: Int
  /// From 1; a line ends at a line feed.
  package var line: Int
  /// From 1, in Unicode scalars.
  package var column: Int

  package init(offset: Int, line: Int, column: Int) {
    self.offset = offset
    self.line = line
    self.column = column
  }

  package var description: String { "line \(line), column \(column) (byte \(offset))" }
}

/// What ends a reading: the text, or whoever delivers it or takes the pieces.
enum JSONFailure: Error {
  case text(JSONError)
  case outside(any Error)
}
