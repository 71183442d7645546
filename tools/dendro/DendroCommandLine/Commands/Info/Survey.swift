import DendroEngine
import DendroStorage
import DendroTree

/// What a directory holds, file by file.
///
/// Of segments in front of the last one and of checkpoints only headers are read, unless all is asked for.
struct Survey {
  struct Segment {
    var name: SegmentName
    var byteCount: UInt64 = 0
    var writeCount: UInt64 = 0
    var lastLSN = LogSequenceNumber.zero
    /// Nil if the records were not read.
    var records: Records?
  }

  /// What the records of a segment say.
  struct Records {
    var count = 0
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

  var isEmpty: Bool { contents.isEmpty }
  var isDamaged: Bool {
    refusal != nil || checkpoints.contains { $0.problem != nil }
      || isLogDamaged
  }
  /// Whether writes behind damage of the log may be missing in all that is said here.
  var isLogDamaged: Bool { problems.contains { !$0.isTail } }
  var lastLSN: LogSequenceNumber {
    report?.lastLSN ?? segments.map(\.lastLSN).max() ?? .zero
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
    let checkpoint = checkpoints.last { $0.problem == nil }
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
    try readCheckpoints(directory)
    guard isFull else {
      try readHeaders(directory)
      history = headerHistory
      return
    }
    try readLog(directory)
    problems += try directory.missingFileProblems()
    do throws(EngineError) {
      let engine = try Engine.open(at: directory.path, mode: .readOnly)
      report = engine.report
      root = try engine.wholeHead().root
      leafCount = root?.leafCount()
      history = try engine.historyRange()
      databaseID = databaseID ?? engine.databaseID
      try engine.close()
    } catch {
      refusal = "\(error)"
    }
  }

  /// Reads the headers of the segments, and of the records of the last one.
  private mutating func readHeaders(_ directory: DatabaseDirectory) throws {
    for (index, name) in contents.segments.enumerated() {
      var segment = Segment(name: name)
      let next = index + 1 < contents.segments.count ? contents.segments[index + 1] : nil
      do throws(StorageError) {
        segment.byteCount = try directory.byteCount(of: name)
        if let next {
          let header = try SegmentHeader.read(name, in: directory)
          databaseID = databaseID ?? header.databaseID
          note(header.format)
          firstTime = firstTime ?? header.baseTime
          segment.lastLSN = LogSequenceNumber(max(next.firstLSN.rawValue, 1) - 1)
          segment.writeCount = next.firstLSN.rawValue - name.firstLSN.rawValue
        } else {
          let outline = try SegmentOutline(name, in: directory)
          databaseID = databaseID ?? outline.header.databaseID
          note(outline.header.format)
          firstTime = firstTime ?? outline.firstTime
          lastTime = outline.lastTime ?? outline.header.baseTime
          durableUpTo = outline.durableUpTo
          segment.lastLSN = outline.lastLSN
          segment.writeCount = UInt64(outline.writeCount)
          segment.records = Records(
            count: outline.recordCount, byteCount: outline.recordByteCount,
            rawByteCount: outline.rawByteCount, isSealed: outline.isSealed)
          if outline.problem != nil || outline.isSealed {
            try readRecords(of: name, directory, &segment)
          }
        }
      } catch {
        guard case .corrupt(let path, let offset, let expected, let found) = error else {
          throw error
        }
        problems.append(
          LogCursor.Problem(path: path, offset: offset, expected: expected, found: found))
      }
      segments.append(segment)
    }
    durableUpTo = max(durableUpTo, contents.checkpoints.last ?? .zero)
  }

  /// Reads the last segment again, with a cursor: it knows what may stand behind a seal or a torn record, and continues
  /// behind damage, where the outline ends.
  private mutating func readRecords(
    of name: SegmentName, _ directory: DatabaseDirectory, _ segment: inout Segment
  ) throws(StorageError) {
    let log = try LogReading(LogCursor(directory, after: name.firstLSN.previous))
    problems += log.problems
    guard let read = log.segments.last(where: { $0.name == name }) else { return }
    segment = read
    durableUpTo = max(durableUpTo, log.durableUpTo)
    lastTime = log.lastTime ?? lastTime
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
        databaseID = databaseID ?? reader.databaseID
        if isFull { try CheckpointCoding.checkChunks(reader) { _ in } }
      } catch {
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
    segments = log.segments
    for format in log.formats { note(format) }
    problems = log.problems
    durableUpTo = log.durableUpTo
    firstTime = log.firstTime
    lastTime = log.lastTime
    databaseID = databaseID ?? log.databaseID
  }
}
