/// Reads what is left of a damaged log: every record that is valid by itself, wherever it is. For `repair`.
///
/// `LogReader` refuses a damaged log, and `LogCursor` shows it. This reads more than both: segments under a
/// wrong name or with a damaged header, records at another place than they were written at, and payloads that were
/// compressed behind an unreadable one, as far as they do not refer to the bad bytes. It changes nothing. Not for two
/// threads at once.
///
/// Left out are segments of another database or of another log, and the remains of a crash, by the decision
/// table of recovery.
package struct LogSalvage {
  /// A segment whose header is known.
  package struct Segment: Sendable {
    package var header: SegmentHeader
    package var path: String
    package var byteCount: UInt64
    /// Whether the header's base time, from which the times of the writes count, is a guess.
    package var isTimeGuessed = false
    let map: SegmentMap

    func reader(in directory: DatabaseDirectory) throws(StorageError) -> SegmentReader {
      try SegmentReader(header, at: path, in: directory)
    }
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
  /// Segments with other writes under the numbers of those in `segments`: the neighbours of those confirm them, or they
  /// stand under their own names.
  package let forks: [Segment]
  /// Of whole files: of headers that cannot be read, and of files that are left out.
  package let problems: [LogCursor.Problem]
  /// The database that most of the readable files belong to.
  package let databaseID: DatabaseID?
  /// The last write that was durable as a checkpoint proves, if only by its name.
  package let provenDurable: LogSequenceNumber

  /// Reads the headers of all segments and of their records.
  ///
  /// - Parameters:
  ///   - directory: of the log.
  ///   - checkpoints: with their headers; nil if that cannot be read.
  /// - Throws: `.io`; `.unsupportedVersion`.
  /// - Complexity: O(bytes of the log).
  package init(
    _ directory: DatabaseDirectory,
    checkpoints: [(lsn: LogSequenceNumber, header: CheckpointHeader?)]
  ) throws(StorageError) {
    self.directory = directory
    var files = SegmentFiles(directory)
    for name in try directory.contents().segments { try files.add(name) }
    try files.choose(checkpoints.compactMap(\.header))
    let id = files.databaseID
    databaseID = id
    provenDurable =
      checkpoints.filter { $0.header == nil || $0.header?.databaseID == id }.map(\.lsn).max()
      ?? .zero
    segments = files.segments
    forks = files.forks
    problems = files.problems
  }

  /// The last write that the files prove durable: by a record, a segment or a checkpoint.
  package var durableUpTo: LogSequenceNumber {
    segments.map(\.map.durableUpTo).reduce(provenDurable) { max($0, $1) }
  }

  /// Reads the log; each write is reported once at most.
  ///
  /// - Returns: the first write of a segment that is missing at the end, as the seal before it says; nil if
  ///   there is none.
  /// - Throws: `.io`; what `visit` throws.
  /// - Complexity: O(bytes of the log).
  package func read(_ visit: (Item) throws(StorageError) -> Void) throws(StorageError)
    -> LogSequenceNumber?
  {
    for problem in problems { try visit(.problem(problem)) }
    var walk = Walk(provenDurable: durableUpTo, byCheckpoint: provenDurable)
    for (index, segment) in segments.enumerated() {
      let header = segment.header
      if let problem = linkProblem(walk, segment) {
        try visit(.problem(problem))
        // If the seal is lost, so may be records without writes in front of it, which the header repeats.
        if walk.sealed != nil, header.firstLSN == walk.lastLSN.next { continue }
      }
      try visit(.segment(segment))
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      let successor = next.map { next in
        let isContinued = index + 2 < segments.count || !next.map.stretches.isEmpty
        return Walk.Successor(header: next.header, isContinued: isContinued)
      }
      try walk.read(segment, try segment.reader(in: directory), before: successor, visit)
    }
    guard let missing = walk.missingSegment(before: nil) else { return nil }
    if !isThere(missing.name) { try visit(.problem(missing.problem(in: directory))) }
    return missing.name.firstLSN
  }

  /// What is wrong between a segment and what was read before it; nil if nothing is, or if that was reported.
  private func linkProblem(_ walk: Walk, _ segment: Segment) -> LogCursor.Problem? {
    guard let problem = walk.linkProblem(segment) else { return nil }
    guard let missing = walk.missingSegment(before: segment.neighbour) else { return problem }
    return isThere(missing.name) ? nil : missing.problem(in: directory)
  }

  /// Whether a segment has a file, of which nothing can be read, which was reported.
  private func isThere(_ name: SegmentName) -> Bool {
    let path = directory.path(of: name)
    return problems.contains { $0.path == path }
  }

  /// Reads the records of a fork that are not in the segment instead of which it could stand, as far as they can be read;
  /// each write is reported once at most.
  ///
  /// - Throws: `.io`; what `visit` throws.
  /// - Complexity: O(bytes of both); the memory of a few words for each record of the other.
  package func read(
    fork: Segment, _ visit: (RecordInfo, UnsafeRawBufferPointer) throws(StorageError) -> Void
  ) throws(StorageError) {
    var saved: [LogSequenceNumber: UInt32] = [:]
    for segment in segments where segment.header.firstLSN == fork.header.firstLSN {
      let reader = try segment.reader(in: directory)
      for stretch in segment.map.stretches {
        try stretch.forEachRecord(of: reader) { record in
          if record.kind == .writes { saved[record.lastLSN] = record.checksum }
        }
      }
    }
    var walk = Walk(provenDurable: .zero)
    try walk.read(fork, try fork.reader(in: directory), before: nil) {
      (item) throws(StorageError) in
      guard case .record(let record, _, let payload?) = item,
        saved[record.lastLSN] != record.checksum
      else { return }
      try visit(record, payload)
    }
  }
}
