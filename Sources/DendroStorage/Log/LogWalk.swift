/// One run of `LogReader` through the log: its position, and what it has found so far.
struct LogWalk {
  let directory: DatabaseDirectory
  var segments: [SegmentName]
  let checkpoint: LogSequenceNumber
  let logChecksum: UInt32?
  let provenDurable: LogSequenceNumber
  let databaseID: DatabaseID?
  let parallel: ParallelReading?

  private(set) var lastLSN = LogSequenceNumber.zero
  private(set) var checksum: UInt32 = 0
  private var lastOffset: UInt64 = 0
  private(set) var offset: UInt64 = 0
  private var lastTime: Int64?
  private var passedOverTime: Int64?
  private(set) var durableUpTo = LogSequenceNumber.zero
  private var lastBaseTime: Int64 = 0
  private var endsWithIdleRecord = false
  private var sizes: [(name: SegmentName, byteCount: UInt64)] = []
  private var unsealed: UnsealedSegment?
  /// A part of this segment, behind `offset`.
  private var ahead: ReadAhead?

  init(
    directory: DatabaseDirectory, segments: [SegmentName], checkpoint: LogSequenceNumber,
    logChecksum: UInt32?, provenDurable: LogSequenceNumber, databaseID: DatabaseID?,
    parallel: ParallelReading? = nil
  ) {
    self.directory = directory
    self.segments = segments
    self.checkpoint = checkpoint
    self.logChecksum = logChecksum
    self.provenDurable = provenDurable
    self.databaseID = databaseID
    self.parallel = parallel
  }

  mutating func run(_ visit: LogReader.Visitor) throws(StorageError) -> LogEnd? {
    if segments.isEmpty && provenDurable == .zero { return nil }
    guard let start = segments.lastIndex(where: { $0.firstLSN <= checkpoint.next }) else {
      throw LogReader.missingBeginning(directory, segments, after: checkpoint)
    }
    var index = start
    var segment = try SegmentReader(segments[start], in: directory)
    if let databaseID { try check(segment, isOf: databaseID) }
    if segment.header.firstLSN == checkpoint.next {
      try checkLog(segment.header.previousChecksum, in: segment.name)
    }
    lastLSN = LogSequenceNumber(segment.header.firstLSN.rawValue - 1)
    durableUpTo = max(lastLSN, provenDurable)
    while true {
      let next = try successor(of: segment, at: index)
      begin(segment)
      switch try read(segment, next, visit) {
      case .next:
        sizes.append((segment.name, segment.byteCount))
        if let next {
          segment = next
          index += 1
        } else {
          (segment, index) = try rolledSuccessor(of: segment)
        }
      case .end(let torn):
        sizes.append((segment.name, segment.byteCount))
        return end(segment, torn)
      }
    }
  }

  private func successor(of segment: SegmentReader, at index: Int) throws(StorageError)
    -> SegmentReader?
  {
    guard index + 1 < segments.count else { return nil }
    let next = try SegmentReader(segments[index + 1], in: directory)
    try check(next, isOf: segment.header.databaseID)
    return next
  }

  private mutating func begin(_ segment: SegmentReader) {
    // All records before a segment were synchronized before it was made.
    durableUpTo = max(durableUpTo, lastLSN)
    checksum = segment.header.checksum
    offset = UInt64(SegmentHeader.byteCount)
    lastOffset = offset
    endsWithIdleRecord = false
    lastBaseTime = segment.header.baseTime
  }

  /// The segment that a live writer has begun since the directory was listed.
  private mutating func rolledSuccessor(of segment: SegmentReader) throws(StorageError)
    -> (SegmentReader, Int)
  {
    segments = try directory.contents().segments
    guard let index = segments.firstIndex(of: segment.name),
      let next = try successor(of: segment, at: index), confirms(next)
    else { throw missingSuccessor(segment) }
    return (next, index + 1)
  }

  private func end(_ segment: SegmentReader, _ torn: TornTail?) -> LogEnd {
    LogEnd(
      databaseID: segment.header.databaseID, segments: sizes, segment: segment.name,
      segmentHeader: segment.header, lastOffset: lastOffset, offset: offset, checksum: checksum,
      lastLSN: lastLSN, lastTime: lastTime, passedOverTime: passedOverTime,
      durableUpTo: min(durableUpTo, lastLSN),
      endsWithIdleRecord: endsWithIdleRecord, torn: directory.mode.isReadOnly ? nil : torn,
      unfinished: directory.mode.isReadOnly ? torn : nil, unsealed: unsealed)
  }

  private enum SegmentEnd {
    case next
    case end(TornTail?)
  }

