package import DendroStorage

/// Decides which segments and checkpoints are obsolete, and removes them. `Checkpointing` calls it after each
/// checkpoint.
///
/// For opening, two readable checkpoints are kept, and the log since the older of them, so that the database
/// still opens if the newest is damaged.
///
/// For history, the log reaches further back, to a *base checkpoint*: a checkpoint, or write 0 if the log
/// begins with write 1. Of the checkpoints in between, those are kept that limit a replay to the length to
/// which the options let the log grow between two; others, taken on request, are removed.
package enum Retention {
  /// Bytes of log that are kept for a follower which falls behind, beyond what the options keep.
  package static let followerByteLimit: UInt64 = 256 << 20

  /// What the decision depends on, beside the files.
  package struct Rules: Sendable {
    package var history = HistoryRetention.none
    /// Milliseconds since 1970.
    package var now: Int64 = 0
    /// As in `EngineOptions`.
    package var checkpointFactor: Double = 4
    package var checkpointByteMin: UInt64 = 16 << 20
    /// The checkpoints from which a state is being rebuilt: the log after them stays.
    package var rebuilding: [LogSequenceNumber] = []
    /// The last writes that followers have seen: the log after them stays within a limit.
    package var followed: [LogSequenceNumber] = []

    package init() {}

    /// Whether the decision needs the sizes of the files.
    var needsSizes: Bool { history != .none || !followed.isEmpty }
  }

  /// The files to decide on.
  package struct Files: Sendable {
    package struct Segment: Sendable {
      package var firstLSN: LogSequenceNumber
      package var byteCount: UInt64

      package init(firstLSN: LogSequenceNumber, byteCount: UInt64) {
        self.firstLSN = firstLSN
        self.byteCount = byteCount
      }
    }

    package struct Checkpoint: Sendable {
      package var lsn: LogSequenceNumber
      package var byteCount: UInt64
      /// Whether opening can rely on it: it can be read, and its name is durable.
      package var isReadable: Bool

      package init(lsn: LogSequenceNumber, byteCount: UInt64, isReadable: Bool = true) {
        self.lsn = lsn
        self.byteCount = byteCount
        self.isReadable = isReadable
      }
    }

    /// Ascending.
    package var segments: [Segment]
    /// Ascending.
    package var checkpoints: [Checkpoint]

    package init(segments: [Segment], checkpoints: [Checkpoint]) {
      self.segments = segments
      self.checkpoints = checkpoints
    }
  }

  package struct ObsoleteFiles: Hashable, Sendable {
    package var segments: [SegmentName] = []
    package var checkpoints: [LogSequenceNumber] = []

    package init() {}
  }

  /// Removes obsolete files. Repeated after a crash, it removes the rest.
  ///
  /// - Returns: false, and not everything was removed, if a reader holds the directory.
  @discardableResult
  static func apply(
    _ directory: DatabaseDirectory, _ rules: Rules, uncounted: Set<LogSequenceNumber>,
    expecting checkpoint: LogSequenceNumber? = nil
  ) throws(StorageError) -> Bool {
    var files = try files(directory, sizes: rules.needsSizes, uncounted: uncounted)
    if let checkpoint { files.checkpoints.append(.init(lsn: checkpoint, byteCount: 0)) }
    let obsolete = obsolete(files, rules) { lsn in
      try? CheckpointReader.open(directory, lsn: lsn).time
    }
    guard try remove(obsolete, directory) else { return false }
    try directory.removeOrphanedParity()
    if let last = obsolete.segments.last {
      try directory.pruneTornFiles(before: SegmentName(firstLSN: last.firstLSN.next))
    }
    return true
  }

  /// Removes checkpoints, then segments, oldest first. The checkpoints are durably gone before the first
  /// segment is removed, and each segment before the next, so that a crash leaves neither a checkpoint
  /// whose log is missing nor a gap in the log: both would look like damage.
  ///
  /// If a reader has opened meanwhile, it may be about to read the files: they are removed the next time.
  /// Readers are locked out for one removal at a time, since they do not wait for long.
  ///
  /// - Parameter check: called before each removal, while no reader can open the directory.
  /// - Returns: false if a reader holds the directory.
  static func remove(
    _ obsolete: ObsoleteFiles, _ directory: DatabaseDirectory,
    check: () throws(StorageError) -> Void = {}
  ) throws(StorageError) -> Bool {
    for lsn in obsolete.checkpoints {
      let isFree = try directory.withoutReaders { () throws(StorageError) in
        try check()
        try directory.removeCheckpoint(lsn)
      }
      guard isFree else { return false }
    }
    if !obsolete.checkpoints.isEmpty, !obsolete.segments.isEmpty { try directory.synchronize() }
    for segment in obsolete.segments {
      let isFree = try directory.withoutReaders { () throws(StorageError) in
        try check()
        try directory.removeSegment(segment)
        try directory.synchronize()
      }
      guard isFree else { return false }
    }
    return true
  }

  private static func files(
    _ directory: DatabaseDirectory, sizes: Bool, uncounted: Set<LogSequenceNumber>
  ) throws(StorageError) -> Files {
    let contents = try directory.contents()
    var files = Files(segments: [], checkpoints: [])
    for segment in contents.segments {
      files.segments.append(
        .init(
          firstLSN: segment.firstLSN, byteCount: sizes ? try directory.byteCount(of: segment) : 0))
    }
    for lsn in contents.checkpoints {
      files.checkpoints.append(
        .init(
          lsn: lsn, byteCount: sizes ? try directory.byteCount(ofCheckpoint: lsn) : 0,
          isReadable: !uncounted.contains(lsn)))
    }
    return files
  }

  // MARK: The decision, apart from the disk

  /// The obsolete files, in ascending order.
  ///
  /// - Parameters:
  ///   - files: all segments and checkpoints.
  ///   - rules: what is kept.
  ///   - time: returns the time of the write at which a checkpoint stands; nil if it cannot be read.
  package static func obsolete(
    _ files: Files, _ rules: Rules, time: (LogSequenceNumber) -> Int64?
  ) -> ObsoleteFiles {
    let readable = files.checkpoints.filter(\.isReadable)
    let keptCount = 2
    guard readable.count >= keptCount, let first = files.segments.first, let newest = readable.last
    else { return ObsoleteFiles() }
    let older = readable[readable.count - keptCount].lsn
    var bases = readable.dropLast(keptCount).filter { first.firstLSN <= $0.lsn.next }
    if first.firstLSN == LogSequenceNumber(1) {
      bases.insert(.init(lsn: .zero, byteCount: 0), at: 0)
    }
    let kept = Thinning(files: files, rules: rules).kept(bases, before: older)
    var base = older
    switch rules.history {
    case .none: break
    case .all: base = kept.first?.lsn ?? older
    case .writes(let count):
      let last = newest.lsn.rawValue
      let target = LogSequenceNumber(last > count ? last - count : 0)
      if target < older { base = (kept.last { $0.lsn <= target } ?? kept.first)?.lsn ?? older }
    case .milliseconds(let duration):
      let (start, overflow) = rules.now.subtractingReportingOverflow(duration)
      if let covering = lastBase(
        kept.map(\.lsn) + [older], at: overflow ? .min : start, time: time)
      {
        base = covering
      }
    case .bytes(let limit):
      base = kept.first { files.byteCount(from: $0.lsn, to: older, kept) <= limit }?.lsn ?? older
    }
    for lsn in rules.rebuilding where lsn < base {
      base = (kept.last { $0.lsn <= lsn } ?? kept.first)?.lsn ?? base
    }
    for lsn in rules.followed where lsn < base {
      guard let wanted = kept.last(where: { $0.lsn <= lsn })?.lsn,
        files.logByteCount(from: wanted, to: base) <= followerByteLimit
      else { continue }
      base = wanted
    }
    var obsolete = ObsoleteFiles()
    obsolete.segments = files.segments(before: base).map { SegmentName(firstLSN: $0.firstLSN) }
    // A rebuild has its checkpoint open already, so that it may be removed.
    let staying = Set(kept.lazy.map(\.lsn).filter { $0 >= base })
    obsolete.checkpoints = files.checkpoints.map(\.lsn).filter {
      $0 < older && !staying.contains($0)
    }
    return obsolete
  }

  /// The newest of the bases that is not later than `start`; the first if all are later. A base whose
  /// time is not known is passed over.
  ///
  /// - Parameter bases: ascending.
  private static func lastBase(
    _ bases: [LogSequenceNumber], at start: Int64, time: (LogSequenceNumber) -> Int64?
  ) -> LogSequenceNumber? {
    var found = bases.first
    for lsn in bases where lsn > .zero {
      guard let time = time(lsn) else { continue }
      guard time <= start else { break }
      found = lsn
    }
    return found
  }
}

