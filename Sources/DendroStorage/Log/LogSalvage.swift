/// Reads what is left of a damaged log: every record that is valid by itself, wherever it is. For `repair`.
///
/// `LogReader` refuses a damaged log, and `LogCursor` shows it. This reads more than both: segments under a
/// wrong name, and payloads that were compressed behind an unreadable one, as far as they do not refer to the
/// bad bytes. It changes nothing. Not for two threads at once.
///
/// Left out are segments of another database or of another log, and the remains of a crash, by the decision
/// table of recovery.
package struct LogSalvage {
  /// A segment whose header can be read.
  package struct Segment: Sendable {
    package var header: SegmentHeader
    package var path: String
    package var byteCount: UInt64
  }

  /// What is reported of the log.
  package enum Item {
    case segment(Segment)
    /// A record with writes; the payload is valid during the call only, and nil if it cannot be read, which
    /// was reported as a problem before.
    case record(RecordInfo, path: String, payload: UnsafeRawBufferPointer?)
    /// The checksum of a record without writes behind the last write.
    case link(UInt32, after: LogSequenceNumber)
    case problem(LogCursor.Problem)
  }

  package let directory: DatabaseDirectory
  /// In the order of their first writes.
  package let segments: [Segment]
  /// Of headers that cannot be read.
  package let problems: [LogCursor.Problem]
  /// The database that most of the readable files belong to.
  package let databaseID: DatabaseID?
  /// A write that was durable, as a checkpoint proves.
  private let provenDurable: LogSequenceNumber

  /// Reads the headers of all segments.
  ///
  /// - Parameters:
  ///   - directory: of the log.
  ///   - others: the database ids of the checkpoints.
  /// - Throws: `.io`; `.unsupportedVersion`.
  package init(_ directory: DatabaseDirectory, others: [DatabaseID]) throws(StorageError) {
    self.directory = directory
    let contents = try directory.contents()
    provenDurable = contents.checkpoints.last ?? .zero
    var found: [Segment] = []
    var problems: [LogCursor.Problem] = []
    for name in contents.segments {
      let path = directory.path(of: name)
      do throws(StorageError) {
        let (header, byteCount) = try Self.header(directory, path)
        if header.firstLSN != name.firstLSN {
          problems.append(
            LogCursor.Problem(
              path: path, offset: 40, expected: "first LSN \(name.firstLSN), as the name says",
              found: "\(header.firstLSN)"))
        }
        found.append(Segment(header: header, path: path, byteCount: byteCount))
      } catch {
        guard case .corrupt(_, let offset, let expected, let found) = error else { throw error }
        problems.append(
          LogCursor.Problem(path: path, offset: offset, expected: expected, found: found))
      }
    }
    let id = Self.mostFrequent(found.map(\.header.databaseID) + others)
    for segment in found where segment.header.databaseID != id {
      problems.append(
        LogCursor.Problem(
          path: segment.path, offset: 16, expected: id.map { "database \($0)" } ?? "a database",
          found: "\(segment.header.databaseID)"))
    }
    databaseID = id
    // Of two files with the same header, the one under its own name is read first.
    segments = found.filter { $0.header.databaseID == id }.enumerated().sorted { a, b in
      (a.element.header.firstLSN, a.element.isMisnamed(in: directory) ? 1 : 0, a.offset)
        < (b.element.header.firstLSN, b.element.isMisnamed(in: directory) ? 1 : 0, b.offset)
    }.map(\.element)
    self.problems = problems
  }

  static func header(_ directory: DatabaseDirectory, _ path: String) throws(StorageError)
    -> (SegmentHeader, byteCount: UInt64)
  {
    let file = try directory.fileSystem.open(at: path, .read)
    var bytes = RawBuffer()
    bytes.reserve(SegmentHeader.byteCount)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: bytes.base, count: SegmentHeader.byteCount),
      at: 0, path: path)
    let header = try SegmentHeader(
      decoding: UnsafeRawBufferPointer(start: bytes.base, count: count), path: path)
    return (header, try file.size(path: path))
  }

  private static func mostFrequent(_ ids: [DatabaseID]) -> DatabaseID? {
    var counts: [DatabaseID: Int] = [:]
    for id in ids { counts[id, default: 0] += 1 }
    // Of several, the first: the order of the files decides, not that of a dictionary.
    let most = counts.values.max()
    return ids.first { counts[$0] == most }
  }

  /// Reads the log; each write is reported once at most.
  ///
  /// - Returns: the first write of a segment that is missing at the end, as the seal before it says; nil if
  ///   there is none.
  /// - Throws: `.io`; what `visit` throws.
  /// - Complexity: O(bytes of the log), and for each damaged place a search up to the next record.
  package func read(_ visit: (Item) throws(StorageError) -> Void) throws(StorageError)
    -> LogSequenceNumber?
  {
    for problem in problems { try visit(.problem(problem)) }
    var walk = Walk(provenDurable: provenDurable)
    for (index, segment) in segments.enumerated() {
      guard let reader = try open(segment, visit) else { continue }
      let header = segment.header
      if let problem = walk.linkProblem(segment) {
        try visit(.problem(problem))
        // If the seal is lost, so may be records without writes in front of it, which the header repeats.
        if walk.seal != nil, header.firstLSN == walk.lastLSN.next { continue }
      }
      try visit(.segment(segment))
      let next = index + 1 < segments.count ? segments[index + 1].header : nil
      try walk.read(reader, before: next, visit)
    }
    guard let (path, offset) = walk.seal else { return nil }
    let successor = walk.lastLSN.next
    try visit(
      .problem(
        LogCursor.Problem(
          path: path, offset: offset,
          expected: "the successor \(SegmentName(firstLSN: successor)) that the seal names",
          found: "no such segment")))
    return successor
  }

  private func open(
    _ segment: Segment, _ visit: (Item) throws(StorageError) -> Void
  ) throws(StorageError) -> SegmentReader? {
    do throws(StorageError) {
      return try SegmentReader(
        SegmentName(firstLSN: segment.header.firstLSN), in: directory, at: segment.path)
    } catch {
      // Changed since its header was read.
      guard case .corrupt(let path, let offset, let expected, let found) = error else {
        throw error
      }
      try visit(
        .problem(LogCursor.Problem(path: path, offset: offset, expected: expected, found: found)))
      return nil
    }
  }
}

extension LogSalvage.Segment {
  fileprivate func isMisnamed(in directory: DatabaseDirectory) -> Bool {
    path != directory.path(of: SegmentName(firstLSN: header.firstLSN))
  }
}
