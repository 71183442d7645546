import DendroEngine
import DendroStorage
import DendroTree

/// What a directory holds, file by file.
struct Survey {
  struct Segment {
    var name: SegmentName
    var byteCount: UInt64 = 0
    var recordCount = 0
    var writeCount = 0
    /// Bytes of records with writes, headers included, and of their payloads before compression.
    var recordByteCount: UInt64 = 0
    var rawByteCount: UInt64 = 0
    var lastLSN = LogSequenceNumber.zero
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
  private(set) var segments: [Segment] = []
  private(set) var checkpoints: [Checkpoint] = []
  let contents: DatabaseDirectory.Contents
  private(set) var databaseID: DatabaseID?
  private(set) var durableUpTo = LogSequenceNumber.zero
  private(set) var firstTime: Int64?
  private(set) var lastTime: Int64?
  private(set) var problems: [LogCursor.Problem] = []
  /// Of opening: nil where it is refused.
  private(set) var report: RecoveryReport?
  private(set) var refusal: String?
  private(set) var leafCount: Int?
  /// Which earlier states can be read.
  private(set) var history: HistoryRange?

  var isEmpty: Bool { contents.isEmpty }
  var isDamaged: Bool {
    refusal != nil || checkpoints.contains { $0.problem != nil }
      || problems.contains { !$0.isTail }
  }
  var lastLSN: LogSequenceNumber {
    report?.lastLSN ?? segments.map(\.lastLSN).max() ?? .zero
  }
  var totalByteCount: UInt64 {
    segments.reduce(0) { $0 + $1.byteCount } + checkpoints.reduce(0) { $0 + $1.byteCount }
  }
  var rawByteCount: UInt64 { segments.reduce(0) { $0 + $1.rawByteCount } }
  var recordByteCount: UInt64 { segments.reduce(0) { $0 + $1.recordByteCount } }
  var writeCount: Int { segments.reduce(0) { $0 + $1.writeCount } }
  /// Bytes of encoded writes to one byte of log; nil without writes.
  var compressionRatio: Double? {
    recordByteCount > 0 ? Double(rawByteCount) / Double(recordByteCount) : nil
  }

  init(_ directory: DatabaseDirectory) throws {
    path = directory.path
    contents = try directory.contents()
    guard !contents.isEmpty else { return }
    try readCheckpoints(directory)
    try readLog(directory)
    do throws(EngineError) {
      let engine = try Engine.open(at: directory.path, mode: .readOnly)
      report = engine.report
      leafCount = engine.head.root.leafCount()
      history = try engine.historyRange()
      databaseID = databaseID ?? engine.databaseID
      try engine.close()
    } catch {
      refusal = "\(error)"
    }
  }

  private mutating func readCheckpoints(_ directory: DatabaseDirectory) throws {
    for lsn in contents.checkpoints {
      var checkpoint = Checkpoint(lsn: lsn)
      do throws(StorageError) {
        checkpoint.byteCount = try directory.byteCount(ofCheckpoint: lsn)
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        checkpoint.time = reader.time
        checkpoint.leafCount = reader.leafCount
        checkpoint.rawByteCount = reader.rawByteCount
        checkpoint.contentHash = reader.contentHash
        checkpoint.chunkCount = reader.chunkCount
        databaseID = databaseID ?? reader.databaseID
      } catch {
        checkpoint.problem = "\(error)"
      }
      checkpoints.append(checkpoint)
    }
  }

  private mutating func readLog(_ directory: DatabaseDirectory) throws {
    let cursor = LogCursor(directory)
    var segments: [Segment] = []
    var problems: [LogCursor.Problem] = []
    var durable = LogSequenceNumber.zero
    var times: (first: Int64?, last: Int64?) = (nil, nil)
    var id: DatabaseID?
    while try cursor.step({ item in
      switch item {
      case .segment(let header, _, let byteCount):
        id = id ?? header.databaseID
        var segment = Segment(name: SegmentName(firstLSN: header.firstLSN))
        segment.byteCount = byteCount
        segment.lastLSN = LogSequenceNumber(header.firstLSN.rawValue - 1)
        segments.append(segment)
      case .problem(let problem): problems.append(problem)
      case .record(let record, _, _):
        guard !segments.isEmpty else { return }
        let place = segments.count - 1
        segments[place].recordCount += 1
        segments[place].writeCount += record.count
        segments[place].lastLSN = max(segments[place].lastLSN, record.lastLSN)
        durable = max(durable, record.durableUpTo)
        switch record.kind {
        case .seal: segments[place].isSealed = true
        case .idle: break
        case .writes:
          segments[place].recordByteCount += record.endOffset - record.offset
          segments[place].rawByteCount += UInt64(record.header.rawByteCount)
          times.first = times.first ?? record.baseTime
          times.last = record.baseTime
        }
      }
    }) {}
    self.segments = segments
    self.problems = problems
    durableUpTo = durable
    firstTime = times.first
    lastTime = times.last
    databaseID = databaseID ?? id
  }
}
