/// What a scan of a log comes upon, in the order of the files.
package enum LogScanItem {
  case segment(SegmentName, SegmentHeader)
  /// A record whose header is valid. The payload is nil where it is bad, or cannot be decoded because
  /// records of its history are missing; it is valid during the call only.
  case record(RecordInfo, payload: UnsafeRawBufferPointer?)
  /// Damage, with its place; the scan goes on behind it.
  case problem(StorageError)
  /// What a crash left at the end: no damage.
  case torn(TornTail)
}

extension LogReader {
  /// Goes through all segments and tells all that is there and all that is wrong, without stopping at
  /// the first damage: for inspection and for saving what can be saved.
  ///
  /// Behind damage the next valid header is searched byte by byte, and records are undecodable up to
  /// the next restart point. Records of a torn end are not told: nobody was told of them before.
  /// - `checkpoint`: where the log must begin at the latest; nil: wherever it does.
  /// - `provenDurable`: as for `read`.
  /// - Throws: where the directory cannot be listed, and whatever `visit` throws.
  /// - Complexity: linear in the bytes of the log.
  package static func scan(
    _ directory: DatabaseDirectory, after checkpoint: LogSequenceNumber? = nil,
    provenDurable: LogSequenceNumber = .zero,
    visit: (LogScanItem) throws(StorageError) -> Void
  ) throws(StorageError) {
    let segments = try directory.contents().segments
    var scan = Scan(directory: directory, durableUpTo: provenDurable)
    if let checkpoint, let first = segments.first, first.firstLSN > checkpoint.next {
      try visit(
        .problem(
          .corrupt(
            path: directory.path(of: first), offset: 0,
            expected: "a log from LSN \(checkpoint.next) on",
            found: "a first segment from LSN \(first.firstLSN) on")))
    }
    for (index, name) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      try scan.segment(name, next: next, visit)
    }
    if scan.durableUpTo > scan.lastLSN {
      let path = segments.last.map { directory.path(of: $0) } ?? directory.path
      try visit(
        .problem(
          .corrupt(
            path: path, offset: scan.endOffset,
            expected: "writes up to LSN \(scan.durableUpTo)",
            found: "LSN \(scan.lastLSN) as the last")))
    }
  }
}

private struct Scan {
  let directory: DatabaseDirectory
  var durableUpTo: LogSequenceNumber
  var lastLSN = LogSequenceNumber.zero
  var endOffset: UInt64 = 0
  /// nil before the first segment and behind damage: the next record is taken as it comes.
  private var chain: UInt32?
  private var isFirst = true
  private var databaseID: DatabaseID?

  init(directory: DatabaseDirectory, durableUpTo: LogSequenceNumber) {
    self.directory = directory
    self.durableUpTo = durableUpTo
  }

  mutating func segment(
    _ name: SegmentName, next: SegmentName?, _ visit: (LogScanItem) throws(StorageError) -> Void
  ) throws(StorageError) {
    let segment: SegmentReader
    do {
      segment = try SegmentReader(name, in: directory)
    } catch {
      chain = nil
      try visit(.problem(error))
      return
    }
    try visit(.segment(name, segment.header))
    try checkLinks(segment, visit)
    chain = segment.header.checksum
    isFirst = false
    // What stands before a segment was synchronized before it was made.
    durableUpTo = max(durableUpTo, LogSequenceNumber(name.firstLSN.rawValue - 1))

    var offset = UInt64(SegmentHeader.byteCount)
    var isHistoryWhole = true
    var isSealed = false
    while offset < segment.byteCount {
      let fault: (expected: String, found: String)
      switch try segment.record(at: offset) {
      case .record(let record):
        try checkSequence(record, segment, visit)
        if record.header.isRestart { isHistoryWhole = true }
        if record.header.isCompressed && !isHistoryWhole {
          note(record)
          try visit(.record(record, payload: nil))
          offset = record.endOffset
          continue
        }
        switch try segment.payload(of: record) {
        case .success(let payload):
          isSealed = record.kind == .seal
          note(record)
          try visit(.record(record, payload: payload))
          offset = record.endOffset
          continue
        case .failure(let wrong):
          // Its header tells where the next one begins.
          if next == nil,
            try isTorn(
              segment, record.offset, record, wrong.expected, wrong.found, wrong.isWhole, visit)
          {
            return
          }
          note(record)
          isHistoryWhole = false
          try visit(
            .problem(
              .corrupt(
                path: segment.path, offset: offset, expected: wrong.expected, found: wrong.found)))
          try visit(.record(record, payload: nil))
          offset = record.endOffset
          continue
        }
      case .invalid(let wrong):
        fault = (wrong.expected, wrong.description)
      }
      // Behind a seal, and where the next segment goes on from here, this is what a roll left.
      if isSealed || next?.firstLSN == lastLSN.next { break }
      if next == nil, try isTorn(segment, offset, nil, fault.expected, fault.found, false, visit) {
        return
      }
      try visit(
        .problem(
          .corrupt(
            path: segment.path, offset: offset, expected: fault.expected, found: fault.found)))
      chain = nil
      isHistoryWhole = false
      guard let found = try segment.search(from: offset + 1, stopsAtFirst: true).firstRecord else {
        break
      }
      offset = found
    }
    endOffset = offset
    if isSealed && next == nil {
      try visit(
        .problem(
          .corrupt(
            path: segment.path, offset: offset,
            expected: "the successor \(SegmentName(firstLSN: lastLSN.next)) that the seal names",
            found: "no such segment")))
    }
  }

