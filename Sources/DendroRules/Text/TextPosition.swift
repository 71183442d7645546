/// A place in a text: the line, and the column in it.
public struct TextPosition: Hashable, Sendable {
  /// Counted from 1. A line ends at a line feed.
  public let line: Int
  /// Counted from 1, in Unicode scalars.
  public let column: Int

  /// Makes the position of a line and a column, both counted from 1.
  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }
}

extension TextPosition: Comparable {
  /// Whether `a` comes before `b` in the text.
  public static func < (a: TextPosition, b: TextPosition) -> Bool {
    (a.line, a.column) < (b.line, b.column)
  }
}

extension TextPosition: CustomStringConvertible {
  /// The line and the column, as `3:14`.
  public var description: String { "\(line):\(column)" }
}
