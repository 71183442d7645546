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

/// Finds the positions of offsets in a text. Ascending offsets cost no more than one reading of the text.
struct PositionFinder {
  private let bytes: [UInt8]
  private var offset = 0
  private var line = 1
  private var column = 1

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func position(of target: Int) -> TextPosition {
    if target < offset { (offset, line, column) = (0, 1, 1) }
    while offset < target, offset < bytes.count {
      let byte = bytes[offset]
      offset += 1
      if byte == UInt8(ascii: "\n") {
        line += 1
        column = 1
      } else if offset == bytes.count || bytes[offset] & 0xC0 != 0x80 {
        column += 1  // The next byte begins a scalar.
      }
    }
    return TextPosition(line: line, column: column)
  }
}