  /// Whether what stands at `offset` of the last segment is the end; tells of it if it is torn.
  private mutating func isTorn(
    _ segment: SegmentReader, _ offset: UInt64, _ record: RecordInfo?,
    _ expected: String, _ found: String, _ isWhole: Bool,
    _ visit: (LogScanItem) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    let start = record.map { $0.offset + UInt64($0.headerByteCount) } ?? offset
    // What proved a later write durable proved this one: the rest is searched until that fails,
    // which it does once.
    if durableUpTo > lastLSN { return false }
    let rest = try segment.search(from: start)
    durableUpTo = max(durableUpTo, rest.durableUpTo ?? .zero)
    if durableUpTo > lastLSN { return false }
    endOffset = offset
    if record == nil && rest.contentEnd == offset { return true }
    try visit(
      .torn(
        TornTail(
          segment: segment.name, offset: offset,
          byteCount: max(rest.contentEnd, start) - offset, firstLSN: lastLSN.next,
          lastSurvivor: rest.lastSurvivor,
          isUndecidable: isWhole || rest.firstRecord != nil,
          expected: expected, found: found)))
    return true
  }

  private mutating func note(_ record: RecordInfo) {
    lastLSN = max(lastLSN, record.lastLSN)
    durableUpTo = max(durableUpTo, record.durableUpTo)
    chain = record.checksum
  }

  private mutating func checkLinks(
    _ segment: SegmentReader, _ visit: (LogScanItem) throws(StorageError) -> Void
  ) throws(StorageError) {
    if let databaseID, segment.header.databaseID != databaseID {
      try visit(
        .problem(
          .corrupt(
            path: segment.path, offset: 16, expected: "database \(databaseID)",
            found: "\(segment.header.databaseID)")))
    }
    databaseID = databaseID ?? segment.header.databaseID
    if isFirst {
      lastLSN = LogSequenceNumber(segment.header.firstLSN.rawValue - 1)
    } else if segment.header.firstLSN != lastLSN.next {
      try visit(
        .problem(
          .corrupt(
            path: segment.path, offset: 40, expected: "first LSN \(lastLSN.next)",
            found: "\(segment.header.firstLSN)")))
      lastLSN = max(lastLSN, LogSequenceNumber(segment.header.firstLSN.rawValue - 1))
    }
  }

  private func checkSequence(
    _ record: RecordInfo, _ segment: SegmentReader,
    _ visit: (LogScanItem) throws(StorageError) -> Void
  ) throws(StorageError) {
    if record.firstLSN != lastLSN.next {
      try visit(
        .problem(
          .corrupt(
            path: segment.path, offset: record.offset, expected: "first LSN \(lastLSN.next)",
            found: "\(record.firstLSN)")))
    } else if let chain, record.header.previousChecksum != chain {
      try visit(
        .problem(
          .corrupt(
            path: segment.path, offset: record.offset,
            expected: "previous checksum \(hexadecimal(chain))",
            found: hexadecimal(record.header.previousChecksum))))
    }
  }
}
