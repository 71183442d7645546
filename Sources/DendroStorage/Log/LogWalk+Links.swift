// Whether a record, a segment or a seal belongs to this log: each names its neighbours by LSN and checksum.

extension LogWalk {
  struct Fault {
    var expected: String
    var found: String
    /// Whether all bytes of the record are in the file.
    var isWhole = false
  }

  /// Why a valid record does not follow the one before it; nil if it does.
  func linkFault(_ record: RecordInfo) -> Fault? {
    if record.firstLSN != lastLSN.next {
      return Fault(expected: "first LSN \(lastLSN.next)", found: "\(record.firstLSN)")
    }
    if !record.header.follows(checksum) {
      let (expected, found) = record.header.previousChecksumDifference(from: checksum)
      return Fault(expected: expected, found: found)
    }
    return nil
  }

  func sealRemainder(_ payload: UnsafeRawBufferPointer, _ next: SegmentReader?)
    -> LogTail.Remainder
  {
    guard let next else { return .seal }
    return Seal.successorChecksum(payload) == next.header.checksum ? .seal : .detached
  }

  func confirms(_ next: SegmentReader) -> Bool {
    (next.header.firstLSN == lastLSN.next && next.header.previousChecksum == checksum)
  }

  func check(_ segment: SegmentReader, isOf databaseID: DatabaseID) throws(StorageError) {
    if segment.header.databaseID != databaseID {
      throw .corrupt(
        path: segment.path, offset: 16, expected: "database \(databaseID)",
        found: "\(segment.header.databaseID)")
    }
  }

  /// Checks that the checkpoint was taken of this log.
  func checkLog(_ found: UInt32, in segment: SegmentName) throws(StorageError) {
    guard let logChecksum, logChecksum != found else { return }
    throw LogReader.foreignCheckpoint(
      directory, lsn: checkpoint, logChecksum: logChecksum, segment: segment, found: found)
  }
}
