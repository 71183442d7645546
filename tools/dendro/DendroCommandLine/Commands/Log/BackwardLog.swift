import DendroStorage

/// Reads a log from its end to its beginning, in parts that are read forward: each is what lies between two
/// records at which decompression can begin, about a mebibyte of writes.
struct BackwardLog {
  let directory: DatabaseDirectory
  /// Of the last segment, if its headers were read before; writes may have come since.
  let outline: SegmentOutline?

  /// - Parameters:
  ///   - start: reading ends in front of the segment with the next write.
  ///   - take: called for each record and problem of a part, in their order.
  ///   - endPart: called at the end of a part; false ends reading.
  func read(
    after start: LogSequenceNumber, _ take: (LogCursor.Item) throws -> Void,
    endPart: () throws -> Bool
  ) throws {
    let segments = try directory.contents().segments
    let first = segments.lastIndex { $0.firstLSN <= start.next } ?? 0
    var reported: Set<LogCursor.Problem> = []
    for segment in segments.dropFirst(first).reversed() {
      for part in try parts(of: segment) {
        try read(part, of: segment) { item in
          if case .problem(let problem) = item {
            guard reported.insert(problem).inserted else { return }
          }
          try take(item)
        }
        guard try endPart() else { return }
      }
    }
  }

  /// From a record, or from the beginning of the segment, up to an offset, or to the end.
  private struct Part {
    var restart: RecordInfo?
    var end: UInt64?
  }

  /// The last one first.
  private func parts(of segment: SegmentName) throws -> [Part] {
    let outline: SegmentOutline
    do throws(StorageError) {
      outline =
        if let known = self.outline, known.header.firstLSN == segment.firstLSN {
          known
        } else {
          try SegmentOutline(segment, in: directory)
        }
    } catch {
      // Reported when the segment is read.
      guard case .corrupt = error else { throw error }
      return [Part()]
    }
    var parts: [Part] = []
    var end: UInt64?
    for restart in outline.restarts.dropFirst().reversed() {
      parts.append(Part(restart: restart, end: end))
      end = restart.offset
    }
    parts.append(Part(end: end))
    return parts
  }

  private func read(
    _ part: Part, of segment: SegmentName, _ take: (LogCursor.Item) throws -> Void
  ) throws {
    let cursor =
      try part.restart.map { try LogCursor(directory, from: $0) }
      ?? LogCursor(directory, after: segment.firstLSN.previous)
    let path = directory.path(of: segment)
    var isAtEnd = false
    var failure: (any Error)?
    while !isAtEnd, failure == nil,
      try cursor.step({ item in
        guard !isAtEnd, failure == nil else { return }
        switch item {
        case .segment(let header, _, _):
          isAtEnd = header.firstLSN > segment.firstLSN
          return
        case .record(let record, _, _):
          isAtEnd = record.segment > segment || part.end.map { record.offset >= $0 } ?? false
        case .problem(let problem):
          if problem.path == path { isAtEnd = part.end.map { problem.offset >= $0 } ?? false }
        }
        guard !isAtEnd else { return }
        do { try take(item) } catch { failure = error }
      })
    {}
    if let failure { throw failure }
  }
}
