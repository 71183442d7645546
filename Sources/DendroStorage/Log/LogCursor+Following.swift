// How a live cursor follows a log that writers append to, cut back and rewrite.

extension LogCursor {
  /// Compares the segment with its file, which writers may have changed since it was read.
  ///
  /// - Returns: false if records that were read are no longer there. The cursor then reads the log again,
  ///   without reporting records up to the last write that no writer can take back.
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
      if scan?.last == nil, let first = segments.first,
        first.firstLSN <= max(silentUpTo, reachedLSN).next
      {
        // The roll was taken back, since the disk had no room for it.
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

  /// Whether whole records stand behind `unreadableOffset`: no record that is being written, but the remains of a
  /// crash or damage. `LogReader` decides which of the two.
  ///
  /// - Complexity: O(bytes to the end of the last segment).
  package func isPassedOver() throws(StorageError) -> Bool {
    guard isLive, let unreadableOffset, let last = try directory.contents().segments.last
    else { return false }
    let reader = try SegmentReader(last, in: directory)
    return try reader.search(from: unreadableOffset + 1, after: nil, stopsAtFirst: true)
      .firstRecord != nil
  }

  /// Whether the record before the cursor is still at its offset.
  func isLastRecordInPlace(_ segment: SegmentReader) throws(StorageError) -> Bool {
    guard let last = scan?.last else { return true }
    return try segment.record(at: last.offset).record?.checksum == last.checksum
  }

  /// Goes back to the last durable write: the writer has taken back records after its disk refused a batch,
  /// and may have written others since.
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

  /// Reads the segment of the next record again, without reporting records a second time.
  func reopen() {
    silentUpTo = max(silentUpTo, reachedLSN)
    isRereading = true
    scan = nil
    lastName = nil
  }
}
