/// One run of `LogReader` through the log: its position, and what it has found so far.
struct LogWalk {
  let directory: DatabaseDirectory
  var segments: [SegmentName]
  let checkpoint: LogSequenceNumber
  let logChecksum: UInt32?
  /// The last write that is known to have been durable without the log, by a checkpoint.
  let provenDurable: LogSequenceNumber
  let parallel: ParallelReading?

  /// In the present segment.
  private(set) var scan: SegmentScan
  private var index: Int
  private(set) var durableUpTo: LogSequenceNumber
  private var lastTime: Int64?
  private var passedOverTime: Int64?
  private var sizes: [(name: SegmentName, byteCount: UInt64)] = []
  private var unsealed: UnsealedSegment?
  /// A part of the present segment, behind the position.
  private var ahead: ReadAhead?

  /// Begins in the segment with the first write behind a checkpoint.
  ///
  /// - Throws: `.missing` if there is none; `.corrupt` if it is another log's; `.unsupportedVersion`; `.io`.
  init(
    directory: DatabaseDirectory, segments: [SegmentName], checkpoint: LogSequenceNumber,
    logChecksum: UInt32?, provenDurable: LogSequenceNumber, databaseID: DatabaseID?,
    parallel: ParallelReading?
  ) throws(StorageError) {
    guard let start = segments.lastIndex(where: { $0.firstLSN <= checkpoint.next }) else {
      throw LogReader.missingBeginning(directory, segments, after: checkpoint)
    }
    self.directory = directory
    self.segments = segments
    self.checkpoint = checkpoint
    self.logChecksum = logChecksum
    self.provenDurable = provenDurable
    self.parallel = parallel
    index = start
    let segment = try SegmentReader(segments[start], in: directory)
    if let databaseID { try Self.check(segment, isOf: databaseID) }
    scan = SegmentScan(segment)
    durableUpTo = max(scan.link.lsn, provenDurable)
    if segment.header.firstLSN == checkpoint.next {
      try checkLog(segment.header.previousChecksum)
    }
  }

  mutating func run(_ visit: LogReader.Visitor) throws(StorageError) -> LogEnd {
    while true {
      let next = try successor()
      let end = try readSegment(before: next, visit)
      sizes.append((scan.segment.name, scan.segment.byteCount))
      switch end {
      case .next:
        if let next { enter(next) } else { enter(try rolledSuccessor()) }
      case .end(let torn): return self.end(torn)
      }
    }
  }

  /// The last write that was read.
  var lastLSN: LogSequenceNumber { scan.link.lsn }

  // MARK: Segments

  private func successor() throws(StorageError) -> SegmentReader? {
    guard index + 1 < segments.count else { return nil }
    let next = try SegmentReader(segments[index + 1], in: directory)
    try Self.check(next, isOf: scan.segment.header.databaseID)
    return next
  }

  /// The segment that a live writer has begun since the directory was listed.
  private mutating func rolledSuccessor() throws(StorageError) -> SegmentReader {
    segments = try directory.contents().segments
    guard let found = segments.firstIndex(of: scan.segment.name) else { throw missingSuccessor() }
    index = found
    guard let next = try successor(), scan.link.fault(of: next.header) == nil else {
      throw missingSuccessor()
    }
    return next
  }

  private mutating func enter(_ segment: SegmentReader) {
    index += 1
    // All records before a segment were synchronized before it was made.
    durableUpTo = max(durableUpTo, lastLSN)
    scan = SegmentScan(segment)
  }

  private static func check(
    _ segment: SegmentReader, isOf databaseID: DatabaseID
  ) throws(StorageError) {
    if segment.header.databaseID != databaseID {
      throw .corrupt(
        path: segment.path, offset: 16, expected: "database \(databaseID)",
        found: "\(segment.header.databaseID)")
    }
  }

  /// Checks that the checkpoint was taken of this log.
  private func checkLog(_ found: UInt32) throws(StorageError) {
    guard let logChecksum, logChecksum != found else { return }
    throw LogReader.foreignCheckpoint(
      directory, lsn: checkpoint, logChecksum: logChecksum, segment: scan.segment.name,
      found: found)
  }

  private func end(_ torn: TornTail?) -> LogEnd {
    let last = scan.last
    return LogEnd(
      databaseID: scan.segment.header.databaseID, segments: sizes, segment: scan.segment.name,
      segmentHeader: scan.segment.header, lastOffset: last?.offset ?? scan.offset,
      offset: scan.offset, checksum: scan.link.checksum, lastLSN: lastLSN, lastTime: lastTime,
      passedOverTime: passedOverTime, durableUpTo: min(durableUpTo, lastLSN),
      endsWithIdleRecord: last.map { $0.kind == .idle && $0.durableUpTo == lastLSN } ?? false,
      torn: directory.mode.isReadOnly ? nil : torn,
      unfinished: directory.mode.isReadOnly ? torn : nil, unsealed: unsealed)
  }

  // MARK: One segment

  private enum SegmentEnd {
    case next
    case end(TornTail?)
  }

