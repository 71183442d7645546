package import DendroStorage
import DendroTree

/// What can be read of a damaged directory: which writes, which checkpoints, and which states they prove.
///
/// A state is proven if a checkpoint holds it, or if every write between it and such a checkpoint, or the
/// beginning, can be read. Writes behind unreadable ones are kept too, and so is what is left of a damaged checkpoint; but the
/// state that they give never was: see ``Salvage/Plan``. Damaged blocks that the parity of their file mends are read as they
/// were. Nothing in the directory is changed.
package struct Salvage: Sendable {
  package struct Checkpoint: Sendable {
    package var lsn: LogSequenceNumber
    /// What is wrong with it; nil if it is good.
    package var problem: String?
    /// What is left of it if it is damaged; nil if nothing can be used.
    package var partial: PartialCheckpoint?

    /// Whether it proves its state: it is good, or nothing of its trees is lost.
    var isWhole: Bool { problem == nil || partial?.isWhole ?? false }
  }

  /// As its parity mends it.
  package let directory: DatabaseDirectory
  /// What the parity of each file says that has any.
  package let mendings: [Mending]
  /// Ascending.
  package private(set) var checkpoints: [Checkpoint] = []
  /// Of the log, in its order; the remains of a crash are marked.
  package private(set) var problems: [LogCursor.Problem] = []
  /// The writes of the log that can be read: ascending, with gaps between the ranges.
  package private(set) var readable: [ClosedRange<UInt64>] = []
  /// The last write that is known to have been there.
  package private(set) var end = LogSequenceNumber.zero
  /// The first write of a part of the log that is missing at the end: how many writes it had is not known.
  package private(set) var missingEnd: LogSequenceNumber?
  /// The checkpoint whose name alone says that there were writes up to its own: it cannot be read, and the log ends before.
  package private(set) var provenByName: LogSequenceNumber?
  /// Whether a segment may have writes to the second root.
  private(set) var hasSecondRoot = false
  /// Where the log of the directory begins, or should begin.
  var start = LogSequenceNumber(1)

  let log: LogSalvage
  /// What notes the bytes that cannot be read.
  private let readableFiles: ReadableFileSystem
  let progress: (@Sendable (RecoveryProgress) -> Void)?

  package var databaseID: DatabaseID? { log.databaseID }

  /// The last write whose durability the files prove: by a later record, a later segment or a checkpoint. What came behind
  /// it may have been cut off without a trace.
  package var provenUpTo: LogSequenceNumber { min(log.durableUpTo, end) }

  /// Reads the whole directory.
  ///
  /// - Throws: `.notFound` if there is no database; `.io`; `.unsupportedVersion`.
  /// - Complexity: O(bytes of the directory); the memory of one checkpoint's tree, and of those of each damaged one.
  package init(
    _ directory: DatabaseDirectory, progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(StorageError) {
    self.progress = progress
    let contents = try directory.contents()
    guard !contents.isEmpty else { throw .notFound(path: directory.path) }
    mendings = try directory.mendings()
    let (directory, readableFiles) = try directory.mended(by: mendings).readable()
    self.directory = directory
    self.readableFiles = readableFiles
    var files: [CheckpointFile] = []
    for lsn in contents.checkpoints { files.append(try CheckpointFile(directory, lsn)) }
    log = try LogSalvage(
      directory, checkpoints: files.map { ($0.header?.lsn ?? $0.lsn, header: $0.header) })
    var links = LogLinks(contents.checkpoints)
    try readLog(&links)
    for file in files {
      checkpoints.append(try file.judged(in: log.databaseID, links, progress: progress))
    }
    // The log leads on from each checkpoint.
    if missingEnd == nil, lastOfLog < log.provenDurable { missingEnd = log.provenDurable.next }
    // The parity of the last segment knows how long that was.
    if missingEnd == nil, let last = contents.segments.last,
      mendings.contains(where: { $0.path == directory.path(of: last) && $0.lostEnd != nil })
    {
      missingEnd = lastOfLog.next
    }
    problems += readableFiles.problems
    for problem in try directory.missingFileProblems()
    where !problems.contains(where: { $0.isAt(problem) }) {
      problems.append(problem)
    }
    if let last = files.last, last.header == nil, last.lsn > end, last.lsn == log.durableUpTo {
      provenByName = last.lsn
    }
    end = max(end, log.durableUpTo)
    // Opening keeps the log back to the older of the last two checkpoints.
    let older = contents.checkpoints.dropLast().last
    let first = contents.segments.first?.firstLSN ?? end.next
    start = min(first, older?.next ?? contents.checkpoints.last?.next ?? LogSequenceNumber(1))
  }

  /// The last write that the log has, or the one before its last segment.
  private var lastOfLog: LogSequenceNumber {
    log.segments.last.map { $0.header.firstLSN.previous }.map { max($0, end) } ?? .zero
  }

  private mutating func readLog(_ links: inout LogLinks) throws(StorageError) {
    var problems: [LogCursor.Problem] = []
    var readable: [ClosedRange<UInt64>] = []
    var end = LogSequenceNumber.zero
    var found = links
    var hasSecondRoot = false
    let missing = try read { (item) throws(StorageError) in
      switch item {
      case .segment(let segment):
        end = max(end, segment.header.firstLSN.previous)
        if segment.isTimeGuessed {
          found.beginSegment()
        } else {
          found.note(segment.header)
        }
        if segment.header.format.hasSecondRoot { hasSecondRoot = true }
      case .problem(let problem): problems.append(problem)
      case .link(let checksum, let lsn): found.note(checksum, after: lsn)
      case .record(let record, let path, let payload):
        end = max(end, record.lastLSN, record.durableUpTo)
        found.note(record)
        guard let payload else { return }
        if let problem = RecordWrites.problem(record, payload) {
          return problems.append(
            LogCursor.Problem(
              path: path, offset: record.offset, expected: "writes", found: problem))
        }
        let (first, last) = (record.firstLSN.rawValue, record.lastLSN.rawValue)
        if let before = readable.last, before.upperBound + 1 == first {
          readable[readable.count - 1] = before.lowerBound...last
        } else {
          readable.append(first...last)
        }
      }
    }
    links = found
    self.problems = problems
    self.readable = readable
    self.end = end
    self.hasSecondRoot = hasSecondRoot
    missingEnd = missing
  }

  /// Reads the log, with progress.
  func read(_ visit: (LogSalvage.Item) throws(StorageError) -> Void) throws(StorageError)
    -> LogSequenceNumber?
  {
    let progress = self.progress
    let total = log.segments.reduce(0) { $0 + $1.byteCount }
    var before: UInt64 = 0
    var reported: UInt64 = 0
    var last: UInt64 = 0
    return try log.read { (item) throws(StorageError) in
      if case .segment = item { before += last }
      if case .record(let record, _, _) = item, let progress {
        last = record.endOffset
        if before + last >= reported + 1 << 20 {
          reported = before + last
          progress(
            RecoveryProgress(
              phase: .log, completedByteCount: min(reported, total), totalByteCount: total))
        }
      }
      try visit(item)
    }
  }
}
