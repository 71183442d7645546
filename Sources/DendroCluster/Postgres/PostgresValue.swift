/// A parameter of a statement.
enum PostgresValue: Sendable {
  /// A `bigint`.
  case integer(Int64)
  /// A `bytea`.
  case bytes([UInt8])
  /// A `text` without a zero byte.
  case text(String)

  /// PostgreSQL's number of the type.
  var type: UInt32 {
    switch self {
    case .integer: 20
    case .bytes: 17
    case .text: 25
    }
  }

  /// As the protocol sends it in its binary form.
  var encoded: [UInt8] {
    switch self {
    case .integer(let number): withUnsafeBytes(of: number.bigEndian) { Array($0) }
    case .bytes(let bytes): bytes
    case .text(let text): Array(text.utf8)
    }
  }
}
