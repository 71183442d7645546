package import DendroStorage
import DendroTree

/// What can be read of a damaged directory: which writes, which checkpoints, and which states they prove.
///
/// A state is proven if a checkpoint holds it, or if every write between it and such a checkpoint, or the
/// beginning, can be read. Writes behind unreadable ones are kept too, but the state that they give never was:
/// see ``Salvage/Plan``. Nothing in the directory is changed.
package struct Salvage: Sendable {
  package struct Checkpoint: Sendable {
    package var lsn: LogSequenceNumber
    /// Why it is not used; nil if it is good.
    package var problem: String?
  }

  package let directory: DatabaseDirectory
  /// Ascending.
  package private(set) var checkpoints: [Checkpoint] = []
  /// Of the log, in its order; the remains of a crash are marked.
  package private(set) var problems: [LogCursor.Problem] = []
  /// The writes of the log that can be read: ascending, with gaps between the ranges.
  package private(set) var readable: [ClosedRange<UInt64>] = []
  /// The last write that is known to have been there.
  package private(set) var end = LogSequenceNumber.zero
  /// The first write of a segment that is missing at the end: how many writes it had is not known.
  package private(set) var missingEnd: LogSequenceNumber?
  /// Whether a segment may have writes to the second root.
  private(set) var hasSecondRoot = false
  /// Where the log of the directory begins, or should begin.
  var start = LogSequenceNumber(1)

  let log: LogSalvage
  let progress: (@Sendable (RecoveryProgress) -> Void)?

  package var databaseID: DatabaseID? { log.databaseID }

  /// Reads the whole directory.
  ///
  /// - Throws: `.notFound` if there is no database; `.io`; `.unsupportedVersion`.
  /// - Complexity: O(bytes of the directory); the memory of one checkpoint's tree.
  package init(
    _ directory: DatabaseDirectory, progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(StorageError) {
    self.directory = directory
    self.progress = progress
    let contents = try directory.contents()
    guard !contents.isEmpty else { throw .notFound(path: directory.path) }
    var readers: [LogSequenceNumber: CheckpointReader] = [:]
    var headerProblems: [LogSequenceNumber: String] = [:]
    for lsn in contents.checkpoints {
      do throws(StorageError) {
        readers[lsn] = try CheckpointReader.open(directory, lsn: lsn)
      } catch {
        guard error.isCorrupt else { throw error }
        headerProblems[lsn] = error.description
      }
    }
    log = try LogSalvage(
      directory, others: contents.checkpoints.compactMap { readers[$0]?.databaseID })
    var links = Links(contents.checkpoints)
    try readLog(&links)
    for lsn in contents.checkpoints {
      var problem = headerProblems[lsn]
      if let reader = readers[lsn] { problem = try self.problem(of: reader, links) }
      checkpoints.append(Checkpoint(lsn: lsn, problem: problem))
    }
    end = max(end, contents.checkpoints.last ?? .zero)
    // Opening keeps the log back to the older of the last two checkpoints.
    let older = contents.checkpoints.dropLast().last
    let first = contents.segments.first?.firstLSN ?? end.next
    start = min(first, older?.next ?? contents.checkpoints.last?.next ?? LogSequenceNumber(1))
  }

  private mutating func readLog(_ links: inout Links) throws(StorageError) {
    var problems: [LogCursor.Problem] = []
    var readable: [ClosedRange<UInt64>] = []
    var end = LogSequenceNumber.zero
    var found = links
    var hasSecondRoot = false
    let missing = try read { (item) throws(StorageError) in
      switch item {
      case .segment(let segment):
        end = max(end, segment.header.firstLSN.previous)
        found.note(segment.header)
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

  /// Why a checkpoint is not used; nil if it is good.
  private func problem(of reader: CheckpointReader, _ links: Links) throws(StorageError) -> String?
  {
    if reader.databaseID != log.databaseID {
      return "\(reader.path) is of the database \(reader.databaseID)"
    }
    guard reader.lsn.rawValue < 1 << 63 else {
      return "\(reader.path) has the number of a write over the limit"
    }
    if links.deny(reader) { return "\(reader.path) is the checkpoint of another log" }
    do throws(StorageError) {
      // The hash of the second root was compared when it was read.
      let roots = try CheckpointCoding.roots(reader, progress: progress)
      guard CheckpointCoding.contentHash(of: roots.data) == reader.contentHash else {
        return "\(reader.path) holds a tree with another hash than it says"
      }
      return nil
    } catch {
      guard error.isCorrupt else { throw error }
      return error.description
    }
  }
}

extension Salvage {
  /// The checksums by which the log confirms or denies its checkpoints.
  fileprivate struct Links {
    private let checkpoints: Set<LogSequenceNumber>
    private var segments: [LogSequenceNumber: UInt32] = [:]
    private var records: [LogSequenceNumber: [UInt32]] = [:]
    /// Checkpoints behind which the log goes on in the same segment.
    private var isContinued: Set<LogSequenceNumber> = []
    private var last: LogSequenceNumber?

    init(_ checkpoints: [LogSequenceNumber]) { self.checkpoints = Set(checkpoints) }

    mutating func note(_ header: SegmentHeader) {
      segments[header.firstLSN.previous] = header.previousChecksum
      last = nil
    }

    mutating func note(_ record: RecordInfo) {
      if let last, record.firstLSN == last.next { isContinued.insert(last) }
      for lsn in checkpoints where record.firstLSN <= lsn && lsn <= record.lastLSN {
        records[lsn, default: []].append(record.checksum)
        if lsn < record.lastLSN { isContinued.insert(lsn) }
      }
      last = record.lastLSN
    }

    mutating func note(_ checksum: UInt32, after lsn: LogSequenceNumber) {
      guard checkpoints.contains(lsn) else { return }
      records[lsn, default: []].append(checksum)
    }

    /// Whether the log says that the checkpoint was taken of another one. The segment behind it says so if
    /// there is one; otherwise its last record, which is certain only if the log goes on behind that.
    func deny(_ reader: CheckpointReader) -> Bool {
      let checksum = reader.header.logChecksum
      if let found = segments[reader.lsn] { return found != checksum }
      guard let found = records[reader.lsn], isContinued.contains(reader.lsn) else { return false }
      return !found.contains(checksum)
    }
  }
}

extension StorageError {
  fileprivate var isCorrupt: Bool {
    switch self {
    case .corrupt, .limit: true
    default: false
    }
  }
}