  /// Reads a segment's records up to the first that is bad or does not follow, and decides what that means.
  private mutating func read(
    _ segment: SegmentReader, _ next: SegmentReader?, _ visit: LogReader.Visitor
  ) throws(StorageError) -> SegmentEnd {
    // If that is not possible, all of the segment is read here.
    ahead = parallel.flatMap {
      try? ReadAhead.begin(behind: offset, of: segment, in: directory, $0)
    }
    defer { leaveAhead() }
    var lastJudgement: Judgement?
    while true {
      var stop = try takeRecords(of: segment, before: next, visit)
      let search = try search(behind: &stop, in: segment, before: next)
      let provenLSN = max(durableUpTo, search?.durableUpTo ?? .zero)
      let tail = LogTail(
        remainder: stop.remainder,
        successor: next.map { confirms($0) ? .confirms : .denies } ?? .none,
        isNextProvenDurable: provenLSN > lastLSN)
      if directory.mode.isReadOnly, next == nil {
        if stop.remainder == .seal { return .next }
        let judgement = Judgement(offset: offset, isProven: tail.isNextProvenDurable)
        if stop.remainder != .nothing, judgement.isNew(after: lastJudgement) {
          lastJudgement = judgement
          try segment.refresh()
          continue
        }
      }
      switch tail.row.decision {
      case .next, .nextBehindDamage:
        if stop.remainder != .seal, let next { noteUnsealed(segment, next) }
        return .next
      case .end:
        return .end(nil)
      case .torn:
        return .end(tornTail(stop, search, in: segment))
      case .corrupt:
        throw corruption(tail, in: segment, before: next, stop.fault)
      }
    }
  }

  private mutating func takeRecords(
    of segment: SegmentReader, before next: SegmentReader?, _ visit: LogReader.Visitor
  ) throws(StorageError) -> Stop {
    while true {
      let end = ahead?.first.offset ?? .max
      while offset < end,
        let (record, payload) = try segment.chainedRecord(at: offset, after: lastLSN, checksum)
      {
        try take(record, payload, visit)
      }
      if offset >= end, let ahead { try takePart(ahead, visit) }
      if let stop = try takeRecord(of: segment, before: next, visit) { return stop }
    }
  }

  /// Takes the part that was read ahead, if its first record follows the one taken last.
  private mutating func takePart(
    _ part: ReadAhead, _ visit: LogReader.Visitor
  ) throws(StorageError) {
    leaveAhead()
    guard let last = part.last, part.first.offset == offset, linkFault(part.first) == nil,
      lastLSN >= checkpoint
    else { return }
    for (record, payload) in part.wanted {
      let result = payload.withUnsafeBytes { bytes in
        Result { () throws(StorageError) in try visit(record, bytes) }
      }
      try result.get()
    }
    durableUpTo = max(durableUpTo, part.durableUpTo)
    if let time = part.lastTime { passedOverTime = max(passedOverTime ?? .min, time) }
    note(last)
  }

  /// Ends the reading ahead, which must not outlive the walk.
  private mutating func leaveAhead() {
    ahead?.wait()
    ahead = nil
  }

  /// Takes the record at `offset`.
  ///
  /// - Returns: nil if it was taken; else why the records end here.
  private mutating func takeRecord(
    of segment: SegmentReader, before next: SegmentReader?, _ visit: LogReader.Visitor
  ) throws(StorageError) -> Stop? {
    guard offset < segment.byteCount else {
      return Stop(remainder: .nothing, searchStart: offset + 1)
    }
    let record: RecordInfo
    switch try segment.record(at: offset) {
    case .invalid(let wrong):
      return Stop(
        remainder: .damaged, fault: Fault(expected: wrong.expected, found: wrong.description),
        searchStart: offset)
    case .record(let found):
      record = found
    }
    if let wrong = linkFault(record) {
      return Stop(remainder: .detached, fault: wrong, searchStart: offset + 1)
    }
    switch try segment.payload(of: record) {
    case .failure(let wrong):
      return Stop(
        remainder: .damaged,
        fault: Fault(expected: wrong.expected, found: wrong.found, isWhole: wrong.isWhole),
        searchStart: record.offset + UInt64(record.headerByteCount))
    case .success(let payload):
      guard record.kind == .seal else {
        try take(record, payload, visit)
        return nil
      }
      let remainder = sealRemainder(payload, next)
      guard remainder == .detached else {
        return Stop(remainder: remainder, searchStart: offset + 1)
      }
      return Stop(
        remainder: .detached,
        fault: Fault(
          expected: "a seal that names \(next?.name.fileName ?? "")", found: "another"),
        searchStart: offset + 1)
    }
  }

  private mutating func take(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, _ visit: LogReader.Visitor
  ) throws(StorageError) {
    if record.kind == .writes, record.firstLSN <= checkpoint, record.lastLSN >= checkpoint {
      try checkLog(record.checksum, in: record.segment)
    }
    if record.lastLSN > checkpoint, record.kind == .writes { try visit(record, payload) }
    note(record)
  }

  /// Puts the position behind a record.
  private mutating func note(_ record: RecordInfo) {
    lastLSN = record.lastLSN
    checksum = record.checksum
    lastOffset = record.offset
    offset = record.endOffset
    durableUpTo = max(durableUpTo, record.durableUpTo)
    lastBaseTime = record.baseTime
    if record.kind == .writes { lastTime = record.baseTime }
    endsWithIdleRecord = record.kind == .idle && record.durableUpTo == lastLSN
  }

  /// Notes that a segment lacks its seal. Only the last but one can: older ones were sealed by recovery.
  private mutating func noteUnsealed(_ segment: SegmentReader, _ next: SegmentReader) {
    unsealed = UnsealedSegment(
      segment: segment.name, header: segment.header, offset: offset, checksum: checksum,
      lastLSN: lastLSN, baseTime: lastBaseTime, successorChecksum: next.header.checksum)
  }
}
