import DendroEngine
import DendroStorage
import DendroTree

/// What a directory holds, file by file.
///
/// Of segments in front of the last one and of checkpoints only headers are read, unless all is asked for. The names of
/// the files then say how many writes they have.
struct Survey {
  struct Segment {
    var name: SegmentName
    var byteCount: UInt64 = 0
    var writeCount: UInt64 = 0
    var lastLSN = LogSequenceNumber.zero
    /// Nil if the records were not read.
    var records: Records?
    /// Whether it is one of the database's, as far as its header says.
    var isGood = true
  }

  /// What the records of a segment say.
  struct Records {
    var count = 0
    /// Those whose writes cannot be read; no number of writes includes them.
    var unreadableCount = 0
    /// Bytes of records with writes, headers included, and of their payloads before compression.
    var byteCount: UInt64 = 0
    var rawByteCount: UInt64 = 0
    var isSealed = false
  }

  struct Checkpoint {
    var lsn: LogSequenceNumber
    var byteCount: UInt64 = 0
    var time: Int64?
    var leafCount: UInt64?
    var rawByteCount: UInt64?
    var contentHash: UInt64?
    var chunkCount: Int?
    var problem: String?
  }

  let path: String
  /// Whether every record and every part of a checkpoint was read.
  let isFull: Bool
  private(set) var segments: [Segment] = []
  private(set) var checkpoints: [Checkpoint] = []
  let contents: DatabaseDirectory.Contents
  /// Bytes of parity.
  private(set) var parityByteCount: UInt64 = 0
  private(set) var databaseID: DatabaseID?
  private var formatVersionsFound: ClosedRange<UInt32>?
  /// Whether a file may have writes to the second root, or that root itself.
  private(set) var hasSecondRoot = false
  private(set) var durableUpTo = LogSequenceNumber.zero
  private(set) var firstTime: Int64?
  private(set) var lastTime: Int64?
  private(set) var problems: [LogCursor.Problem] = []
  /// Of opening: nil if it is refused.
  private(set) var report: RecoveryReport?
  private(set) var refusal: String?
  private(set) var leafCount: Int?
  /// The tree, if all was read.
  private(set) var root: Node?
  /// Nil if they are not asked for.
  var largest: LargestSubtrees?
  /// Which earlier states can be read.
  private(set) var history: HistoryBounds?
  /// What a directory that keeps in step with a server has about that, if all was read.
  private(set) var sync: SyncedData?
  /// The states that a damaged database proves, if all was read.
  private(set) var provenRanges: [ClosedRange<UInt64>]?

  var isEmpty: Bool { contents.isEmpty }
  var isDamaged: Bool {
    refusal != nil || checkpoints.contains { $0.problem != nil }
      || isLogDamaged
  }
  /// Whether writes behind damage of the log may be missing in all that is said here.
  var isLogDamaged: Bool { problems.contains { !$0.isTail } }
  var lastLSN: LogSequenceNumber {
    report?.lastLSN ?? max(segments.map(\.lastLSN).max() ?? .zero, lastCheckpointLSN)
  }
  /// Of the checkpoints that can be read.
  private var lastCheckpointLSN: LogSequenceNumber {
    checkpoints.last { $0.problem == nil }?.lsn ?? .zero
  }
  var totalByteCount: UInt64 {
    segments.reduce(0) { $0 + $1.byteCount } + checkpoints.reduce(0) { $0 + $1.byteCount }
  }
  /// Of the records that were read.
  var rawByteCount: UInt64 { segments.reduce(0) { $0 + ($1.records?.rawByteCount ?? 0) } }
  var recordByteCount: UInt64 { segments.reduce(0) { $0 + ($1.records?.byteCount ?? 0) } }
  var writeCount: UInt64 { segments.reduce(0) { $0 &+ $1.writeCount } }
  /// The oldest and the newest format of the files; the newest that is known if there are none.
  var formatVersions: ClosedRange<UInt32> {
    formatVersionsFound ?? FileFormat.newestVersion...FileFormat.newestVersion
  }

