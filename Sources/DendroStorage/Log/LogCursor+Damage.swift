// Past damage, to the next valid record.

extension LogCursor {
  /// Passes over bytes that are no record.
  func pass(
    _ segment: SegmentReader, _ expected: String, _ found: String,
    _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    // First this: of a segment that has a successor all is written, and what is read after it is whole.
    let isLast = try isLast(segment)
    if isLive, isLast { return false }
    // The writer may have written on and rolled since the place was looked at.
    try segment.refresh()
    if case .record(let record) = try segment.record(at: offset) {
      return try take(record, of: segment, body)
    }
    let search = try segment.search(from: offset, after: lastLSN)
    guard search.contentEnd > offset else {
      // Zeros: space taken ahead, or a seal that a crash took.
      return isLast ? false : try openNext(body)
    }
    if isLast {
      // A writer may have finished just now what was not whole a moment ago.
      try segment.refresh()
      if case .record(let record) = try segment.record(at: offset) {
        return try take(record, of: segment, body)
      }
    }
    var problem = problem(segment, expected, found)
    switch try damage(in: segment, isLast: isLast, search) {
    case .next:
      // All of its records were read. What stands here is a seal that the writer is in the middle of, or
      // that a crash tore.
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

  /// What bad bytes behind the last record mean, by the table that recovery decides by.
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
    if let checksum, record.header.previousChecksum != checksum {
      return (
        "previous checksum \(hexadecimal(checksum))", hexadecimal(record.header.previousChecksum)
      )
    }
    return nil
  }

  func isLast(_ segment: SegmentReader) throws(StorageError) -> Bool {
    try directory.contents().segments.last.map { $0 <= segment.name } ?? true
  }

  /// Whether the successor of a segment says that the last record that was read is its last one.
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