/// Selects which of the checkpoints that opening does not need are kept for history.
private struct Thinning {
  let files: Retention.Files
  let rules: Retention.Rules

  /// The first one, and each one without which the log between its neighbours would be longer than the
  /// options let it grow after the one before. Applied again to the result, it gives the same.
  func kept(_ bases: [Retention.Files.Checkpoint], before older: LogSequenceNumber)
    -> [Retention.Files.Checkpoint]
  {
    guard var last = bases.first else { return [] }
    var kept = [last]
    for (index, base) in bases.enumerated().dropFirst() {
      let next = index + 1 < bases.count ? bases[index + 1].lsn : older
      guard Double(files.logByteCount(from: last.lsn, to: next)) > limit(after: last) else {
        continue
      }
      kept.append(base)
      last = base
    }
    return kept
  }

  private func limit(after checkpoint: Retention.Files.Checkpoint) -> Double {
    let factor = rules.checkpointFactor > 0 ? rules.checkpointFactor : 4
    return max(Double(rules.checkpointByteMin), factor * Double(checkpoint.byteCount))
  }
}

extension Retention.Files {
  /// Bytes of the segments that begin between two writes: about what a replay reads.
  fileprivate func logByteCount(from start: LogSequenceNumber, to end: LogSequenceNumber)
    -> UInt64
  {
    segments.reduce(0) { $1.firstLSN > start && $1.firstLSN <= end ? $0 + $1.byteCount : $0 }
  }

  /// The segments without a write after `base`. A segment's writes end where the next one's begin; the last
  /// segment is never among them.
  fileprivate func segments(before base: LogSequenceNumber) -> [Segment] {
    zip(segments, segments.dropFirst()).filter { $1.firstLSN <= base.next }.map(\.0)
  }

  /// Bytes of the files that are kept with the base `start` and removed with the base `end`.
  fileprivate func byteCount(
    from start: LogSequenceNumber, to end: LogSequenceNumber, _ kept: [Checkpoint]
  ) -> UInt64 {
    let obsolete = segments(before: start).count
    let log = segments(before: end).dropFirst(obsolete).reduce(0) { $0 + $1.byteCount }
    return kept.reduce(log) { $1.lsn >= start && $1.lsn < end ? $0 + $1.byteCount : $0 }
  }
}