  /// Bytes of encoded writes to one byte of log; nil without writes.
  var compressionRatio: Double? {
    recordByteCount > 0 ? Double(rawByteCount) / Double(recordByteCount) : nil
  }

  /// What opening has to read: the newest checkpoint that can be read, and the log behind it.
  var opening: (checkpoint: Checkpoint?, logByteCount: UInt64, writeCount: UInt64) {
    let checkpoint =
      report.map { report in checkpoints.first { $0.lsn == report.checkpointLSN } }
      ?? checkpoints.last { $0.problem == nil }
    let start = checkpoint?.lsn ?? .zero
    let log = segments.filter { $0.lastLSN > start || $0.name == segments.last?.name }
    return (
      checkpoint, log.reduce(0) { $0 + $1.byteCount },
      lastLSN > start ? lastLSN.rawValue - start.rawValue : 0
    )
  }

  /// - Parameter isFull: whether every record is read, and the tree is built.
  init(_ directory: DatabaseDirectory, isFull: Bool) throws {
    path = directory.path
    self.isFull = isFull
    contents = try directory.contents()
    guard !contents.isEmpty else { return }
    for name in contents.parityFiles { parityByteCount += try directory.byteCount(ofFile: name) }
    databaseID = try directory.databaseID()
    try readCheckpoints(directory)
    defer { durableUpTo = max(durableUpTo, lastCheckpointLSN) }
    if isFull { try readLog(directory) } else { try readHeaders(directory) }
    problems += try directory.missingFileProblems()
    guard isFull else {
      refusal = gap
      if refusal == nil { history = headerHistory }
      return
    }
    do throws(EngineError) {
      let engine = try Engine.open(at: directory.path, mode: .readOnly)
      report = engine.report
      sync = SyncedData(of: engine)
      history = try engine.historyRange()
      // With damaged chunks the tree cannot be read as a whole; `checkpoints` has the reason.
      if !checkpoints.contains(where: { $0.lsn == report?.checkpointLSN && $0.problem != nil }) {
        root = try engine.wholeHead().root
        leafCount = root?.leafCount()
      }
      try engine.close()
    } catch {
      if case .storage(let reason) = error, reason.isOfProcess { throw error }
      refusal = "\(error)"
    }
    if isDamaged { provenRanges = try Salvage(directory).provenRanges }
  }

  /// Reads the headers of the segments, and all of the last one.
  private mutating func readHeaders(_ directory: DatabaseDirectory) throws {
    let names = contents.segments
    guard let last = names.last else { return }
    var firstLSNs: [LogSequenceNumber?] = []
    for name in names.dropLast() {
      let header = try header(of: name, directory)
      if let header {
        note(header.format)
        firstTime = firstTime ?? header.baseTime
      }
      firstLSNs.append(header?.firstLSN)
    }
    let log = try LogReading(LogCursor(directory, after: last.firstLSN.previous))
    let read = log.segments.last { $0.name == last }
    firstLSNs.append(read == nil ? nil : last.firstLSN)
    for (index, name) in names.dropLast().enumerated() {
      var segment = Segment(name: name, byteCount: try directory.byteCount(of: name))
      if firstLSNs[index] == nil {
        segment.isGood = false
      } else if let next = firstLSNs[index + 1] {
        segment.lastLSN = next.previous
        segment.writeCount = next.rawValue - name.firstLSN.rawValue
      } else {
        let outline = try SegmentOutline(name, in: directory)
        segment.lastLSN = outline.lastLSN
        segment.writeCount = UInt64(outline.writeCount)
        segment.records = Records(
          count: outline.recordCount, byteCount: outline.recordByteCount,
          rawByteCount: outline.rawByteCount, isSealed: outline.isSealed)
        durableUpTo = max(durableUpTo, outline.durableUpTo)
      }
      segments.append(segment)
    }
    segments.append(
      try read ?? Segment(name: last, byteCount: directory.byteCount(of: last), isGood: false))
    problems += log.problems
    durableUpTo = max(durableUpTo, log.durableUpTo)
    for format in log.formats { note(format) }
    firstTime = firstTime ?? log.firstTime
    lastTime = log.lastTime
  }

