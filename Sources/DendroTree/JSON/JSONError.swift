/// Why a JSON text was refused, and where.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// The text is not JSON by RFC 8259, or a number exceeds the range of a double.
    case syntax
    /// The text is JSON, but the data model refuses it: a forbidden key, an invalid priority, too many
    /// levels, or a string that is too long.
    case data(ValidationError.Kind)
  }

  package var kind: Kind
  /// What is wrong, without the position.
  package var message: String
  /// The position in the text where parsing stopped.
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
    let location = path == "/" ? "" : ", at \(path)"
    return "\(position)\(location): \(message)"
  }
}

/// A position in a text.
package struct JSONPosition: Hashable, Sendable, CustomStringConvertible {
  /// The number of bytes before the position.
  package var offset: Int
  /// Counted from 1; a line ends at a line feed.
  package var line: Int
  /// Counted from 1 in Unicode scalars.
  package var column: Int

  package init(offset: Int, line: Int, column: Int) {
    self.offset = offset
    self.line = line
    self.column = column
  }

  package var description: String { "line \(line), column \(column) (byte \(offset))" }
}

/// Why parsing stopped.
enum JSONFailure: Error {
  /// The text has an error.
  case text(JSONError)
  /// A closure of the caller, the source or the consumer of pieces, threw this error.
  case closure(any Error)
}
