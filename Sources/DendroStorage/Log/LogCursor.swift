/// Reads the log record by record, continues behind damage, and can follow a live writer. For tools
/// (`dendro log`, `dendro verify`) and for history.
///
/// `LogReader` stops at the first error and decides what it means. A cursor reports it, finds the next valid
/// record and continues there. It changes nothing. Not for two threads at once.
package final class LogCursor {
  let directory: DatabaseDirectory
  /// Whether a writer is followed: an incomplete record is then one that is still being written.
  let isLive: Bool
  /// The position in the segment that is read; nil in front of one, also if its header was bad.
  var scan: SegmentScan?
  /// The segment that was opened last, also if its header was bad.
  var lastName: SegmentName?
  /// The last write of all records that were taken, and the checksum of its record if it is known.
  var reachedLSN = LogSequenceNumber.zero
  var reachedChecksum: UInt32?
  /// Whether a segment is read again that was read up to `reachedLSN` before.
  var isRereading = false
  /// The last write that a record proves durable: no writer takes back writes up to it.
  package internal(set) var durableLSN = LogSequenceNumber.zero
  /// Records with no later write than this are read but not reported.
  var silentUpTo: LogSequenceNumber
  /// The last segment that was reported.
  var reportedSegment: SegmentName?
  /// Whether the payload of a record since the last restart of the history could not be read.
  var isHistoryBroken = false
  /// Whether the log cannot continue behind the cursor.
  var isEnded = false
  /// The last segment that was there when the first one was opened, and where it ended when it was opened itself: what a
  /// writer has added since is not read, so that a cursor that is slower than the writer comes to its end. Nil as long as
  /// that is not known, and of a live cursor.
  var present: (segment: SegmentName, end: UInt64?)?
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

  /// Begins in the middle of a segment, at a record with which decompression can begin.
  ///
  /// - Throws: `.corrupt` if the segment's header cannot be read; `.io`.
  package convenience init(
    _ directory: DatabaseDirectory, from restart: RecordInfo
  ) throws(StorageError) {
    self.init(directory)
    scan = SegmentScan(try SegmentReader(restart.segment, in: directory), from: restart)
    lastName = restart.segment
    reportedSegment = restart.segment
    durableLSN = restart.durableUpTo
  }

  /// What the next record or segment has to follow; nil behind damage.
  var link: SegmentScan.Link? {
    guard let scan, scan.isLinked else { return nil }
    return scan.link
  }

  /// Discards the bytes that were read ahead: a writer may have replaced records that were not durable.
  package func refresh() throws(StorageError) {
    try scan?.segment.refresh()
  }

  /// Takes one step, which may report several things or none.
  ///
  /// - Returns: false at the present end of the log. Of a live cursor, call it again after more was written.
  /// - Throws: `.io`; `.unsupportedVersion`; what `body` throws. Call it again to take the same step once more.
  package func step(_ body: (Item) throws(StorageError) -> Void) throws(StorageError) -> Bool {
    if isEnded { return false }
    guard let scan else { return try openNext(body) }
    let segment = scan.segment
    if let present, present.segment == segment.name, let end = present.end,
      segment.byteCount > end, scan.offset >= end
    {
      return false
    }
    if !isRereading, let (record, payload) = try scan.chainedRecord() {
      if record.header.isRestart { isHistoryBroken = false }
      if record.lastLSN > silentUpTo { try report(record, payload, of: segment, body) }
      note(record)
      return true
    }
    var found = try next()
    if isLive, found?.record == nil {
      // The bytes may have been read before they were written, or from a file that the next writer has
      // replaced.
      guard try follow(segment, body) else { return true }
      found = try next()
    }
    switch found {
    case nil:
      return try leave(segment, body)
    case .invalid(let fault):
      return try pass(segment, ReadFault(fault), body)
    case .record(let record):
      return try take(record, of: segment, body)
    }
  }

  /// The record, or the invalid bytes, at the cursor; nil at the end of the segment.
  private func next() throws(StorageError) -> SegmentReader.Found? {
    guard let scan, !scan.isSealed else { return nil }
    return try scan.header()
  }

  /// Reports a record, and moves behind it.
  ///
  /// - Returns: as `step`.
  func take(
    _ record: RecordInfo, of segment: SegmentReader,
    _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    let isSilent = record.lastLSN <= silentUpTo
    if let wrong = scan?.linkFault(record) {
      if isLive, try !isLastRecordInPlace(segment) {
        try rewind(segment, body)
        return true
      }
      try body(.problem(problem(segment, wrong)))
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
      var problem = problem(segment, fault)
      let search =
        isLast ? try segment.search(from: record.payloadOffset, after: link?.lsn) : nil
      let decision = try damage(in: segment, isLast: isLast, search)
      let isSeal = record.kind == .seal && [.next, .nextBehindDamage].contains(decision)
      if isSeal, decision == .nextBehindDamage {
        // A writer may have completed it before it wrote to the successor.
        try segment.refresh()
        if case .success = try segment.payload(of: record) { break }
      }
      let isTornSeal = isSeal && decision == .next
      // As opening judges it: nothing behind it is a record.
      problem.isTail =
        isTornSeal || (decision == .torn && search?.firstRecord == nil)
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
    scan?.take(record)
    if let place = unreadableOffset, record.offset >= place { unreadableOffset = nil }
    if record.kind == .writes, record.lastLSN >= reachedLSN {
      reachedLSN = record.lastLSN
      reachedChecksum = record.checksum
    }
    durableLSN = max(durableLSN, record.durableUpTo)
  }

  func problem(_ segment: SegmentReader, _ fault: ReadFault) -> Problem {
    problem(segment, fault.expected, fault.found)
  }

  func problem(_ segment: SegmentReader, _ expected: String, _ found: String) -> Problem {
    Problem(
      path: segment.path, offset: scan?.offset ?? 0, expected: expected, found: found)
  }
}
