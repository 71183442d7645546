// Where the records of a segment end, and what the bytes behind them tell of that.

extension LogWalk {
  /// Where and why the records of a segment end.
  struct Stop {
    var remainder: LogTail.Remainder
    var fault = Fault(expected: "", found: "")
    /// Where a search for records behind it begins.
    var searchStart: UInt64
  }

  /// What a read-only walk beside a live writer has found at the end.
  ///
  /// A record that is being written can be read half old, half new. So the bytes are read again once, and
  /// once more if a later record proves them durable: only then are they corrupt.
  struct Judgement {
    var offset: UInt64
    var isProven: Bool

    func isNew(after last: Judgement?) -> Bool {
      guard let last else { return true }
      return last.offset != offset || (isProven && !last.isProven)
    }
  }

  /// Searches the rest of the last segment for records that prove its bad bytes durable. If all bytes are
  /// zero, `stop` becomes the end of the segment.
  func search(
    behind stop: inout Stop, in segment: SegmentReader, before next: SegmentReader?
  ) throws(StorageError) -> SegmentReader.Search? {
    guard stop.remainder == .damaged, next == nil else { return nil }
    let search = try segment.search(from: stop.searchStart, after: lastLSN)
    if stop.searchStart == offset, search.contentEnd == offset { stop.remainder = .nothing }
    return search
  }

  func tornTail(
    _ stop: Stop, _ search: SegmentReader.Search?, in segment: SegmentReader
  ) -> TornTail {
    TornTail(
      segment: segment.name, offset: offset,
      byteCount: max(search?.contentEnd ?? offset, stop.searchStart) - offset,
      firstLSN: lastLSN.next, lastSurvivor: search?.lastSurvivor,
      isUndecidable: stop.fault.isWhole || search?.firstRecord != nil,
      expected: stop.fault.expected, found: stop.fault.found)
  }
}