  /// Reads a segment's records up to the first that is bad or does not follow, and decides what that means.
  private mutating func readSegment(
    before next: SegmentReader?, _ visit: LogReader.Visitor
  ) throws(StorageError) -> SegmentEnd {
    // If that is not possible, all of the segment is read here.
    ahead = parallel.flatMap {
      try? ReadAhead.begin(behind: scan.offset, of: scan.segment, in: directory, $0)
    }
    defer { leaveAhead() }
    var lastJudgement: Judgement?
    while true {
      var stop = try takeRecords(before: next, visit)
      let search = try search(behind: &stop, before: next)
      let provenLSN = max(durableUpTo, search?.durableUpTo ?? .zero)
      let tail = LogTail(
        remainder: stop.remainder,
        successor: next.map { LogTail.Successor($0.header, behind: scan.link) } ?? .none,
        isNextProvenDurable: provenLSN > lastLSN)
      if directory.mode.isReadOnly, next == nil {
        if stop.remainder == .seal { return .next }
        let judgement = Judgement(offset: scan.offset, isProven: tail.isNextProvenDurable)
        if stop.remainder != .nothing, judgement.isNew(after: lastJudgement) {
          lastJudgement = judgement
          try scan.segment.refresh()
          continue
        }
      }
      switch tail.decision {
      case .next, .nextBehindDamage:
        if stop.remainder != .seal, let next { noteUnsealed(before: next) }
        return .next
      case .end: return .end(nil)
      case .torn: return .end(tornTail(stop, search))
      case .corrupt: throw corruption(tail, before: next, stop.fault)
      }
    }
  }

  /// What a read-only walk beside a live writer has found at the end.
  ///
  /// A record that is being written can be read half old, half new. So the bytes are read again once, and
  /// once more if a later record proves them durable: only then are they corrupt.
  private struct Judgement {
    var offset: UInt64
    var isProven: Bool

    func isNew(after last: Judgement?) -> Bool {
      guard let last else { return true }
      return last.offset != offset || (isProven && !last.isProven)
    }
  }

  /// Searches the rest of the last segment for records that prove its bad bytes durable. If all bytes are
  /// zero, `stop` becomes the end of the segment.
  private func search(
    behind stop: inout SegmentScan.Stop, before next: SegmentReader?
  ) throws(StorageError) -> SegmentReader.Search? {
    guard stop.remainder == .damaged, next == nil else { return nil }
    let search = try scan.segment.search(from: stop.searchStart, after: lastLSN)
    if stop.searchStart == scan.offset, search.contentEnd == scan.offset {
      stop.remainder = .nothing
    }
    return search
  }

  private func tornTail(_ stop: SegmentScan.Stop, _ search: SegmentReader.Search?) -> TornTail {
    TornTail(
      segment: scan.segment.name, offset: scan.offset,
      byteCount: max(search?.contentEnd ?? scan.offset, stop.searchStart) - scan.offset,
      firstLSN: lastLSN.next, lastSurvivor: search?.lastSurvivor,
      isUndecidable: stop.fault.isWhole || search?.firstRecord != nil,
      expected: stop.fault.expected, found: stop.fault.found)
  }

  /// Notes that a segment lacks its seal. Only the last but one can: older ones were sealed by recovery.
  private mutating func noteUnsealed(before next: SegmentReader) {
    let header = scan.segment.header
    unsealed = UnsealedSegment(
      segment: scan.segment.name, header: header, offset: scan.offset,
      checksum: scan.link.checksum, lastLSN: lastLSN,
      baseTime: scan.last?.baseTime ?? header.baseTime, successorChecksum: next.header.checksum)
  }

  // MARK: Records

  /// Takes records up to a seal, or up to what is none that follows.
  private mutating func takeRecords(
    before next: SegmentReader?, _ visit: LogReader.Visitor
  ) throws(StorageError) -> SegmentScan.Stop {
    while true {
      let end = ahead?.first.offset ?? .max
      while scan.offset < end, let (record, payload) = try scan.chainedRecord() {
        try take(record, payload, visit)
      }
      if scan.offset >= end, let ahead { try takePart(ahead, visit) }
      switch try scan.record() {
      case .end:
        return SegmentScan.Stop(
          fault: ReadFault(expected: "", found: ""), remainder: .nothing,
          searchStart: scan.offset + 1)
      case .invalid(let stop): return stop
      case .record(let seal, let payload) where seal.kind == .seal:
        return judged(payload, before: next)
      case .record(let record, let payload): try take(record, payload, visit)
      }
    }
  }

  /// Whether a seal names the segment behind it, unless that cannot be since another one is missing between them.
  private func judged(
    _ seal: UnsafeRawBufferPointer, before next: SegmentReader?
  ) -> SegmentScan.Stop {
    var stop = SegmentScan.Stop(
      fault: ReadFault(expected: "", found: ""), remainder: .seal, searchStart: scan.offset + 1)
    if let next, next.header.firstLSN == lastLSN.next,
      Seal.successorChecksum(seal) != next.header.checksum
    {
      stop.fault = ReadFault(expected: "a seal that names \(next.name.fileName)", found: "another")
      stop.remainder = .detached
    }
    return stop
  }

  /// Takes the part that was read ahead, if its first record follows the one taken last.
  private mutating func takePart(
    _ part: ReadAhead, _ visit: LogReader.Visitor
  ) throws(StorageError) {
    leaveAhead()
    guard let last = part.last, part.first.offset == scan.offset,
      scan.linkFault(part.first) == nil, lastLSN >= checkpoint
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

  private mutating func take(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, _ visit: LogReader.Visitor
  ) throws(StorageError) {
    if record.kind == .writes, record.firstLSN <= checkpoint, record.lastLSN >= checkpoint {
      try checkLog(record.checksum)
    }
    if record.lastLSN > checkpoint, record.kind == .writes { try visit(record, payload) }
    note(record)
  }

  /// Puts the position behind a record.
  private mutating func note(_ record: RecordInfo) {
    scan.take(record)
    durableUpTo = max(durableUpTo, record.durableUpTo)
    if record.kind == .writes { lastTime = record.baseTime }
  }
}
