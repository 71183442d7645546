// What the cursor does at bytes that are no record: it reports them and continues at the next valid record.

extension LogCursor {
  /// Passes over bytes that are no record, and reports them.
  ///
  /// - Returns: as `step`.
  func pass(
    _ segment: SegmentReader, _ fault: ReadFault,
    _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    // Asked first: a segment with a successor is complete, so that all reads after this see whole records.
    let isLast = try isLast(segment)
    let offset = scan?.offset ?? 0
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
    let search = try segment.search(from: offset, after: link?.lsn)
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
    var problem = problem(segment, fault)
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
    problem.displacedUpTo = search.displacedUpTo
    try body(.problem(problem))
    if search.firstRecord != nil { try segment.keepDamaged(from: offset, to: next) }
    scan?.goOn(at: next)
    guard search.firstRecord == nil else { return true }
    if isLast { isEnded = true }
    return isLast ? false : try openNext(body)
  }

  /// The seal that a writer has completed since the bytes at the cursor were read; nil if they are as they were.
  private func completed(_ segment: SegmentReader) throws(StorageError) -> RecordInfo? {
    try segment.refresh()
    return try scan?.header()?.record
  }

  /// Reports bytes behind a seal. Zeros are none: the file is cut behind the seal after that is written.
  func reportGarbage(
    behind segment: SegmentReader, _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) {
    guard let offset = scan?.offset, offset < segment.byteCount else { return }
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
      isNextProvenDurable: link.map { durable > $0.lsn } ?? false
    ).decision
  }
}
