/// Reads the log, from a checkpoint or from its beginning to its end.
package enum LogReader {
  /// Called for each record with writes behind the checkpoint, in order; the payload is valid during
  /// the call only. The first record may begin with writes that the checkpoint has already.
  package typealias Visitor = (RecordInfo, UnsafeRawBufferPointer) throws(StorageError) -> Void

  /// Reads every record with writes after `checkpoint` and finds the end; changes nothing.
  ///
  /// Every record that is read follows the one before it, in number and in chain, and every segment
  /// its predecessor. What stands behind the last good record is judged by `LogTail`.
  /// - `contents`: of the directory, where they are at hand.
  /// - `checkpoint`: its number; zero without one.
  /// - `logChecksum`: what the checkpoint says that the log has there; nil where that is not compared.
  /// - `provenDurable`: a write that is known to have been durable, by a newer checkpoint, say.
  /// - `databaseID`: what all files must carry, where it is known.
  /// - Returns: nil where there is no log at all, and nothing says that there should be one.
  /// - Throws: `.corrupt` with file, offset, expected and found; `.unsupportedVersion`; `.io`; and
  ///   whatever `visit` throws.
  /// - Complexity: O(bytes of the segments from the one with the first write on); memory for one window
  ///   and one history.
  package static func read(
    _ directory: DatabaseDirectory, contents: DatabaseDirectory.Contents? = nil,
    after checkpoint: LogSequenceNumber = .zero, logChecksum: UInt32? = nil,
    provenDurable: LogSequenceNumber = .zero, databaseID: DatabaseID? = nil, visit: Visitor
  ) throws(StorageError) -> LogEnd? {
    var contents = contents
    if contents == nil { contents = try directory.contents() }
    var walk = Walk(
      directory: directory, segments: contents?.segments ?? [], checkpoint: checkpoint,
      logChecksum: logChecksum,
      provenDurable: max(checkpoint, provenDurable),
      databaseID: databaseID)
    return try walk.run(visit)
  }

  /// What the log has at a write, for the checkpoint that is taken there: the previous checksum of the
  /// segment that begins with the next write; where none begins there, the header checksum of the record
  /// that holds the write. Zero at write 0.
  ///
  /// Call it once the segment that follows the checkpoint exists: whether one begins with the next write
  /// never changes then.
  ///
  /// - Throws: `.corrupt` where the log does not have the write; `.io`.
  /// - Complexity: O(1) where a segment begins with the next write, else O(bytes of one segment).
  package static func checksum(
    _ directory: DatabaseDirectory, at lsn: LogSequenceNumber
  ) throws(StorageError) -> UInt32 {
    if lsn == .zero { return 0 }
    let segment = try segment(directory, behind: lsn)
    if segment.header.firstLSN == lsn.next { return segment.header.previousChecksum }
    var offset = UInt64(SegmentHeader.byteCount)
    while case .record(let record) = try segment.record(at: offset) {
      if record.kind == .writes, record.lastLSN >= lsn { return record.checksum }
      offset = record.endOffset
    }
    throw .corrupt(
      path: segment.path, offset: offset, expected: "the record of write \(lsn)",
      found: "no record")
  }

  /// Checks what opening from a checkpoint needs beside it: that the log behind it is there, and that it is
  /// the log of which the checkpoint was taken. The records behind it are not read.
  ///
  /// - Throws: `.corrupt`, which names the checkpoint or the log; `.io`.
  /// - Complexity: as `checksum(_:at:)`.
  package static func check(_ checkpoint: CheckpointReader, in directory: DatabaseDirectory)
    throws(StorageError)
  {
    let lsn = checkpoint.lsn
    let segment = try segment(directory, behind: lsn)
    let found = try checksum(directory, at: lsn)
    guard found == checkpoint.header.logChecksum else {
      throw foreignCheckpoint(
        directory, lsn: lsn, logChecksum: checkpoint.header.logChecksum, segment: segment.name,
        found: found)
    }
  }

  private static func segment(_ directory: DatabaseDirectory, behind lsn: LogSequenceNumber)
    throws(StorageError) -> SegmentReader
  {
    let segments = try directory.contents().segments
    guard let name = segments.last(where: { $0.firstLSN <= lsn.next }) else {
      throw missingBeginning(directory, segments, after: lsn)
    }
    return try SegmentReader(name, in: directory)
  }

  fileprivate static func missingBeginning(
    _ directory: DatabaseDirectory, _ segments: [SegmentName], after lsn: LogSequenceNumber
  ) -> StorageError {
    let first = segments.first
    return .corrupt(
      path: first.map { directory.path(of: $0) } ?? directory.path, offset: 0,
      expected: "a log from LSN \(lsn.next) on",
      found: first.map { "a first segment from LSN \($0.firstLSN) on" } ?? "no segment")
  }

  fileprivate static func foreignCheckpoint(
    _ directory: DatabaseDirectory, lsn: LogSequenceNumber, logChecksum: UInt32,
    segment: SegmentName, found: UInt32
  ) -> StorageError {
    .corrupt(
      path: directory.path(ofCheckpoint: lsn), offset: CheckpointHeader.logChecksumOffset,
      expected: "log checksum \(hexadecimal(found)), as \(segment) has it at write \(lsn)",
      found: "\(hexadecimal(logChecksum)): the checkpoint of another log")
  }
}

