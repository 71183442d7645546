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
      if isLast { return false }
      // Only zeros: preallocated space, in which a crash has lost the seal, or else damage.
      let decision = try damage(in: segment, isLast: false)
      if decision == .nextBehindDamage, !isLive {
        if let seal = try completed(segment) { return try take(seal, of: segment, body) }
        var problem = problem(segment, "a seal", "zeros up to the end of the file")
        problem.skippedByteCount = segment.byteCount - offset
        try body(.problem(problem))
      }
      return try openNext(body)
    }
    if isLast {
      // A writer may have completed the record since.
      try segment.refresh()
      if case .record(let record) = try segment.record(at: offset) {
        return try take(record, of: segment, body)
      }
    }
    var problem = problem(segment, expected, found)
    let decision = try damage(in: segment, isLast: isLast, search)
    if decision == .nextBehindDamage, let seal = try completed(segment) {
      return try take(seal, of: segment, body)
    }
    switch decision {
    case .next, .nextBehindDamage:
      // All records of the segment were read. These bytes are a seal that is being written, that a crash has torn, or
      // that is damaged.
      problem.skippedByteCount = search.contentEnd - offset
      problem.isTail = decision == .next
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
    if search.firstRecord != nil { try segment.keepDamaged(from: offset, to: next) }
    lastLSN = nil
    checksum = nil
    offset = next
    guard search.firstRecord == nil else { return true }
    if isLast { isEnded = true }
    return isLast ? false : try openNext(body)
  }

  /// The seal that a writer has completed since the bytes at the cursor were read; nil if they are as they were.
  private func completed(_ segment: SegmentReader) throws(StorageError) -> RecordInfo? {
    try segment.refresh()
    return try segment.record(at: offset).record
  }

  /// Reports bytes behind a seal. Zeros are none: the file is cut behind the seal after that is written.
  func reportGarbage(
    behind segment: SegmentReader, _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) {
    guard offset < segment.byteCount else { return }
    let end = try segment.search(from: offset, after: nil).contentEnd
    guard end > offset else { return }
    var problem = problem(segment, "the end of the file behind the seal", "other bytes")
    problem.skippedByteCount = end - offset
    try body(.problem(problem))
  }

  /// What damaged bytes behind the last record mean, by the decision table of recovery.
  func damage(
    in segment: SegmentReader, isLast: Bool, _ search: SegmentReader.Search? = nil
  ) throws(StorageError) -> LogTail.Decision {
    let successor = isLast ? .none : try successor(of: segment)
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

  /// What the segment behind this one says of the last record that was read.
  private func successor(of segment: SegmentReader) throws(StorageError) -> LogTail.Successor {
    let segments = try directory.contents().segments
    guard let lastLSN, let checksum, let next = segments.first(where: { $0 > segment.name }),
      next.firstLSN == lastLSN.next
    else { return .denies }
    do throws(StorageError) {
      let reader = try SegmentReader(next, in: directory)
      guard reader.header.previousChecksum == checksum else { return .denies }
      let start = UInt64(SegmentHeader.byteCount)
      let isLast = next == segments.last
      if !isLast { return .continues }
      return try reader.record(at: start).record != nil ? .continues : .confirms
    } catch {
      // Reported when the cursor opens that segment.
      guard case .corrupt = error else { throw error }
      return .denies
    }
  }

  func problem(_ segment: SegmentReader, _ expected: String, _ found: String) -> Problem {
    Problem(path: segment.path, offset: offset, expected: expected, found: found)
  }
}
