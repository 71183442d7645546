import CDendroPQ

/// The answer to a statement.
final class PostgresRows {
  private let result: OpaquePointer

  /// - Parameter result: freed with this object.
  init(_ result: OpaquePointer) { self.result = result }

  deinit { PQclear(result) }

  var count: Int { Int(PQntuples(result)) }

  /// The rows that the statement has inserted, changed or removed.
  var affectedCount: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

  func isNull(_ row: Int, _ column: Int) -> Bool {
    PQgetisnull(result, CInt(row), CInt(column)) != 0
  }

  /// A `bigint`.
  func integer(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
    let bytes = try value(row, column)
    guard bytes.count == 8 else { throw .malformed("a bigint has \(bytes.count) bytes") }
    return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
  }

  /// A `bytea`.
  func bytes(_ row: Int, _ column: Int) throws(PostgresError) -> [UInt8] {
    Array(try value(row, column))
  }

  /// A `text`.
  func text(_ row: Int, _ column: Int) throws(PostgresError) -> String {
    String(decoding: try value(row, column), as: UTF8.self)
  }

  /// The bytes of a value, as long as this object lives.
  private func value(
    _ row: Int, _ column: Int
  ) throws(PostgresError) -> UnsafeRawBufferPointer {
    guard row < count, column < Int(PQnfields(result)), !isNull(row, column),
      PQfformat(result, CInt(column)) == 1
    else { throw .malformed("there is no value in column \(column) of row \(row)") }
    return UnsafeRawBufferPointer(
      start: PQgetvalue(result, CInt(row), CInt(column)),
      count: Int(PQgetlength(result, CInt(row), CInt(column))))
  }
}
