/// Walks the log record by record for tools: past damage, and on as a live writer appends.
///
/// Where `LogReader` stops at the first thing that is wrong and decides what it means, a cursor reports
/// it, looks for the next valid record and goes on. It changes nothing. Single-owner; not for two threads at
/// once.
package final class LogCursor {
  package enum Item {
    /// A segment begins.
    case segment(SegmentHeader, path: String, byteCount: UInt64)
    /// The payload is raw and checked, valid during the call only; nil where it cannot be read, which
    /// a problem before this tells.
    case record(RecordInfo, path: String, payload: UnsafeRawBufferPointer?)
    /// Damage, or the remains of a crash.
    case problem(Problem)
  }

  /// Something that is not as the format says.
  package struct Problem: Hashable, Sendable, CustomStringConvertible {
    package var path: String
    package var offset: UInt64
    package var expected: String
    package var found: String
    /// Bytes that were passed over to the next valid record, or to the end.
    package var skippedByteCount: UInt64 = 0
    /// At the end of the last segment, or in the place of a seal: what a crash leaves, unless something
    /// says that it was durable.
    package var isTail = false

    package init(path: String, offset: UInt64, expected: String, found: String) {
      self.path = path
      self.offset = offset
      self.expected = expected
      self.found = found
    }

    package var description: String {
      let skipped = skippedByteCount > 0 ? "; \(skippedByteCount) bytes passed over" : ""
      return "\(path), offset \(offset): expected \(expected), found \(found)\(skipped)"
    }
  }

  private let directory: DatabaseDirectory
  /// Whether what is not whole is taken as not yet there.
  private let isLive: Bool
  private var segment: SegmentReader?
  private var offset: UInt64 = 0
  /// The segment that was opened last, also where its header was bad.
  private var lastName: SegmentName?
  /// What the next record has to follow; nil behind damage.
  private var lastLSN: LogSequenceNumber?
  private var checksum: UInt32?
  /// The last record that was taken from this segment.
  private var lastRecord: RecordInfo?
  /// The last write of all records that were taken, and the checksum of its record where it is known.
  private var reachedLSN = LogSequenceNumber.zero
  private var reachedChecksum: UInt32?
  /// Whether a segment is read again that was read up to `reachedLSN` before.
  private var isRereading = false
  /// Writes up to here were durable when a record was made: no writer takes them back.
  private var durableLSN = LogSequenceNumber.zero
  /// Records up to here are read without a report.
  private var silentUpTo: LogSequenceNumber
  private var isSealed = false
  /// The last segment that was reported.
  private var reportedSegment: SegmentName?
  /// Nothing can follow any more.
  private var isEnded = false

  /// - `after`: records with nothing but writes up to here are not reported.
  /// - `isLive`: follow a writer: bytes that are not whole yet are no problem.
  package init(
    _ directory: DatabaseDirectory, after: LogSequenceNumber = .zero, isLive: Bool = false
  ) {
    self.directory = directory
    self.isLive = isLive
    silentUpTo = after
  }

  /// Forgets what was read ahead. Behind what is durable a writer may have taken records back and written
  /// others in their place.
  package func lookAgain() throws(StorageError) {
    try segment?.refresh()
  }

  /// Takes one step, which may report several things or none.
  ///
  /// - Returns: false at the present end of the log; after more was written, it goes on.
  /// - Throws: `.io`; `.unsupportedVersion`; what `body` throws.
  package func step(_ body: (Item) throws(StorageError) -> Void) throws(StorageError) -> Bool {
    if isEnded { return false }
    guard let segment else { return try openNext(body) }
    var found = try next(in: segment)
    if isLive, found?.record == nil {
      // The bytes may have been read before the writer came to them, and from a file that the next
      // writer has replaced.
      guard try follow(segment, body) else { return true }
      found = try next(in: segment)
    }
    switch found {
    case nil:
      return try leave(segment, body)
    case .invalid(let fault):
      return try pass(segment, fault.expected, fault.description, body)
    case .record(let record):
      return try take(record, of: segment, body)
    }
  }

  /// What stands where the next record begins; nil at the end of the segment.
  private func next(in segment: SegmentReader) throws(StorageError) -> SegmentReader.Found? {
    if isSealed || offset >= segment.byteCount { return nil }
    return try segment.record(at: offset)
  }

  /// Takes in what writers did to the segment since it was read.
  ///
  /// - Returns: false where its records are no longer what they were. The cursor then reads the log again,
  ///   without a report up to the last write that no writer takes back.
  private func follow(
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
  private func isLastRecordInPlace(_ segment: SegmentReader) throws(StorageError) -> Bool {
    guard let lastRecord else { return true }
    guard case .record(let found) = try segment.record(at: lastRecord.offset) else { return false }
    return found.checksum == lastRecord.checksum
  }

  /// The writer took records back after its disk refused a batch, and may have written others since.
  private func rewind(
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
  private func reopen() {
    silentUpTo = max(silentUpTo, reachedLSN)
    isRereading = true
    segment = nil
    lastName = nil
    lastLSN = nil
    checksum = nil
    lastRecord = nil
  }

  private func take(
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
    var decoded = try segment.payload(of: record)
    var isLast = false
    if case .failure = decoded {
      // As in `pass`: what was half written when it was read may be whole now.
      isLast = try self.isLast(segment)
      try segment.refresh()
      decoded = try segment.payload(of: record)
    }
    switch decoded {
    case .success(let payload):
      if !isSilent { try body(.record(record, path: segment.path, payload: payload)) }
    case .failure(let fault):
      if isLive, isLast {
        // The bytes may be on their way. What was decoded of them is in the history now, so the
        // segment is read anew, up to here in silence.
        reopen()
        return false
      }
      let rest = segment.byteCount > record.offset ? segment.byteCount - record.offset : 0
      var problem = problem(segment, fault.expected, fault.found)
      let isTornSeal = record.kind == .seal ? try isConfirmed(behind: segment) : false
      problem.isTail =
        isTornSeal || (isLast && record.endOffset >= segment.byteCount)
      problem.skippedByteCount = min(record.endOffset - record.offset, rest)
      // As in `pass`.
      if isTornSeal, isLive { break }
      try body(.problem(problem))
      if !isSilent { try body(.record(record, path: segment.path, payload: nil)) }
      if problem.isTail, !isTornSeal {
        // Told as the end of the log: what a writer may have added meanwhile is for the next walk.
        isEnded = true
        return false
      }
    }
    lastLSN = record.lastLSN
    lastRecord = record
    if record.kind == .writes, record.lastLSN >= reachedLSN {
      reachedLSN = record.lastLSN
      reachedChecksum = record.checksum
    }
    durableLSN = max(durableLSN, record.durableUpTo)
    offset = record.endOffset
    isSealed = record.kind == .seal
    // The successor repeats the checksum of the last record before the seal.
    if !isSealed { checksum = record.checksum }
    return true
  }

  /// Goes from the end of a segment to its successor.
  private func leave(
    _ segment: SegmentReader, _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    if try isLast(segment) {
      guard isSealed, !isLive else { return false }
      isEnded = true
      let successor = lastLSN.map { "\(SegmentName(firstLSN: $0.next))" } ?? "a successor"
      try body(.problem(problem(segment, "\(successor), which the seal names", "no such segment")))
      return false
    }
    if !isSealed {
      // The writer may have written on and rolled since the end was looked at.
      if isLive {
        guard try follow(segment, body) else { return true }
      } else {
        try segment.refresh()
      }
      if offset < segment.byteCount { return true }
    }
    return try openNext(body)
  }

  /// Passes over bytes that are no record.
  private func pass(
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
    if !isLast, try isConfirmed(behind: segment) {
      // All of its records were read. What stands here is a seal that the writer is in the middle of, or
      // that a crash tore, and is not missed: see `LogTail`.
      problem.skippedByteCount = search.contentEnd - offset
      problem.isTail = true
      if !isLive { try body(.problem(problem)) }
      return try openNext(body)
    }
    let next = search.firstRecord ?? search.contentEnd
    problem.skippedByteCount = next - offset
    let isProven = lastLSN.map { search.durableUpTo ?? .zero > $0 } ?? false
    problem.isTail = isLast && search.firstRecord == nil && !isProven
    try body(.problem(problem))
    lastLSN = nil
    checksum = nil
    offset = next
    guard search.firstRecord == nil else { return true }
    if isLast { isEnded = true }
    return isLast ? false : try openNext(body)
  }

  private func openNext(_ body: (Item) throws(StorageError) -> Void) throws(StorageError) -> Bool {
    let segments = try directory.contents().segments
    let next: SegmentName?
    if let lastName {
      next = segments.first { $0 > lastName }
    } else {
      next = segments.last { $0.firstLSN <= silentUpTo.next } ?? segments.first
    }
    guard let next else { return false }
    lastName = next
    offset = UInt64(SegmentHeader.byteCount)
    isSealed = false
    do {
      let opened = try SegmentReader(next, in: directory)
      let path = directory.path(of: next)
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
      segment = opened
      lastRecord = nil
      lastLSN = LogSequenceNumber(opened.header.firstLSN.rawValue - 1)
      // What stands before a segment was synchronized before the segment was made.
      durableLSN = max(durableLSN, lastLSN ?? .zero)
      checksum = opened.header.checksum
      if reportedSegment.map({ $0 < next }) ?? true {
        reportedSegment = next
        try body(.segment(opened.header, path: path, byteCount: opened.byteCount))
      }
    } catch {
      guard case .corrupt(let path, let offset, let expected, let found) = error else {
        throw error
      }
      segment = nil
      lastLSN = nil
      checksum = nil
      lastRecord = nil
      try body(
        .problem(Problem(path: path, offset: offset, expected: expected, found: found)))
    }
    return true
  }

  private func linkFault(_ record: RecordInfo) -> (expected: String, found: String)? {
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

  private func isLast(_ segment: SegmentReader) throws(StorageError) -> Bool {
    try directory.contents().segments.last.map { $0 <= segment.name } ?? true
  }

  /// Whether the successor of a segment says that the last record that was read is its last one.
  private func isConfirmed(behind segment: SegmentReader) throws(StorageError) -> Bool {
    guard let lastLSN, let checksum,
      let next = try directory.contents().segments.first(where: { $0 > segment.name }),
      next.firstLSN == lastLSN.next
    else { return false }
    do {
      return try SegmentReader(next, in: directory).header.previousChecksum == checksum
    } catch {
      // Told of when it is its turn.
      guard case .corrupt = error else { throw error }
      return false
    }
  }

  private func problem(_ segment: SegmentReader, _ expected: String, _ found: String) -> Problem {
    Problem(path: segment.path, offset: offset, expected: expected, found: found)
  }
}
