import DendroStorage

/// Bytes with a right checksum that are not a valid encoding: written by another program, or by a bug.
package struct CodingError: Error, Hashable {
  package var expected: String
  package var found: String

  func located(in record: RecordInfo) -> StorageError {
    .corrupt(
      path: record.segment.fileName, offset: record.offset,
      expected: "\(expected) in the record of writes \(record.firstLSN) and on", found: found)
  }
}
