// How a writer begins: with a new log, or at the end of one that was repaired.

extension LogWriter {
  /// Begins the log of a new database; durable when it returns.
  ///
  /// - `lsn`: the write at which a checkpoint beside it stands; zero without one.
  /// - `logChecksum`: that checkpoint's.
  /// - `hasSecondRoot`: whether the log takes writes to the second root from the beginning.
  /// - `time`: milliseconds since 1970.
  package static func create(
    _ directory: DatabaseDirectory, databaseID: DatabaseID, after lsn: LogSequenceNumber = .zero,
    logChecksum: UInt32 = 0, time: Int64, hasSecondRoot: Bool = false,
    options: LogOptions = LogOptions()
  ) throws(StorageError) -> LogWriter {
    var format = FileFormat()
    format.hasSecondRoot = hasSecondRoot
    let header = SegmentHeader(
      databaseID: databaseID, salt: directory.environment.randomness.next(),
      firstLSN: lsn.next, baseTime: time, previousChecksum: logChecksum, format: format)
    let file = try SegmentCreation.create(header, in: directory)
    return try LogWriter(
      directory: directory, options: options, file: file, segment: header,
      offset: UInt64(SegmentHeader.byteCount), checksum: header.checksum, lastLSN: lsn,
      durableUpTo: lsn, lastTime: time, allocatedEnd: UInt64(SegmentHeader.byteCount),
      endsWithIdleRecord: false)
  }

  /// Continues at the end of a log that `repairTail` has repaired.
  package static func resume(
    _ directory: DatabaseDirectory, end: LogEnd, options: LogOptions = LogOptions()
  ) throws(StorageError) -> LogWriter {
    precondition(end.isRepaired, "a log is repaired before it is written")
    let path = directory.path(of: end.segment)
    let file = try directory.fileSystem.open(at: path, .readWrite)
    let writer = try LogWriter(
      directory: directory, options: options, file: file, segment: end.segmentHeader,
      offset: end.offset, checksum: end.checksum, lastLSN: end.lastLSN,
      durableUpTo: end.durableUpTo, lastTime: end.lastTime ?? end.segmentHeader.baseTime,
      allocatedEnd: max(end.offset, try file.size(path: path)),
      endsWithIdleRecord: end.endsWithIdleRecord)
    // The idle record at the end may not be durable. The next record, or the header of the next segment, repeats
    // its checksum and must not become durable before it.
    writer.hasUnsynchronized = true
    return writer
  }
}
