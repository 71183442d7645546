extension LogSalvage {
  /// The way through the segments, one after the other.
  struct Walk {
    /// The last write of the records so far, readable or not.
    private(set) var lastLSN = LogSequenceNumber.zero
    /// The checksum that the next record or segment repeats; nil behind damage and at the beginning.
    private var checksum: UInt32?
    /// Where the last segment was sealed; nil if it was not.
    private(set) var seal: (path: String, offset: UInt64)?
    /// Writes up to here were durable, as checkpoints and the records so far prove.
    private var durable: LogSequenceNumber
    /// The last write that was reported.
    private var reached = LogSequenceNumber.zero

    init(provenDurable: LogSequenceNumber) { durable = provenDurable }

    /// Why a segment does not follow what was read before it; nil if it does, or if that is not known.
    func linkProblem(_ segment: Segment) -> LogCursor.Problem? {
      let header = segment.header
      guard let checksum, header.firstLSN >= lastLSN.next else { return nil }
      if header.firstLSN > lastLSN.next {
        return LogCursor.Problem(
          path: segment.path, offset: 40, expected: "first LSN \(lastLSN.next)",
          found: "\(header.firstLSN)")
      }
      guard header.previousChecksum != checksum else { return nil }
      return LogCursor.Problem(
        path: segment.path, offset: 56, expected: "previous checksum \(hexadecimal(checksum))",
        found: hexadecimal(header.previousChecksum))
    }

    /// Reads the records of one segment, and passes over what is none.
    ///
    /// - Parameter next: the segment behind it; nil for the last one, which alone may end in the remains of a
    ///   crash.
    mutating func read(
      _ segment: SegmentReader, before next: SegmentHeader?,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) {
      lastLSN = segment.header.firstLSN.previous
      checksum = segment.header.checksum
      seal = nil
      var offset = UInt64(SegmentHeader.byteCount)
      var hasSearchedForProof = false
      while offset < segment.byteCount {
        let found = try segment.record(at: offset)
        guard let fault = try fault(found, segment, visit) else {
          guard seal == nil, let record = found.record else { return }
          offset = record.endOffset
          continue
        }
        var problem = LogCursor.Problem(
          path: segment.path, offset: offset, expected: fault.expected, found: fault.found)
        if next == nil, !hasSearchedForProof {
          hasSearchedForProof = true
          let search = try segment.search(from: offset, after: lastLSN)
          durable = max(durable, search.durableUpTo ?? .zero)
          // Preallocated space.
          if search.contentEnd == offset { break }
        }
        if next == nil, durable <= lastLSN {
          problem.isTail = true
          return try visit(.problem(problem))
        }
        let end: UInt64
        if let record = found.record, fault.isWhole {
          // As below: a crash in the seal.
          if record.kind == .seal, let next, confirms(next) {
            problem.isTail = true
            return try visit(.problem(problem))
          }
          end = record.endOffset
        } else {
          // The length of a payload that is not there leads over the end.
          let start = found.record.map { $0.offset + UInt64($0.headerByteCount) } ?? offset
          let search = try segment.search(from: start, after: nil, stopsAtFirst: true)
          if search.firstRecord == nil, let next, confirms(next) {
            // A crash may come between the last record and the seal, or in the seal.
            guard search.contentEnd > offset else { return }
            problem.isTail = true
            return try visit(.problem(problem))
          }
          // Zeros in front of a segment that does not follow, which is reported.
          if search.firstRecord == nil, search.contentEnd == offset { return }
          end = search.firstRecord ?? segment.byteCount
        }
        problem.skippedByteCount = end - offset
        try visit(.problem(problem))
        if let record = found.record {
          try takeUnreadable(record, segment, visit)
        } else {
          try segment.keepDamaged(from: offset, to: end)
          checksum = nil
        }
        offset = end
      }
      guard next == nil, seal == nil, durable > lastLSN else { return }
      try visit(
        .problem(
          LogCursor.Problem(
            path: segment.path, offset: min(offset, segment.byteCount),
            expected: "writes up to LSN \(durable)", found: "the end of the log")))
    }

    private func confirms(_ next: SegmentHeader) -> Bool {
      next.firstLSN == lastLSN.next && next.previousChecksum == checksum
    }

    /// Takes a record that can be read; otherwise returns why it cannot be.
    private mutating func fault(
      _ found: SegmentReader.Found, _ segment: SegmentReader,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) -> LogWalk.Fault? {
      let record: RecordInfo
      switch found {
      case .invalid(let fault):
        return LogWalk.Fault(expected: fault.expected, found: fault.description)
      case .record(let valid): record = valid
      }
      let payload: UnsafeRawBufferPointer
      switch try segment.payload(of: record) {
      case .failure(let fault):
        if fault.isWhole { try segment.keepUnreadable(record) }
        return LogWalk.Fault(
          expected: fault.expected, found: fault.found, isWhole: fault.isWhole)
      case .success(let bytes): payload = bytes
      }
      durable = max(durable, record.durableUpTo)
      if record.firstLSN > lastLSN.next, checksum != nil {
        try visit(
          .problem(
            LogCursor.Problem(
              path: segment.path, offset: record.offset, expected: "first LSN \(lastLSN.next)",
              found: "\(record.firstLSN)")))
      }
      lastLSN = max(lastLSN, record.lastLSN)
      switch record.kind {
      case .seal:
        // The next segment repeats the checksum of the record before it.
        seal = (segment.path, record.offset)
        return nil
      case .idle: try visit(.link(record.checksum, after: record.lastLSN))
      case .writes where record.firstLSN > reached:
        try visit(.record(record, path: segment.path, payload: payload))
        reached = record.lastLSN
      case .writes: break
      }
      checksum = record.checksum
      return nil
    }

    private mutating func takeUnreadable(
      _ record: RecordInfo, _ segment: SegmentReader,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) {
      durable = max(durable, record.durableUpTo)
      lastLSN = max(lastLSN, record.lastLSN)
      if record.kind != .seal { checksum = record.checksum }
      guard record.kind == .writes, record.firstLSN > reached else { return }
      try visit(.record(record, path: segment.path, payload: nil))
    }
  }
}
