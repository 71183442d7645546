extension LogReader {
  /// The checksum that binds a checkpoint at a write to this log: the previous checksum of the segment that
  /// begins with the next write; if none begins there, the header checksum of the record that contains
  /// the write. Zero at write 0.
  ///
  /// Call it once the segment that follows the checkpoint exists. From then on the result does not change.
  ///
  /// - Throws: `.corrupt` or `.missing` if the log does not have the write; `.io`.
  /// - Complexity: O(1) if a segment begins with the next write, else O(bytes of one segment).
  package static func checksum(
    _ directory: DatabaseDirectory, at lsn: LogSequenceNumber
  ) throws(StorageError) -> UInt32 {
    if lsn == .zero { return 0 }
    let segment = try segment(directory, behind: lsn)
    if segment.header.firstLSN == lsn.next { return segment.header.previousChecksum }
    let scan = SegmentScan(segment)
    while let record = try scan.nextHeader() {
      if record.kind == .writes, record.lastLSN >= lsn { return record.checksum }
    }
    throw .corrupt(
      path: segment.path, offset: scan.offset, expected: "the record of write \(lsn)",
      found: "no record")
  }

  /// Checks the log that opening from a checkpoint needs: that it is there behind the checkpoint, and that
  /// the checkpoint was taken of it. The records behind the checkpoint are not read.
  ///
  /// - Throws: `.corrupt` or `.missing`, which name the checkpoint or the log; `.io`.
  /// - Complexity: as `checksum(_:at:)`.
  package static func check(_ checkpoint: CheckpointReader, in directory: DatabaseDirectory)
    throws(StorageError)
  {
    let lsn = checkpoint.lsn
    let segment = try segment(directory, behind: lsn)
    let found = try checksum(directory, at: lsn)
    guard found == checkpoint.header.logChecksum else {
      try checkSuccessor(of: segment, behind: lsn, in: directory)
      throw foreignCheckpoint(
        directory, lsn: lsn, logChecksum: checkpoint.header.logChecksum, segment: segment.name,
        found: found)
    }
  }

  private static func segment(_ directory: DatabaseDirectory, behind lsn: LogSequenceNumber)
    throws(StorageError) -> SegmentReader
  {
    let segments = try directory.contents().segments
    guard let name = segments.last(where: { $0.firstLSN <= lsn.next }) else {
      throw missingBeginning(directory, segments, after: lsn)
    }
    return try SegmentReader(name, in: directory)
  }

  static func missingBeginning(
    _ directory: DatabaseDirectory, _ segments: [SegmentName], after lsn: LogSequenceNumber
  ) -> StorageError {
    .missing(
      directory: directory.path, what: "the log from write \(lsn.next) on",
      reason: segments.first.map {
        "its first segment, \($0), begins with write \($0.firstLSN)"
      } ?? "there is no segment")
  }

  /// Checks that the segment that follows a write is there: it binds the checkpoint at that write, in place of the record.
  private static func checkSuccessor(
    of segment: SegmentReader, behind lsn: LogSequenceNumber, in directory: DatabaseDirectory
  ) throws(StorageError) {
    if segment.header.firstLSN == lsn.next { return }
    let scan = SegmentScan(segment)
    var last: RecordInfo?
    while let record = try scan.nextHeader() {
      if record.kind == .writes { last = record }
      guard record.kind == .seal, last?.lastLSN == lsn else { continue }
      throw .missing(
        directory: directory.path, what: SegmentName(firstLSN: lsn.next).fileName,
        reason: "the checkpoint at write \(lsn) needs it")
    }
  }

  static func foreignCheckpoint(
    _ directory: DatabaseDirectory, lsn: LogSequenceNumber, logChecksum: UInt32,
    segment: SegmentName, found: UInt32
  ) -> StorageError {
    .corrupt(
      path: directory.path(ofCheckpoint: lsn), offset: CheckpointHeader.logChecksumOffset,
      expected: "log checksum \(hexadecimal(found)), as \(segment) has it at write \(lsn)",
      found: "\(hexadecimal(logChecksum)): the checkpoint of another log")
  }
}