  /// The header of a segment; nil if it cannot be read, or is not that of this file in this database.
  private mutating func header(
    of name: SegmentName, _ directory: DatabaseDirectory
  ) throws -> SegmentHeader? {
    func problem(_ offset: UInt64, _ expected: String, _ found: String) -> LogCursor.Problem {
      LogCursor.Problem(
        path: directory.path + "/" + name.fileName, offset: offset, expected: expected,
        found: found)
    }
    do throws(StorageError) {
      let header = try SegmentHeader.read(name, in: directory)
      if let databaseID, header.databaseID != databaseID {
        problems.append(problem(16, "database \(databaseID)", "\(header.databaseID)"))
        return nil
      }
      guard header.firstLSN != name.firstLSN else { return header }
      problems.append(
        problem(40, "first LSN \(name.firstLSN), as its name says", "\(header.firstLSN)"))
    } catch {
      guard let problem = LogCursor.Problem(error) else { throw error }
      problems.append(problem)
    }
    return nil
  }

  /// Why no state can be read, as the names of the files say; nil if one can.
  private var gap: String? {
    let newest = lastCheckpointLSN
    guard let first = contents.segments.first?.firstLSN else {
      return newest == .zero ? "there is no log" : "there is no log behind write \(newest)"
    }
    if first <= newest.next { return nil }
    return "no checkpoint that can be read has writes 1 to \(first.previous), and the log begins "
      + "with write \(first)"
  }

  private var headerHistory: HistoryBounds? {
    guard let first = contents.segments.first?.firstLSN else { return nil }
    var range = HistoryBounds(
      oldest: lastLSN, oldestTime: lastTime, newest: lastLSN, newestTime: lastTime)
    if first == LogSequenceNumber(1) {
      (range.oldest, range.oldestTime) = (.zero, nil)
    } else if let base = checkpoints.first(where: { $0.problem == nil && first <= $0.lsn.next }) {
      (range.oldest, range.oldestTime) = (base.lsn, base.time)
    }
    return range
  }

  private mutating func readCheckpoints(_ directory: DatabaseDirectory) throws {
    for lsn in contents.checkpoints {
      var checkpoint = Checkpoint(lsn: lsn)
      do throws(StorageError) {
        checkpoint.byteCount = try directory.byteCount(ofCheckpoint: lsn)
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        checkpoint.time = reader.time
        note(reader.header.format)
        checkpoint.leafCount = reader.leafCount
        checkpoint.rawByteCount = reader.rawByteCount
        checkpoint.contentHash = reader.contentHash
        checkpoint.chunkCount = reader.chunkCount
        if isFull { try CheckpointCoding.checkChunks(reader) { _ in } }
      } catch {
        if error.isOfProcess { throw error }
        checkpoint.problem = "\(error)"
      }
      checkpoints.append(checkpoint)
    }
  }

  private mutating func note(_ format: FileFormat) {
    let versions = formatVersionsFound ?? format.version...format.version
    formatVersionsFound =
      min(versions.lowerBound, format.version)...max(versions.upperBound, format.version)
    hasSecondRoot = hasSecondRoot || format.hasSecondRoot
  }

  private mutating func readLog(_ directory: DatabaseDirectory) throws {
    let log = try LogReading(LogCursor(directory))
    // Those whose header is damaged are not among what was read.
    segments = try contents.segments.map { name in
      try log.segments.last { $0.name == name }
        ?? Segment(name: name, byteCount: directory.byteCount(of: name), isGood: false)
    }
    for format in log.formats { note(format) }
    problems = log.problems
    durableUpTo = log.durableUpTo
    firstTime = log.firstTime
    lastTime = log.lastTime
  }
}
