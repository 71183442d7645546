// A live cursor beside writers that come and go.

extension LogCursor {
  /// Takes in what writers did to the segment since it was read.
  ///
  /// - Returns: false where its records are no longer what they were. The cursor then reads the log again,
  ///   without a report up to the last write that no writer takes back.
  func follow(
    _ segment: SegmentReader, _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    switch try segment.refresh() {
    case .same:
      if try isLastRecordInPlace(segment) { return true }
      try rewind(segment, body)
      return false
    case .other, .removed:
      let segments = try directory.contents().segments
      if lastRecord == nil, let first = segments.first,
        first.firstLSN <= max(silentUpTo, reachedLSN).next
      {
        // A roll that was taken back for want of room.
        reopen()
        return false
      }
      // Retention removes segments from the front only: the open file is read to its end.
      let isLast = segments.last.map { $0 <= segment.name } ?? true
      if isLast {
        isEnded = true
        try body(
          .problem(
            problem(
              segment, "\(segment.name), which was read up to here", "another file, or none")))
      }
      return !isLast
    }
  }

  /// Whether the record before the cursor still stands where it was read.
  func isLastRecordInPlace(_ segment: SegmentReader) throws(StorageError) -> Bool {
    guard let lastRecord else { return true }
    guard case .record(let found) = try segment.record(at: lastRecord.offset) else { return false }
    return found.checksum == lastRecord.checksum
  }

  /// The writer took records back after its disk refused a batch, and may have written others since.
  func rewind(
    _ segment: SegmentReader, _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) {
    let isReported = reachedLSN > durableLSN
    var problem = problem(
      segment, "the records up to LSN \(reachedLSN), as they were read",
      "others from LSN \(durableLSN.next) on")
    problem.isTail = true
    if isReported { silentUpTo = durableLSN }
    reachedLSN = durableLSN
    reachedChecksum = nil
    reopen()
    if isReported { try body(.problem(problem)) }
  }

  /// Reads the segment of the next record again, without a report of what was read.
  func reopen() {
    silentUpTo = max(silentUpTo, reachedLSN)
    isRereading = true
    segment = nil
    lastName = nil
    lastLSN = nil
    checksum = nil
    lastRecord = nil
  }
}
