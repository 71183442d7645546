import CDendroPQ

/// The answer to a statement.
final class PostgresRows {
  private let result: OpaquePointer
  private let pq: UnsafePointer<dendro_pq>

  /// - Parameters:
  ///   - result: freed with this object.
  ///   - pq: the functions of the library that has made it.
  init(_ result: OpaquePointer, _ pq: UnsafePointer<dendro_pq>) {
    self.result = result
    self.pq = pq
  }

  deinit { pq.pointee.PQclear(result) }

  var count: Int { Int(pq.pointee.PQntuples(result)) }

  /// The rows that the statement has inserted, changed or removed.
  var affectedCount: Int {
    pq.pointee.PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
  }

  func isNull(_ row: Int, _ column: Int) -> Bool {
    pq.pointee.PQgetisnull(result, CInt(row), CInt(column)) != 0
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
    guard row < count, column < Int(pq.pointee.PQnfields(result)), !isNull(row, column),
      pq.pointee.PQfformat(result, CInt(column)) == 1
    else { throw .malformed("there is no value in column \(column) of row \(row)") }
    return UnsafeRawBufferPointer(
      start: pq.pointee.PQgetvalue(result, CInt(row), CInt(column)),
      count: Int(pq.pointee.PQgetlength(result, CInt(row), CInt(column))))
  }
}