/// One reading of the log.
private struct Walk {
  let directory: DatabaseDirectory
  var segments: [SegmentName]
  let checkpoint: LogSequenceNumber
  let logChecksum: UInt32?
  let provenDurable: LogSequenceNumber
  let databaseID: DatabaseID?

  private var lastLSN = LogSequenceNumber.zero
  private var checksum: UInt32 = 0
  private var lastOffset: UInt64 = 0
  private var offset: UInt64 = 0
  private var lastTime: Int64?
  private var durableUpTo = LogSequenceNumber.zero
  private var lastBaseTime: Int64 = 0
  private var isMarked = false
  private var sizes: [(name: SegmentName, byteCount: UInt64)] = []
  private var unsealed: UnsealedSegment?

  init(
    directory: DatabaseDirectory, segments: [SegmentName], checkpoint: LogSequenceNumber,
    logChecksum: UInt32?, provenDurable: LogSequenceNumber, databaseID: DatabaseID?
  ) {
    self.directory = directory
    self.segments = segments
    self.checkpoint = checkpoint
    self.logChecksum = logChecksum
    self.provenDurable = provenDurable
    self.databaseID = databaseID
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
      var next: SegmentReader?
      if index + 1 < segments.count {
        let reader = try SegmentReader(segments[index + 1], in: directory)
        try check(reader, isOf: segment.header.databaseID)
        next = reader
      }
      // What stands before a segment was synchronized before the segment was made.
      durableUpTo = max(durableUpTo, lastLSN)
      checksum = segment.header.checksum
      offset = UInt64(SegmentHeader.byteCount)
      lastOffset = offset
      isMarked = false
      lastBaseTime = segment.header.baseTime
      let end = try read(segment, next, visit)
      switch end {
      case .next:
        if let following = next {
          sizes.append((segment.name, segment.byteCount))
          segment = following
          index += 1
        } else {
          // A live writer has rolled since the directory was listed.
          segments = try directory.contents().segments
          guard let place = segments.firstIndex(of: segment.name), place + 1 < segments.count
          else { throw missingSuccessor(segment) }
          index = place
          let reader = try SegmentReader(segments[place + 1], in: directory)
          try check(reader, isOf: segment.header.databaseID)
          guard confirms(reader) else { throw missingSuccessor(segment) }
          sizes.append((segment.name, segment.byteCount))
          segment = reader
          index += 1
        }
      case .end(let torn):
        sizes.append((segment.name, segment.byteCount))
        return LogEnd(
          databaseID: segment.header.databaseID, segments: sizes, segment: segment.name,
          segmentHeader: segment.header, lastOffset: lastOffset, offset: offset, checksum: checksum,
          lastLSN: lastLSN,
          lastTime: lastTime, durableUpTo: min(durableUpTo, lastLSN), isMarked: isMarked,
          torn: directory.mode.isReadOnly ? nil : torn,
          unfinished: directory.mode.isReadOnly ? torn : nil, unsealed: unsealed)
      }
    }
  }

  private enum SegmentEnd {
    case next
    case end(TornTail?)
  }

  /// Reads a segment's records up to the first that is bad or does not follow, and decides.
  private mutating func read(
    _ segment: SegmentReader, _ next: SegmentReader?, _ visit: LogReader.Visitor
  ) throws(StorageError) -> SegmentEnd {
    var look: (offset: UInt64, wasProven: Bool)?
    while true {
      var fault = Fault(expected: "", found: "")
      var remainder = LogTail.Remainder.damaged
      var searchStart = offset + 1
      if offset >= segment.byteCount {
        remainder = .nothing
      } else {
        switch try segment.record(at: offset) {
        case .invalid(let wrong):
          fault = Fault(expected: wrong.expected, found: wrong.description)
          searchStart = offset
        case .record(let record):
          if let wrong = linkFault(record) {
            remainder = .detached
            fault = wrong
            break
          }
          switch try segment.payload(of: record) {
          case .failure(let wrong):
            fault = Fault(expected: wrong.expected, found: wrong.found, isWhole: wrong.isWhole)
            searchStart = record.offset + UInt64(record.headerByteCount)
          case .success(let payload):
            if record.kind == .seal {
              remainder = sealRemainder(payload, next)
              if remainder == .detached {
                fault = Fault(
                  expected: "a seal that names \(next?.name.fileName ?? "")", found: "another")
              }
              break
            }
            try take(record, payload, visit)
            continue
          }
        }
      }
      var search: SegmentReader.Search?
      var isProven = durableUpTo > lastLSN
      if remainder == .damaged && next == nil {
        let found = try segment.search(from: searchStart, after: lastLSN)
        search = found
        if searchStart == offset && found.contentEnd == offset { remainder = .nothing }
        if let durable = found.durableUpTo, durable > lastLSN {
          isProven = true
        }
      }
      let tail = LogTail(
        remainder: remainder,
        successor: next.map { confirms($0) ? .confirms : .denies } ?? .none,
        isNextProvenDurable: isProven)
      if directory.mode.isReadOnly, next == nil {
        if remainder == .seal { return .next }
        // What a live writer is in the middle of may be read half old, half new. A second look sees
        // what stands there now; and what is bad is corrupt only if it was looked at after that which
        // proves it durable.
        let isNew = look.map { $0.offset != offset || (isProven && !$0.wasProven) } ?? true
        if remainder != .nothing && isNew {
          look = (offset, isProven)
          try segment.refresh()
          continue
        }
      }
      switch tail.row.decision {
      case .next:
        if remainder != .seal, let next { noteUnsealed(segment, next) }
        return .next
      case .end:
        return .end(nil)
      case .torn:
        return .end(
          TornTail(
            segment: segment.name, offset: offset,
            byteCount: max(search?.contentEnd ?? offset, searchStart) - offset,
            firstLSN: lastLSN.next, lastSurvivor: search?.lastSurvivor,
            isUndecidable: fault.isWhole || search?.firstRecord != nil, expected: fault.expected,
            found: fault.found))
      case .corrupt:
        throw corruption(tail, segment, next, fault)
      }
    }
  }

  private struct Fault {
    var expected: String
    var found: String
    var isWhole = false
  }

  /// Whether a valid record continues the log, in number, chain and knowledge.
  private func linkFault(_ record: RecordInfo) -> Fault? {
    if record.firstLSN != lastLSN.next {
      return Fault(expected: "first LSN \(lastLSN.next)", found: "\(record.firstLSN)")
    }
    if record.header.previousChecksum != checksum {
      return Fault(
        expected: "previous checksum \(hexadecimal(checksum))",
        found: hexadecimal(record.header.previousChecksum))
    }
    return nil
  }

  private mutating func take(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, _ visit: LogReader.Visitor
  ) throws(StorageError) {
    if record.kind == .writes, record.firstLSN <= checkpoint, record.lastLSN >= checkpoint {
      try checkLog(record.checksum, in: record.segment)
    }
    if record.lastLSN > checkpoint, record.kind == .writes { try visit(record, payload) }
    lastLSN = record.lastLSN
    checksum = record.checksum
    lastOffset = record.offset
    offset = record.endOffset
    durableUpTo = max(durableUpTo, record.durableUpTo)
    lastBaseTime = record.baseTime
    if record.kind == .writes { lastTime = record.baseTime }
    isMarked = record.kind == .mark && record.durableUpTo == lastLSN
  }

  /// Whether the checkpoint was taken of this log.
  private func checkLog(_ found: UInt32, in segment: SegmentName) throws(StorageError) {
    guard let logChecksum, logChecksum != found else { return }
    throw LogReader.foreignCheckpoint(
      directory, lsn: checkpoint, logChecksum: logChecksum, segment: segment, found: found)
  }

  private func sealRemainder(_ payload: UnsafeRawBufferPointer, _ next: SegmentReader?)
    -> LogTail.Remainder
  {
    guard let next else { return .seal }
    return Seal.successorChecksum(payload) == next.header.checksum ? .seal : .detached
  }

  private func confirms(_ next: SegmentReader) -> Bool {
    (next.header.firstLSN == lastLSN.next && next.header.previousChecksum == checksum)
  }

  /// Only the last pair can lack its seal by a crash; an older one was completed when it was opened.
  private mutating func noteUnsealed(_ segment: SegmentReader, _ next: SegmentReader) {
    unsealed = UnsealedSegment(
      segment: segment.name, header: segment.header, offset: offset, checksum: checksum,
      lastLSN: lastLSN, baseTime: lastBaseTime, successorChecksum: next.header.checksum)
  }

  private func check(_ segment: SegmentReader, isOf databaseID: DatabaseID) throws(StorageError) {
    if segment.header.databaseID != databaseID {
      throw .corrupt(
        path: segment.path, offset: 16, expected: "database \(databaseID)",
        found: "\(segment.header.databaseID)")
    }
  }

  private func missingSuccessor(_ segment: SegmentReader) -> StorageError {
    .corrupt(
      path: segment.path, offset: offset,
      expected: "the successor \(SegmentName(firstLSN: lastLSN.next)) that the seal names",
      found: "no such segment")
  }

  private func corruption(
    _ tail: LogTail, _ segment: SegmentReader, _ next: SegmentReader?, _ fault: Fault
  ) -> StorageError {
    if tail.remainder == .seal && tail.successor == .none { return missingSuccessor(segment) }
    let writes = "(\(tail.row.reason); from LSN \(lastLSN.next) on)"
    if tail.successor == .denies, tail.remainder != .damaged, let next {
      if next.header.firstLSN > lastLSN.next {
        return .corrupt(
          path: segment.path, offset: offset,
          expected:
            "records up to LSN \(next.header.firstLSN.rawValue - 1), before \(next.name) \(writes)",
          found: "LSN \(lastLSN) as the last")
      }
      if next.header.firstLSN < lastLSN.next {
        return .corrupt(
          path: next.path, offset: 40, expected: "first LSN \(lastLSN.next) \(writes)",
          found: "\(next.header.firstLSN)")
      }
      return .corrupt(
        path: next.path, offset: 56,
        expected: "previous checksum \(hexadecimal(checksum)) \(writes)",
        found: hexadecimal(next.header.previousChecksum))
    }
    if tail.remainder == .nothing {
      return .corrupt(
        path: segment.path, offset: offset, expected: "writes up to LSN \(durableUpTo) \(writes)",
        found: "the end of the log")
    }
    return .corrupt(
      path: segment.path, offset: offset, expected: "\(fault.expected) \(writes)",
      found: fault.found)
  }
}
