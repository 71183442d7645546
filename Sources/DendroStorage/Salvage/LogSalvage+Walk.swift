extension LogSalvage {
  /// The way through the segments, one after the other, and in each from stretch to stretch.
  struct Walk {
    /// The last write of the records so far, readable or not.
    private(set) var lastLSN = LogSequenceNumber.zero
    /// The checksum that the next record or segment repeats; nil behind damage and at the beginning.
    private var checksum: UInt32?
    /// The last segment, if it was sealed.
    private(set) var sealed: MissingSegment.Neighbour?
    /// Writes up to here were durable, as the files prove.
    private let durable: LogSequenceNumber
    /// Writes up to here were durable, as a checkpoint says.
    private let checkpoint: LogSequenceNumber
    /// Whether records of the segment are displaced.
    private var isDisplaced = false
    /// Whether bytes to which the next payload may refer were damaged.
    private var isHistoryBroken = false
    /// The last write that was reported.
    private var reached = LogSequenceNumber.zero
    /// Raw bytes of payloads that may still turn out to be wrong: of records that lie within one another, all could claim
    /// the same large payload.
    private var wrongByteBudget = 4 << 30

    init(provenDurable: LogSequenceNumber, byCheckpoint checkpoint: LogSequenceNumber = .zero) {
      durable = provenDurable
      self.checkpoint = checkpoint
    }

    /// The segment behind the one that is read.
    struct Successor {
      var header: SegmentHeader
      /// Whether it has a record, or a successor of its own: they were written once the seal before it was durable.
      var isContinued: Bool
    }

    /// What the next record or segment has to follow; nil behind damage and at the beginning.
    private var link: SegmentScan.Link? {
      checksum.map { SegmentScan.Link(lsn: lastLSN, checksum: $0) }
    }

    /// Why a segment does not follow what was read before it; nil if it does, or if that is not known.
    func linkProblem(_ segment: Segment) -> LogCursor.Problem? {
      let header = segment.header
      guard header.firstLSN > lastLSN, let (offset, fault) = link?.fault(of: header) else {
        return nil
      }
      if segment.isTimeGuessed, header.firstLSN == lastLSN.next { return nil }
      return LogCursor.Problem(
        path: segment.path, offset: offset, expected: fault.expected, found: fault.found)
    }

    /// The segment that has to follow the last one, as its seal says, if it is not `next`; nil if nothing is missing.
    func missingSegment(before next: MissingSegment.Neighbour?) -> MissingSegment? {
      guard let sealed, next.map({ $0.firstLSN > lastLSN.next }) ?? true else { return nil }
      return MissingSegment(behind: sealed, after: lastLSN, before: next)
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
      sealed = nil
      isDisplaced = file.map.stretches.contains { $0.isDisplaced }
      isHistoryBroken = false
      var faults = Dictionary(
        file.map.faults.map { ($0.end, $0) }, uniquingKeysWith: { first, _ in first })
      var rest = Rest(file.map, of: segment)
      while var part = rest.next() {
        if isRead(part.stretch) { continue }
        if !part.isBegun {
          let fault = faults.removeValue(forKey: part.stretch.start)
          if let problem = problem(in: file, fault, before: part.stretch) {
            guard try isDamage(problem, before: next, visit) else { return }
            // Bytes between records of which none is missing are no part of the history.
            if !follows(part.stretch) {
              checksum = nil
              isHistoryBroken = true
              if let fault { try segment.keepDamaged(from: fault.start, to: fault.end) }
            }
          }
        }
        guard try read(&part, &rest, of: segment, before: next, visit) else { return }
      }
      for fault in faults.values.sorted(by: { $0.start < $1.start }) {
        var problem = Self.problem(in: file, fault)
        problem.isTail = sealed == nil && [.torn, .next].contains(decision(before: next))
        try visit(.problem(problem))
      }
      guard next == nil, sealed == nil, durable > lastLSN else { return }
      try visit(
        .problem(
          LogCursor.Problem(
            path: segment.path, offset: min(file.map.contentEnd, segment.byteCount),
            expected: "writes up to LSN \(durable)"
              + (durable == checkpoint ? ", as a checkpoint says" : ""),
            found: "the end of the log")))
    }

    /// Whether the writes of a stretch were read already: it is a copy.
    private func isRead(_ stretch: SegmentMap.Stretch) -> Bool {
      stretch.lastLSN < lastLSN || (stretch.lastLSN == lastLSN && stretch.firstLSN <= lastLSN)
    }

    /// Whether a stretch begins with the record behind the one that was read last.
    private func follows(_ stretch: SegmentMap.Stretch) -> Bool {
      link.map { $0.fault(of: stretch.first) == nil } ?? false
    }

    /// What is wrong in front of a stretch; nil if nothing is.
    private func problem(
      in file: Segment, _ fault: SegmentMap.Fault?, before stretch: SegmentMap.Stretch
    ) -> LogCursor.Problem? {
      if let fault { return Self.problem(in: file, fault) }
      guard stretch.firstLSN > lastLSN else { return nil }
      // Behind damage, what the record has to repeat is not known.
      let link = link ?? SegmentScan.Link(lsn: lastLSN, checksum: stretch.first.previousChecksum)
      return link.fault(of: stretch.first).map {
        LogCursor.Problem(
          path: file.path, offset: stretch.start, expected: $0.expected, found: $0.found)
      }
    }

    private static func problem(in file: Segment, _ fault: SegmentMap.Fault) -> LogCursor.Problem {
      var problem = LogCursor.Problem(
        path: file.path, offset: fault.start, expected: fault.expected, found: fault.found)
      problem.skippedByteCount = fault.end - fault.start
      return problem
    }

    /// What bad bytes behind the last record mean, by the decision table of recovery.
    private func decision(before next: Successor?) -> LogTail.Decision {
      let successor = next.map { next in
        link.map {
          LogTail.Successor(next.header, behind: $0, isContinued: next.isContinued)
        } ?? .denies
      }
      return LogTail(
        remainder: .damaged, successor: successor ?? .none, isNextProvenDurable: durable > lastLSN
      ).decision
    }

    /// Reports what is wrong in front of a record.
    ///
    /// - Returns: false if it is what a crash leaves: then nothing behind it counts. A crash displaces no record, and
    ///   damage in front of a record that refers to it is the reason if that cannot be read.
    private func isDamage(
      _ problem: LogCursor.Problem, before next: Successor?,
      _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) -> Bool {
      var problem = problem
      problem.isTail =
        !isDisplaced && !problem.dependsOnDamage && decision(before: next) == .torn
      try visit(.problem(problem))
      return !problem.isTail
    }

    /// Reads a stretch up to its end, or up to a record that cannot be read here, but perhaps elsewhere.
    ///
    /// - Returns: false behind the remains of a crash.
    private mutating func read(
      _ part: inout Rest.Part, _ rest: inout Rest, of segment: SegmentReader,
      before next: Successor?, _ visit: (Item) throws(StorageError) -> Void
    ) throws(StorageError) -> Bool {
      // The file may have changed since.
      while part.scan.offset < part.stretch.end, let record = try part.scan.header()?.record {
        // It was read at another place.
        if record.kind == .writes ? record.firstLSN <= lastLSN : record.lastLSN < lastLSN {
          part.scan.take(record)
          continue
        }
        // The records that were passed over may be others than those that were read instead.
        if record.kind == .writes, part.isBegun, record.firstLSN == lastLSN.next,
          let fault = link?.fault(of: record.header)
        {
          try visit(
            .problem(
              LogCursor.Problem(
                path: segment.path, offset: record.offset, expected: fault.expected,
                found: fault.found)))
          return true
        }
        if record.header.isRestart { isHistoryBroken = false }
        switch try payload(of: record, in: segment) {
        case .success(let payload):
          try take(record, payload, of: segment, visit)
        case .failure(let fault):
          if record.kind == .writes, try rest.putOff(part, until: record.firstLSN) { return true }
          var problem = LogCursor.Problem(
            path: segment.path, offset: record.offset, expected: fault.expected, found: fault.found)
          problem.skippedByteCount = min(record.endOffset, segment.byteCount) - record.offset
          let decision = decision(before: next)
          if record.kind == .seal, [.next, .nextBehindDamage].contains(decision) {
            problem.isTail = decision == .next
            try visit(.problem(problem))
            return true
          }
          problem.dependsOnDamage = isHistoryBroken && record.header.dependsOnHistory
          guard try isDamage(problem, before: next, visit) else { return false }
          isHistoryBroken = true
          if fault.isWhole { try segment.keepUnreadable(record) }
          try takeUnreadable(record, segment, visit)
        }
        part.scan.take(record)
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
        sealed = segment.neighbour
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
    ) throws(StorageError) -> Result<UnsafeRawBufferPointer, ReadFault> {
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
