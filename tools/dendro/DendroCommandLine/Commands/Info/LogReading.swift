import DendroEngine
import DendroStorage

extension Survey {
  /// What a cursor finds up to the end of the log, behind damage too.
  struct LogReading {
    private(set) var segments: [Segment] = []
    private(set) var problems: [LogCursor.Problem] = []
    private(set) var durableUpTo = LogSequenceNumber.zero
    private(set) var firstTime: Int64?
    private(set) var lastTime: Int64?
    private(set) var formats: [FileFormat] = []

    init(_ cursor: LogCursor) throws(StorageError) {
      while try cursor.step({ add($0) }) {}
    }

    private mutating func add(_ item: LogCursor.Item) {
      switch item {
      case .segment(let header, _, let byteCount):
        formats.append(header.format)
        var segment = Segment(name: SegmentName(firstLSN: header.firstLSN))
        segment.byteCount = byteCount
        segment.records = Records()
        segment.lastLSN = header.firstLSN.previous
        // All records before a segment were synchronized before it was made.
        durableUpTo = max(durableUpTo, segment.lastLSN)
        segments.append(segment)
      case .problem(let problem):
        problems.append(problem)
        durableUpTo = max(durableUpTo, problem.displacedUpTo ?? .zero)
      case .record(let record, _, let payload):
        // The unfinished end was told as a problem.
        guard !segments.isEmpty, payload != nil || problems.last?.isTail != true else { return }
        let place = segments.count - 1
        segments[place].records?.count += 1
        guard payload != nil else {
          segments[place].records?.unreadableCount += 1
          return
        }
        segments[place].writeCount += UInt64(record.count)
        segments[place].lastLSN = max(segments[place].lastLSN, record.lastLSN)
        durableUpTo = max(durableUpTo, record.durableUpTo)
        switch record.kind {
        case .seal: segments[place].records?.isSealed = true
        case .idle: break
        case .writes:
          segments[place].records?.byteCount += record.endOffset - record.offset
          segments[place].records?.rawByteCount += UInt64(record.header.rawByteCount)
          firstTime = firstTime ?? record.baseTime
          lastTime = record.baseTime
        }
      }
    }
  }
}
