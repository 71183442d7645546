// Idle records, and the end of a log that is closed in order.

extension LogWriter {
  /// Appends an idle record: a record without writes that says how far the log is durable. Without it, damage of
  /// the last batch cannot be distinguished from a crash. Not synchronized: a crash may take it without harm.
  /// Does nothing if the last record says the same.
  package func writeIdleRecord() throws(StorageError) {
    try checkGood()
    precondition(stagedCount == 0, "staged records are written before an idle record")
    if endsWithIdleRecord && durableUpTo == lastLSN || lastLSN == .zero { return }
    reserveStaging(0)
    stage(
      .idle(
        after: lastLSN, time: lastTime, durableUpTo: durableUpTo, previousChecksum: stagedChecksum,
        in: segment),
      UnsafeRawBufferPointer(start: nil, count: 0))
    let isComplete = durableUpTo == lastLSN
    do {
      try write()
    } catch {
      // The log is complete without the idle record.
      guard error.isOutOfSpace else { throw error }
      return try cutBack()
    }
    endsWithIdleRecord = isComplete
  }

  /// Closes the log: everything durable, an idle record, no preallocated space. Idempotent. The writer refuses
  /// everything else afterwards. Does nothing if the writer is poisoned.
  package func close() throws(StorageError) {
    switch state {
    case .closed, .poisoned:
      return
    case .needsCut:
      try cutBack()
    case .good:
      break
    }
    dropStaged()
    try synchronize()
    try writeIdleRecord()
    if preallocation.end > offset {
      do {
        try checkIdentity()
        try file.truncate(to: offset, path: path)
      } catch {
        throw poison(error)
      }
      preallocation.didCut(to: offset)
      hasUnsynchronized = true
    }
    try synchronize()
    state = .closed
  }
}

extension RecordHeader {
  /// The header of an idle record behind the write `lastLSN`.
  ///
  /// - Parameter time: the base time of the last record with writes.
  static func idle(
    after lastLSN: LogSequenceNumber, time: Int64, durableUpTo: LogSequenceNumber,
    previousChecksum: UInt32, in segment: SegmentHeader
  ) -> RecordHeader {
    RecordHeader(
      kind: .idle, isCompressed: false, isRestart: false, storedByteCount: 0, rawByteCount: 0,
      firstLSN: lastLSN.next, count: 0, baseTime: time, durableUpTo: durableUpTo,
      previousChecksum: previousChecksum,
      payloadChecksum: Checksum.xxh3(
        UnsafeRawBufferPointer(start: nil, count: 0), seed: segment.salt))
  }
}
