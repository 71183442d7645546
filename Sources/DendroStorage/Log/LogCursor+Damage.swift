// What the cursor does at bytes that are no record: it reports them and continues at the next valid record.

extension LogCursor {
  /// Passes over bytes that are no record, and reports them.
  ///
  /// - Returns: as `step`.
  func pass(
    _ segment: SegmentReader, expected: String, found: String,
    _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    // Asked first: a segment with a successor is complete, so that all reads after this see whole records.
    let isLast = try isLast(segment)
    if isLive, isLast {
      let bytes = try segment.bytes(at: offset, count: RecordHeader.byteCountMax)
      let isBlank = bytes.prefix(RecordHeader.byteCountMax).allSatisfy { $0 == 0 }
      unreadableOffset = isBlank ? nil : offset
      return false
    }
    // The writer may have appended and rolled since the bytes were read.
    try segment.refresh()
    if case .record(let record) = try segment.record(at: offset) {
      return try take(record, of: segment, body)
    }
    let search = try segment.search(from: offset, after: lastLSN)
    guard search.contentEnd > offset else {
      // Only zeros: preallocated space, or a seal that a crash has lost.
      return isLast ? false : try openNext(body)
    }
    if isLast {
      // A writer may have completed the record since.
      try segment.refresh()
      if case .record(let record) = try segment.record(at: offset) {
        return try take(record, of: segment, body)
      }
    }
    var problem = problem(segment, expected, found)
    switch try damage(in: segment, isLast: isLast, search) {
    case .next:
      // All records of the segment were read. These bytes are a seal that is being written, or that a crash
      // has torn.
      problem.skippedByteCount = search.contentEnd - offset
      problem.isTail = true
      if !isLive { try body(.problem(problem)) }
      return try openNext(body)
    case .end, .torn:
      problem.isTail = search.firstRecord == nil
    case .corrupt:
      break
    }
    let next = search.firstRecord ?? search.contentEnd
    problem.skippedByteCount = next - offset
    try body(.problem(problem))
    lastLSN = nil
    checksum = nil
    offset = next
    guard search.firstRecord == nil else { return true }
    if isLast { isEnded = true }
    return isLast ? false : try openNext(body)
  }

  /// What damaged bytes behind the last record mean, by the decision table of recovery.
  func damage(
    in segment: SegmentReader, isLast: Bool, _ search: SegmentReader.Search? = nil
  ) throws(StorageError) -> LogTail.Decision {
    let successor: LogTail.Successor =
      isLast ? .none : try isConfirmed(behind: segment) ? .confirms : .denies
    let durable = search?.durableUpTo ?? .zero
    return LogTail(
      remainder: .damaged, successor: successor,
      isNextProvenDurable: lastLSN.map { durable > $0 } ?? false
    ).row.decision
  }

  func linkFault(_ record: RecordInfo) -> (expected: String, found: String)? {
    if let lastLSN, record.firstLSN != lastLSN.next {
      return ("first LSN \(lastLSN.next)", "\(record.firstLSN)")
    }
    if let checksum, !record.header.follows(checksum) {
      return record.header.previousChecksumDifference(from: checksum)
    }
    return nil
  }

  func isLast(_ segment: SegmentReader) throws(StorageError) -> Bool {
    try directory.contents().segments.last.map { $0 <= segment.name } ?? true
  }

  /// Whether the successor's header names the last record that was read as the segment's last one.
  func isConfirmed(behind segment: SegmentReader) throws(StorageError) -> Bool {
    guard let lastLSN, let checksum,
      let next = try directory.contents().segments.first(where: { $0 > segment.name }),
      next.firstLSN == lastLSN.next
    else { return false }
    do {
      return try SegmentReader(next, in: directory).header.previousChecksum == checksum
    } catch {
      // Reported when the cursor opens that segment.
      guard case .corrupt = error else { throw error }
      return false
    }
  }

  func problem(_ segment: SegmentReader, _ expected: String, _ found: String) -> Problem {
    Problem(path: segment.path, offset: offset, expected: expected, found: found)
  }
}
