import DendroStorage

/// Bytes under a right checksum that are no encoding of ours: written by something else, or by a bug.
struct CodingError: Error, Hashable {
  var expected: String
  var found: String

  func located(in record: RecordInfo) -> StorageError {
    .corrupt(
      path: record.segment.fileName, offset: record.offset,
      expected: "\(expected) in the record of writes \(record.firstLSN) and on", found: found)
  }
}
