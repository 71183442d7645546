import DendroEngine
import DendroStorage
import DendroTree

/// Reads the whole log, checks every record, and replays it from its beginning or from the oldest checkpoint, if it
/// is to be replayed.
///
/// It runs beside the opening and the reading of the checkpoints: what the replayed tree has to be like is
/// compared when both are done.
struct LogVerification: ~Copyable {
  /// What was found, in the order of the log.
  enum Finding: Sendable {
    case damage(Verification.Damage)
    /// The hashes of the replayed trees at a checkpoint.
    case tree(LogSequenceNumber, hashes: TreeHashes)
  }

  struct Result: Sendable {
    var findings: [Finding] = []
    var tail: LogCursor.Problem?
    var segmentCount = 0
    var recordCount = 0
    var writeCount: UInt64 = 0
    var replayedCount: UInt64 = 0
    var byteCount: UInt64 = 0
    /// The last write of the replay; nil if there was none.
    var lastLSN: LogSequenceNumber?
    /// The hashes of the trees behind it; nil if the replay ended at damage.
    var hashes: TreeHashes?
    /// Whether the replay ended before the end of the log, at damage.
    var isBroken = false
  }

  private let directory: DatabaseDirectory
  /// The writes behind which the tree is hashed, ascending.
  private var waiting: ArraySlice<LogSequenceNumber>
  /// The last write that is replayed. Until that is known, the last one before the last segment: opening never
  /// ends before that one.
  private var end: LogSequenceNumber
  private var isEndKnown = false
  private let progress: VerificationProgress
  private(set) var result = Result()
  private var editor = TreeEditor(.empty, remembersPlace: true)
  private var systemEditor = TreeEditor(.empty, remembersPlace: false)
  private var reader = LogV1Reader()
  private let inputs: VerificationInputs
  private let replays: Bool

  init(
    _ directory: DatabaseDirectory, contents: DatabaseDirectory.Contents,
    inputs: VerificationInputs, progress: VerificationProgress, replays: Bool
  ) {
    self.directory = directory
    waiting = contents.checkpoints[...]
    end = LogSequenceNumber(max(1, contents.segments.last?.firstLSN.rawValue ?? 1) - 1)
    self.inputs = inputs
    self.progress = progress
    self.replays = replays
  }

  mutating func run() throws(StorageError) {
    let cursor = LogCursor(directory)
    var segmentByteCount: UInt64 = 0
    while !inputs.isCancelled,
      try cursor.step({ (item) throws(StorageError) in
        switch item {
        case .segment(let header, _, let byteCount):
          result.segmentCount += 1
          result.byteCount += byteCount
          segmentByteCount = byteCount
          if result.segmentCount == 1, replays { start(header.firstLSN) }
        case .problem(let problem):
          if problem.isTail {
            result.tail = problem
          } else {
            result.isBroken = true
            result.findings.append(.damage(.init(problem)))
          }
        case .record(let record, let path, let payload):
          result.recordCount += 1
          if let payload, record.kind == .writes {
            if replays {
              take(record, path, payload)
            } else {
              result.writeCount += UInt64(record.count)
            }
          }
          if result.recordCount % 256 == 0 {
            progress.update(
              logByteCount: result.byteCount - segmentByteCount + record.endOffset,
              writeCount: result.writeCount)
          }
        }
      })
    {}
    progress.update(logByteCount: result.byteCount, writeCount: result.writeCount)
    hashAtCheckpoints()
    guard !result.isBroken, let end = result.lastLSN else { return }
    if case .tree(end, let hashes)? = result.findings.last {
      result.hashes = hashes
    } else {
      result.hashes = hashes()
    }
  }

  private mutating func start(_ firstLSN: LogSequenceNumber) {
    if firstLSN == LogSequenceNumber(1) {
      result.lastLSN = .zero
    } else if let oldest = inputs.oldest(), oldest.lsn.next >= firstLSN {
      editor.replace(by: oldest.roots.data)
      systemEditor.replace(by: oldest.roots.system)
      result.lastLSN = oldest.lsn
      // That it is equal to itself is no finding. An older one is what a crash left of a cleanup: the log
      // that led on from it is gone.
      waiting = waiting.drop { $0 <= oldest.lsn }
    }
  }

  /// Checks a record's writes, and applies them if that is to be done.
  private mutating func take(
    _ record: RecordInfo, _ path: String, _ payload: UnsafeRawBufferPointer
  ) {
    if record.lastLSN > end, !isEndKnown, !result.isBroken, result.lastLSN != nil {
      end = inputs.headLSN() ?? .zero
      isEndKnown = true
    }
    guard !result.isBroken, let last = result.lastLSN, record.firstLSN == last.next,
      record.lastLSN <= end
    else { return decode(record, path, payload) }
    reader.restart(record, payload)
    do throws(CodingError) {
      for _ in 0..<record.count {
        editor.apply(try reader.next()) { _, _ in }
        if let change = reader.system { systemEditor.apply(change) { _, _ in } }
        result.lastLSN = reader.lsn
        result.writeCount += 1
        result.replayedCount += 1
        hashAtCheckpoints()
      }
      if !reader.isAtEnd {
        add(RecordWrites.bytesBehind(record), in: record, path)
      }
    } catch {
      add("expected \(error.expected), found \(error.found)", in: record, path)
    }
  }

  /// Checks a record of which some or all writes are not to be applied.
  private mutating func decode(
    _ record: RecordInfo, _ path: String, _ payload: UnsafeRawBufferPointer
  ) {
    let content = RecordWrites(record, payload)
    if let problem = content.problem { add(problem, in: record, path) }
    for logged in content.writes {
      result.writeCount += 1
      guard !result.isBroken, let last = result.lastLSN, logged.lsn > last, logged.lsn <= end
      else { continue }
      EncodedWrite(logged.write).withView { write in editor.apply(write) { _, _ in } }
      if let change = logged.system {
        EncodedWrite(change).withView { change in systemEditor.apply(change) { _, _ in } }
      }
      result.lastLSN = logged.lsn
      result.replayedCount += 1
      hashAtCheckpoints()
    }
  }

  private mutating func hashes() -> TreeHashes {
    editor.settle()
    return TreeHashes(
      data: CheckpointCoding.contentHash(of: editor.root), system: systemEditor.root)
  }

  private mutating func hashAtCheckpoints() {
    guard let lsn = result.lastLSN else { return }
    while let first = waiting.first, first <= lsn {
      waiting.removeFirst()
      guard first == lsn else { continue }
      result.findings.append(.tree(lsn, hashes: hashes()))
    }
  }

  private mutating func add(_ problem: String, in record: RecordInfo, _ path: String) {
    result.isBroken = true
    add("\(path), offset \(record.offset): \(problem)", path, record.offset)
  }

  private mutating func add(_ message: String, _ path: String, _ offset: UInt64) {
    result.findings.append(.damage(.init(message: message, file: path, offset: offset)))
  }
}
