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
  /// - `provenDurable`: a write that is known to have been durable, by a newer checkpoint, say.
  /// - `databaseID`: what all files must carry, where it is known.
  /// - Returns: nil where there is no log at all, and nothing says that there should be one.
  /// - Throws: `.corrupt` with file, offset, expected and found; `.unsupportedVersion`; `.io`; and
  ///   whatever `visit` throws.
  /// - Complexity: O(bytes of the segments from the one with the first write on); memory for one window
  ///   and one history.
  package static func read(
    _ directory: DatabaseDirectory, contents: DatabaseDirectory.Contents? = nil,
    after checkpoint: LogSequenceNumber = .zero, provenDurable: LogSequenceNumber = .zero,
    databaseID: DatabaseID? = nil, visit: Visitor
  ) throws(StorageError) -> LogEnd? {
    var contents = contents
    if contents == nil { contents = try directory.contents() }
    var walk = Walk(
      directory: directory, segments: contents?.segments ?? [], checkpoint: checkpoint,
      provenDurable: max(checkpoint, provenDurable),
      databaseID: databaseID)
    return try walk.run(visit)
  }
}

/// One reading of the log.
private struct Walk {
  let directory: DatabaseDirectory
  var segments: [SegmentName]
  let checkpoint: LogSequenceNumber
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
    provenDurable: LogSequenceNumber, databaseID: DatabaseID?
  ) {
    self.directory = directory
    self.segments = segments
    self.checkpoint = checkpoint
    self.provenDurable = provenDurable
    self.databaseID = databaseID
  }

  mutating func run(_ visit: LogReader.Visitor) throws(StorageError) -> LogEnd? {
    if segments.isEmpty && provenDurable == .zero { return nil }
    guard let start = segments.lastIndex(where: { $0.firstLSN <= checkpoint.next }) else {
      let first = segments.first
      throw .corrupt(
        path: first.map { directory.path(of: $0) } ?? directory.path, offset: 0,
        expected: "a log from LSN \(checkpoint.next) on",
        found: first.map { "a first segment from LSN \($0.firstLSN) on" } ?? "no segment")
    }
    var index = start
    var segment = try SegmentReader(segments[start], in: directory)
    if let databaseID { try check(segment, isOf: databaseID) }
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
        let found = try segment.search(from: searchStart)
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
