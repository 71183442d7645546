/// Finds the lines and columns of a text. One position in each 1,024 bytes is kept, so a text on one line costs no
/// more than any other.
struct PositionTable {
  private let bytes: [UInt8]
  private var kept: [TextPosition] = []

  private static let distance = 1024

  /// - Complexity: O(n).
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var position = TextPosition(line: 1, column: 1)
    for start in stride(from: 0, through: bytes.count, by: Self.distance) {
      kept.append(position)
      let end = min(start + Self.distance, bytes.count)
      position = Self.position(position, after: bytes[start..<end])
    }
  }

  /// - Complexity: O(1).
  func position(of offset: Int) -> TextPosition {
    let offset = min(max(offset, 0), bytes.count)
    let start = offset / Self.distance * Self.distance
    return Self.position(kept[start / Self.distance], after: bytes[start..<offset])
  }

  /// A scalar counts where it begins: the other bytes of it are no column.
  private static func position(
    _ position: TextPosition, after bytes: ArraySlice<UInt8>
  ) -> TextPosition {
    var (line, column) = (position.line, position.column)
    for byte in bytes {
      if byte == UInt8(ascii: "\n") {
        (line, column) = (line + 1, 1)
      } else if byte & 0xC0 != 0x80 {
        column += 1
      }
    }
    return TextPosition(line: line, column: column)
  }
}
