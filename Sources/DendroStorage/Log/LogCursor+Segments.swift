// How a cursor goes from segment to segment.

extension LogCursor {
  /// Moves from the end of a segment to its successor, if there is one.
  func leave(
    _ segment: SegmentReader, _ body: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    let isSealed = scan?.isSealed ?? false
    if isSealed, !isLive { try reportGarbage(behind: segment, body) }
    if try isLast(segment) {
      guard isSealed, !isLive else { return false }
      isEnded = true
      let missing = MissingSegment(
        behind: segment.neighbour, after: scan?.link.lsn ?? reachedLSN, before: nil)
      try body(.problem(missing.problem(in: directory)))
      return false
    }
    if !isSealed {
      // The writer may have appended and rolled since the end was read.
      if isLive {
        guard try follow(segment, body) else { return true }
      } else {
        try segment.refresh()
      }
      if let scan, scan.offset < segment.byteCount { return true }
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
    if !isLive, present == nil { present = segments.last.map { ($0, nil) } }
    guard let next, present.map({ next <= $0.segment }) ?? true else { return false }
    let opened: SegmentReader
    do {
      opened = try SegmentReader(next, in: directory)
    } catch {
      // After any other error the cursor is where it was.
      guard let problem = Problem(error) else { throw error }
      move(to: next, nil)
      try body(.problem(problem))
      return true
    }
    if next == present?.segment { present?.end = opened.byteCount }
    let path = directory.path(of: next)
    let problem = linkProblem(opened)
    move(to: next, opened)
    if let problem { try body(.problem(problem)) }
    if reportedSegment.map({ $0 < next }) ?? true {
      reportedSegment = next
      try body(.segment(opened.header, path: path, byteCount: opened.byteCount))
    }
    return true
  }

  /// Why a segment does not follow the one that was read; nil if it does, or if that is not known.
  private func linkProblem(_ next: SegmentReader) -> Problem? {
    guard let scan, let link, let (offset, fault) = link.fault(of: next.header) else { return nil }
    if scan.isSealed, next.header.firstLSN > link.lsn.next {
      return MissingSegment(
        behind: scan.segment.neighbour, after: link.lsn, before: next.neighbour
      ).problem(in: directory)
    }
    return Problem(path: next.path, offset: offset, expected: fault.expected, found: fault.found)
  }

  /// Moves to the beginning of a segment; `opened` is nil if its header is bad.
  private func move(to name: SegmentName, _ opened: SegmentReader?) {
    lastName = name
    isHistoryBroken = false
    scan = opened.map { SegmentScan($0) }
    // All records before a segment were synchronized before it was made.
    durableLSN = max(durableLSN, link?.lsn ?? .zero)
  }

  func isLast(_ segment: SegmentReader) throws(StorageError) -> Bool {
    try directory.contents().segments.last.map { $0 <= segment.name } ?? true
  }

  /// What the segment behind this one says of the last record that was read.
  func successor(of segment: SegmentReader) throws(StorageError) -> LogTail.Successor {
    let segments = try directory.contents().segments
    guard let link, let next = segments.first(where: { $0 > segment.name }),
      next.firstLSN == link.lsn.next
    else { return .denies }
    do throws(StorageError) {
      let reader = try SegmentReader(next, in: directory)
      var isContinued = next != segments.last
      if !isContinued { isContinued = try SegmentScan(reader).header()?.record != nil }
      return LogTail.Successor(reader.header, behind: link, isContinued: isContinued)
    } catch {
      // Reported when the cursor opens that segment.
      guard case .corrupt = error else { throw error }
      return .denies
    }
  }
}
