import DendroStorage

/// The checksums by which the log confirms or denies its checkpoints.
struct LogLinks {
  private let checkpoints: Set<LogSequenceNumber>
  private var segments: [LogSequenceNumber: UInt32] = [:]
  private var records: [LogSequenceNumber: [UInt32]] = [:]
  /// Checkpoints behind which the log goes on in the same segment.
  private var isContinued: Set<LogSequenceNumber> = []
  private var last: LogSequenceNumber?

  init(_ checkpoints: [LogSequenceNumber]) { self.checkpoints = Set(checkpoints) }

  mutating func note(_ header: SegmentHeader) {
    segments[header.firstLSN.previous] = header.previousChecksum
    beginSegment()
  }

  /// Notes that a segment begins whose header is not known.
  mutating func beginSegment() { last = nil }

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
  func deny(_ header: CheckpointHeader) -> Bool {
    if let found = segments[header.lsn] { return found != header.logChecksum }
    guard let found = records[header.lsn], isContinued.contains(header.lsn) else { return false }
    return !found.contains(header.logChecksum)
  }
}
