/// Reads the log record by record, continues behind damage, and can follow a live writer. For tools
/// (`dendro log`, `dendro verify`) and for history.
///
/// `LogReader` stops at the first error and decides what it means. A cursor reports it, finds the next valid
/// record and continues there. It changes nothing. Not for two threads at once.
package final class LogCursor {
  let directory: DatabaseDirectory
  /// Whether a writer is followed: an incomplete record is then one that is still being written.
  let isLive: Bool
  var segment: SegmentReader?
  var offset: UInt64 = 0
  /// The segment that was opened last, also if its header was bad.
  var lastName: SegmentName?
  /// The last write that was read, which the next record has to follow; nil behind damage.
  var lastLSN: LogSequenceNumber?
  /// The checksum that the next record has to repeat; nil behind damage.
  var checksum: UInt32?
  /// The last record that was taken from this segment.
  var lastRecord: RecordInfo?
  /// The last write of all records that were taken, and the checksum of its record if it is known.
  var reachedLSN = LogSequenceNumber.zero
  var reachedChecksum: UInt32?
  /// Whether a segment is read again that was read up to `reachedLSN` before.
  var isRereading = false
  /// The last write that a record proves durable: no writer takes back writes up to it.
  package internal(set) var durableLSN = LogSequenceNumber.zero
  /// Records with no later write than this are read but not reported.
  var silentUpTo: LogSequenceNumber
  var isSealed = false
  /// The last segment that was reported.
  var reportedSegment: SegmentName?
  /// Whether the payload of a record since the last restart of the history could not be read.
  var isHistoryBroken = false
  /// Whether the log cannot continue behind the cursor.
  var isEnded = false
  /// Where bytes of the last segment are no record that can be read: one that is still being written, the remains
  /// of a crash, or damage. Nil if the cursor stands at the end of the log. Of a live cursor only.
  package internal(set) var unreadableOffset: UInt64?

  /// - `after`: records with no later write than this are not reported.
  /// - `isLive`: whether to follow a writer, so that an incomplete record at the end is no problem.
  package init(
    _ directory: DatabaseDirectory, after: LogSequenceNumber = .zero, isLive: Bool = false
  ) {
    self.directory = directory
    self.isLive = isLive
    silentUpTo = after
  }

  /// Follows a writer from the end of a log that was read before. If the writer has taken back the last record
  /// since, the cursor reports that, as it does for records that it has read itself.
  package convenience init(_ directory: DatabaseDirectory, following end: LogEnd) {
    self.init(directory, after: end.lastLSN, isLive: true)
    guard end.durableUpTo < end.lastLSN else { return }
    reachedLSN = end.lastLSN
    reachedChecksum = end.checksum
    isRereading = true
  }

  /// Discards the bytes that were read ahead: a writer may have replaced records that were not durable.
  package func refresh() throws(StorageError) {
    try segment?.refresh()
  }

  /// Takes one step, which may report several things or none.
  ///
  /// - Returns: false at the present end of the log. Call it again after more was written.
  /// - Throws: `.io`; `.unsupportedVersion`; what `body` throws. Call it again to take the same step once more.
  package func step(_ body: (Item) throws(StorageError) -> Void) throws(StorageError) -> Bool {
    if isEnded { return false }
    guard let segment else { return try openNext(body) }
    if !isRereading, !isSealed, let lastLSN, let checksum,
      let (record, payload) = try segment.chainedRecord(at: offset, after: lastLSN, checksum)
    {
      if record.header.isRestart { isHistoryBroken = false }
      if record.lastLSN > silentUpTo { try report(record, payload, of: segment, body) }
      note(record)
      return true
    }
    var found = try next(in: segment)
    if isLive, found?.record == nil {
      // The bytes may have been read before they were written, or from a file that the next writer has
      // replaced.
      guard try follow(segment, body) else { return true }
      found = try next(in: segment)
    }
    switch found {
    case nil:
      return try leave(segment, body)
    case .invalid(let fault):
      return try pass(segment, expected: fault.expected, found: fault.description, body)
    case .record(let record):
      return try take(record, of: segment, body)
    }
  }

  /// The record, or the invalid bytes, at the cursor; nil at the end of the segment.
  func next(in segment: SegmentReader) throws(StorageError) -> SegmentReader.Found? {
    if isSealed || offset >= segment.byteCount { return nil }
    return try segment.record(at: offset)
  }

  /// Reports a record, and moves behind it.
  ///
  /// - Returns: as `step`.
  func take(
    _ record: RecordInfo, of segment: SegmentReader,
    _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    let isSilent = record.lastLSN <= silentUpTo
    if let wrong = linkFault(record) {
      if isLive, try !isLastRecordInPlace(segment) {
        try rewind(segment, body)
        return true
      }
      try body(.problem(problem(segment, wrong.expected, wrong.found)))
    }
    if isRereading, record.kind == .writes, record.lastLSN >= reachedLSN {
      isRereading = false
      if let reachedChecksum, reachedChecksum != record.checksum {
        try rewind(segment, body)
        return true
      }
    }
    if record.header.isRestart { isHistoryBroken = false }
    var decoded = try segment.payload(of: record)
    var isLast = false
    if case .failure = decoded {
      // As in `pass`: a record that was incomplete when it was read may be complete now.
      isLast = try self.isLast(segment)
      try segment.refresh()
      decoded = try segment.payload(of: record)
    }
    switch decoded {
    case .success(let payload):
      if !isSilent { try report(record, payload, of: segment, body) }
    case .failure(let fault):
      if isLive, isLast {
        // The record may still be being written. The decompressor's history contains a part of it, so the
        // segment is read again.
        unreadableOffset = record.offset
        reopen()
        return false
      }
      let rest = segment.byteCount > record.offset ? segment.byteCount - record.offset : 0
      var problem = problem(segment, fault.expected, fault.found)
      let payloadStart = record.offset + UInt64(record.headerByteCount)
      let search = isLast ? try segment.search(from: payloadStart, after: lastLSN) : nil
      let decision = try damage(in: segment, isLast: isLast, search)
      let isSeal = record.kind == .seal && [.next, .nextBehindDamage].contains(decision)
      if isSeal, decision == .nextBehindDamage {
        // A writer may have completed it before it wrote to the successor.
        try segment.refresh()
        if case .success = try segment.payload(of: record) { break }
      }
      let isTornSeal = isSeal && decision == .next
      problem.isTail =
        isTornSeal || (decision == .torn && record.endOffset >= segment.byteCount)
      problem.dependsOnDamage = isHistoryBroken && record.header.dependsOnHistory
      isHistoryBroken = true
      if fault.isWhole { try segment.keepUnreadable(record) }
      problem.skippedByteCount = min(record.endOffset - record.offset, rest)
      // As in `pass`.
      if isSeal, isLive { break }
      try body(.problem(problem))
      if !isSilent { try body(.record(record, path: segment.path, payload: nil)) }
      if problem.isTail, !isTornSeal {
        // This was reported as the end of the log.
        isEnded = true
        return false
      }
    }
    note(record)
    return true
  }

  /// Reports a record. If that fails, the segment is read again: the payload is in the history for decompression
  /// already, and would be there twice.
  private func report(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, of segment: SegmentReader,
    _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) {
    do throws(StorageError) {
      try body(.record(record, path: segment.path, payload: payload))
    } catch {
      reopen()
      throw error
    }
  }

  /// Moves behind a record that was read.
  private func note(_ record: RecordInfo) {
    lastLSN = record.lastLSN
    lastRecord = record
    if let place = unreadableOffset, record.offset >= place { unreadableOffset = nil }
    if record.kind == .writes, record.lastLSN >= reachedLSN {
      reachedLSN = record.lastLSN
      reachedChecksum = record.checksum
    }
    durableLSN = max(durableLSN, record.durableUpTo)
    offset = record.endOffset
    isSealed = record.kind == .seal
    // The successor repeats the checksum of the last record before the seal.
    if !isSealed { checksum = record.checksum }
  }

  /// Moves from the end of a segment to its successor, if there is one.
  func leave(
    _ segment: SegmentReader, _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    if isSealed, !isLive { try reportGarbage(behind: segment, body) }
    if try isLast(segment) {
      guard isSealed, !isLive else { return false }
      isEnded = true
      let successor = lastLSN.map { "\(SegmentName(firstLSN: $0.next))" } ?? "a successor"
      try body(.problem(problem(segment, "\(successor), which the seal names", "no such segment")))
      return false
    }
    if !isSealed {
      // The writer may have appended and rolled since the end was read.
      if isLive {
        guard try follow(segment, body) else { return true }
      } else {
        try segment.refresh()
      }
      if offset < segment.byteCount { return true }
    }
    return try openNext(body)
  }

  /// Opens the next segment, and reports if it does not follow the one before.
  func openNext(_ body: (Item) throws(StorageError) -> Void) throws(StorageError) -> Bool {
    let segments = try directory.contents().segments
    let next: SegmentName?
    if let lastName {
      next = segments.first { $0 > lastName }
    } else {
      next = segments.last { $0.firstLSN <= silentUpTo.next } ?? segments.first
    }
    guard let next else { return false }
    let opened: SegmentReader
    do {
      opened = try SegmentReader(next, in: directory)
    } catch {
      // After any other error the cursor is where it was.
      guard case .corrupt(let path, let offset, let expected, let found) = error else {
        throw error
      }
      move(to: next, nil)
      try body(
        .problem(Problem(path: path, offset: offset, expected: expected, found: found)))
      return true
    }
    let path = directory.path(of: next)
    let (lastLSN, checksum) = (lastLSN, checksum)
    move(to: next, opened)
    if let lastLSN, opened.header.firstLSN != lastLSN.next {
      try body(
        .problem(
          Problem(
            path: path, offset: 40, expected: "first LSN \(lastLSN.next)",
            found: "\(opened.header.firstLSN)")))
    } else if let checksum, opened.header.previousChecksum != checksum {
      try body(
        .problem(
          Problem(
            path: path, offset: 56, expected: "previous checksum \(hexadecimal(checksum))",
            found: hexadecimal(opened.header.previousChecksum))))
    }
    if reportedSegment.map({ $0 < next }) ?? true {
      reportedSegment = next
      try body(.segment(opened.header, path: path, byteCount: opened.byteCount))
    }
    return true
  }

  /// Moves to the beginning of a segment; `opened` is nil if its header is bad.
  private func move(to name: SegmentName, _ opened: SegmentReader?) {
    lastName = name
    offset = UInt64(SegmentHeader.byteCount)
    isSealed = false
    isHistoryBroken = false
    segment = opened
    lastRecord = nil
    lastLSN = opened?.header.firstLSN.previous
    checksum = opened?.header.checksum
    // All records before a segment were synchronized before it was made.
    durableLSN = max(durableLSN, lastLSN ?? .zero)
  }
}
