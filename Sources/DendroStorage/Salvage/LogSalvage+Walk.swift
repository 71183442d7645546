extension LogSalvage {
  /// The way through the segments, one after the other, and in each from stretch to stretch.
  struct Walk {
    /// The last write of the records so far, readable or not.
    private(set) var lastLSN = LogSequenceNumber.zero
    /// The checksum that the next record or segment repeats; nil behind damage and at the beginning.
    private var checksum: UInt32?
    /// Where the last segment was sealed; nil if it was not.
    private(set) var seal: (path: String, offset: UInt64)?
    /// Writes up to here were durable, as the files prove.
    private let durable: LogSequenceNumber
    /// The last write that was reported.
    private var reached = LogSequenceNumber.zero
    /// Raw bytes of payloads that may still turn out to be wrong: of records that lie within one another, all could claim
    /// the same large payload.
    private var wrongByteBudget = 4 << 30

    init(provenDurable: LogSequenceNumber) { durable = provenDurable }

    /// The segment behind the one that is read.
    struct Successor {
      var header: SegmentHeader
      /// Whether it has a record, or a successor of its own: they were written once the seal before it was durable.
      var isContinued: Bool
    }

    /// Why a segment does not follow what was read before it; nil if it does, or if that is not known.
    func linkProblem(_ segment: Segment) -> LogCursor.Problem? {
      let header = segment.header
      guard let checksum, header.firstLSN >= lastLSN.next else { return nil }
      if header.firstLSN > lastLSN.next {
        return LogCursor.Problem(
          path: segment.path, offset: 40, expected: "first LSN \(lastLSN.next)",
          found: "\(header.firstLSN)")
      }
      if segment.isTimeGuessed || header.previousChecksum == checksum { return nil }
      return LogCursor.Problem(
        path: segment.path, offset: 56, expected: "previous checksum \(hexadecimal(checksum))",
        found: hexadecimal(header.previousChecksum))
    }

    /// Reads the records of one segment in the order of their writes.
    ///
    /// - Parameter next: what is behind it; nil for the last one, which alone may end in the remains of a
    ///   crash.
    mutating func read(
      _ file: Segment, _ segment: SegmentReader, before next: Successor?,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) {
      lastLSN = file.header.firstLSN.previous
      checksum = file.header.checksum
      seal = nil
      var faults = Dictionary(
        file.map.faults.map { ($0.end, $0) }, uniquingKeysWith: { first, _ in first })
      var rest = Rest(file.map, of: segment)
      while var part = rest.next() {
        if isRead(part.stretch) { continue }
        if !part.isBegun {
          let fault = faults.removeValue(forKey: part.stretch.start)
          if let problem = problem(in: file, fault, before: part.stretch) {
            guard try isDamage(problem, part.stretch, isLast: next == nil, visit) else { return }
            checksum = nil
            if let fault { try segment.keepDamaged(from: fault.start, to: fault.end) }
          }
        }
        guard try read(&part, &rest, of: segment, before: next, visit) else { return }
      }
      for fault in faults.values.sorted(by: { $0.start < $1.start }) {
        var problem = Self.problem(in: file, fault)
        problem.isTail = seal == nil && (next.map { mayBeTorn(before: $0) } ?? (durable <= lastLSN))
        try visit(.problem(problem))
      }
      guard next == nil, seal == nil, durable > lastLSN else { return }
      try visit(
        .problem(
          LogCursor.Problem(
            path: segment.path, offset: min(file.map.contentEnd, segment.byteCount),
            expected: "writes up to LSN \(durable)", found: "the end of the log")))
    }

    /// Whether the writes of a stretch were read already: it is a copy.
    private func isRead(_ stretch: SegmentMap.Stretch) -> Bool {
      stretch.lastLSN < lastLSN || (stretch.lastLSN == lastLSN && stretch.firstLSN <= lastLSN)
    }

    /// What is wrong in front of a stretch; nil if nothing is.
    private func problem(
      in file: Segment, _ fault: SegmentMap.Fault?, before stretch: SegmentMap.Stretch
    ) -> LogCursor.Problem? {
      if let fault { return Self.problem(in: file, fault) }
      if stretch.firstLSN > lastLSN.next {
        return LogCursor.Problem(
          path: file.path, offset: stretch.start, expected: "first LSN \(lastLSN.next)",
          found: "\(stretch.firstLSN)")
      }
      guard let checksum, stretch.firstLSN == lastLSN.next, !stretch.first.follows(checksum)
      else { return nil }
      let (expected, found) = stretch.first.previousChecksumDifference(from: checksum)
      return LogCursor.Problem(
        path: file.path, offset: stretch.start, expected: expected, found: found)
    }

    private static func problem(in file: Segment, _ fault: SegmentMap.Fault) -> LogCursor.Problem {
      var problem = LogCursor.Problem(
        path: file.path, offset: fault.start, expected: fault.expected, found: fault.found)
      problem.skippedByteCount = fault.end - fault.start
      return problem
    }

    /// Reports what is wrong in front of the rest of a stretch.
    ///
    /// - Returns: false if it is what a crash leaves, by the decision table of recovery: then nothing behind it counts.
    ///   A crash displaces no record.
    private func isDamage(
      _ problem: LogCursor.Problem, _ stretch: SegmentMap.Stretch, isLast: Bool,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) -> Bool {
      var problem = problem
      problem.isTail = isLast && durable <= lastLSN && !stretch.isDisplaced
      try visit(.problem(problem))
      return !problem.isTail
    }

    private func confirms(_ next: Successor) -> Bool {
      next.header.firstLSN == lastLSN.next && next.header.previousChecksum == checksum
    }

    /// Whether a crash may have come between the last record and the seal, or in the seal.
    private func mayBeTorn(before next: Successor) -> Bool { confirms(next) && !next.isContinued }

    /// Reads a stretch up to its end, or up to a record that cannot be read here, but perhaps elsewhere.
    ///
    /// - Returns: false behind the remains of a crash.
    private mutating func read(
      _ part: inout Rest.Part, _ rest: inout Rest, of segment: SegmentReader,
      before next: Successor?, _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) -> Bool {
      while part.offset < part.stretch.end {
        let found = try segment.record(at: part.offset, displacedBy: part.stretch.distance)
        // The file may have changed since.
        guard let record = found.record else { return true }
        if record.kind == .writes, record.firstLSN <= lastLSN {
          part.offset = record.endOffset
          continue
        }
        switch try payload(of: record, in: segment) {
        case .success(let payload):
          try take(record, payload, of: segment, visit)
        case .failure(let fault):
          if record.kind == .writes, try rest.putOff(part, until: record.firstLSN) { return true }
          var problem = LogCursor.Problem(
            path: segment.path, offset: record.offset, expected: fault.expected, found: fault.found)
          problem.skippedByteCount = min(record.endOffset, segment.byteCount) - record.offset
          if record.kind == .seal, let next, confirms(next) {
            problem.isTail = mayBeTorn(before: next)
            try visit(.problem(problem))
            return true
          }
          guard try isDamage(problem, part.stretch, isLast: next == nil, visit) else {
            return false
          }
          if fault.isWhole { try segment.keepUnreadable(record) }
          try takeUnreadable(record, segment, visit)
        }
        part.offset = record.endOffset
      }
      return true
    }

    private mutating func take(
      _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, of segment: SegmentReader,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) {
      lastLSN = max(lastLSN, record.lastLSN)
      switch record.kind {
      case .seal:
        // The next segment repeats the checksum of the record before it.
        seal = (segment.path, record.offset)
        return
      case .idle: try visit(.link(record.checksum, after: record.lastLSN))
      case .writes where record.firstLSN > reached:
        try visit(.record(record, path: segment.path, payload: payload))
        reached = record.lastLSN
      case .writes: break
      }
      checksum = record.checksum
    }

    /// The payload of a record, unless too many were wrong.
    private mutating func payload(
      of record: RecordInfo, in segment: SegmentReader
    ) throws(StorageError) -> Result<UnsafeRawBufferPointer, SegmentReader.PayloadFault> {
      let byteCount = record.header.rawByteCount
      guard byteCount <= wrongByteBudget else {
        return .failure(
          .init(
            expected: "records behind one another", found: "too many within others", isWhole: false)
        )
      }
      let payload = try segment.payload(of: record)
      if case .failure = payload { wrongByteBudget -= byteCount }
      return payload
    }

    private mutating func takeUnreadable(
      _ record: RecordInfo, _ segment: SegmentReader,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) {
      lastLSN = max(lastLSN, record.lastLSN)
      if record.kind != .seal { checksum = record.checksum }
      guard record.kind == .writes, record.firstLSN > reached else { return }
      try visit(.record(record, path: segment.path, payload: nil))
    }
  }
}
