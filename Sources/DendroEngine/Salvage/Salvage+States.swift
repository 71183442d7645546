package import DendroStorage
import DendroTree

extension Salvage {
  /// States that need no write before them: the empty tree if the log begins with write 1, and those of whole
  /// checkpoints. Ascending.
  var bases: [LogSequenceNumber] {
    (readable.first?.lowerBound == 1 ? [.zero] : [])
      + checkpoints.filter(\.isWhole).map(\.lsn)
  }

  /// What is left of damaged checkpoints whose states nothing proves. Ascending.
  var partials: [PartialCheckpoint] {
    let proven = lastProven ?? .zero
    return checkpoints.compactMap(\.partial).filter {
      !$0.isWhole && $0.lsn > proven && !$0.data.root.isEmpty
    }
  }

  /// The newest damaged checkpoint with chunks to which nothing leads, unless its state is proven otherwise; nil if
  /// there is none.
  package var apart: PartialCheckpoint? {
    let proven = lastProven ?? .zero
    return checkpoints.last { $0.lsn > proven && !($0.partial?.data.orphans.isEmpty ?? true) }?
      .partial
  }

  /// Files with other writes under the numbers of those that are saved. Ascending by their first writes.
  package var forks: [LogSalvage.Segment] { log.forks }

  /// Reads the writes of a fork, as far as they can be read.
  ///
  /// - Throws: `.io`; what `body` throws.
  package func forEachWrite(
    of fork: LogSalvage.Segment, _ body: (LoggedWrite) throws(StorageError) -> Void
  ) throws(StorageError) {
    try log.read(fork: fork) { (record, payload) throws(StorageError) in
      _ = try RecordWrites.forEach(record, payload) { (write) throws(StorageError) in
        try body(write)
        return true
      }
    }
  }

  /// The time of a base, milliseconds since 1970.
  func time(of base: LogSequenceNumber) throws(StorageError) -> Int64 {
    if base == .zero { return 0 }
    if let partial = checkpoints.first(where: { $0.lsn == base })?.partial { return partial.time }
    return try CheckpointReader.open(directory, lsn: base).time
  }

  /// The last state that the log proves from `base` on.
  func proven(from base: LogSequenceNumber) -> LogSequenceNumber {
    let run = readable.first { $0.contains(base.rawValue + 1) }
    return run.map { LogSequenceNumber($0.upperBound) } ?? base
  }

  /// The last state that bases prove; nil if there is none.
  package var lastProven: LogSequenceNumber? { bases.map { proven(from: $0) }.max() }

  /// The ranges of states that bases prove, ascending and apart.
  package var provenRanges: [ClosedRange<UInt64>] {
    var ranges: [ClosedRange<UInt64>] = []
    for base in bases {
      let range = base.rawValue...proven(from: base).rawValue
      if let last = ranges.last, last.upperBound >= range.lowerBound {
        ranges[ranges.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
      } else {
        ranges.append(range)
      }
    }
    return ranges
  }

  /// The tree after a write; nil if that state is not proven.
  package func state(at lsn: LogSequenceNumber) throws(StorageError) -> HistoryState? {
    guard let base = bases.last(where: { $0 <= lsn && proven(from: $0) >= lsn }) else {
      return lsn == plan.last ? try assembled() : nil
    }
    var roots = try roots(of: base)
    guard let time = try apply(after: base, through: lsn, to: &roots) else {
      return HistoryState(roots: roots, lsn: lsn, time: try time(of: base))
    }
    return HistoryState(roots: roots, lsn: lsn, time: time)
  }

  /// The last state that is proven; nil if none is.
  package func lastProvenState() throws(StorageError) -> HistoryState? {
    if let state = try state(at: plan.last) { return state }
    guard let last = lastProven else { return nil }
    return try state(at: last)
  }

  /// The tree at a time, in milliseconds since 1970; nil if that state is not proven.
  package func state(atTime time: Int64) throws(StorageError) -> HistoryState? {
    var next: LogSequenceNumber?
    _ = try read { (item) throws(StorageError) in
      guard next == nil, case .record(let record, _, let payload?) = item else { return }
      _ = RecordWrites.forEach(record, payload) { write in
        if write.time > time { next = write.lsn }
        return next == nil
      }
    }
    if let next { return try state(at: next.previous) }
    // Lost writes at the end may be older.
    guard plan.last == end, missingEnd == nil else { return nil }
    return try state(at: end)
  }

  /// The trees of a base.
  func roots(of base: LogSequenceNumber) throws(StorageError) -> TreeRoots {
    if base == .zero { return TreeRoots() }
    if let partial = checkpoints.first(where: { $0.lsn == base })?.partial {
      return TreeRoots(data: partial.data.root, system: partial.system?.root ?? .empty)
    }
    return try CheckpointCoding.roots(
      CheckpointReader.open(directory, lsn: base), progress: progress)
  }

  /// - Returns: the time of the last write, in milliseconds since 1970; nil if none was applied.
  private func apply(
    after lsn: LogSequenceNumber, through last: LogSequenceNumber, to roots: inout TreeRoots
  ) throws(StorageError) -> Int64? {
    guard lsn < last else { return nil }
    var trees = roots
    var time: Int64?
    // The only references change in place.
    roots = TreeRoots()
    _ = try read { (item) throws(StorageError) in
      guard case .record(let record, _, let payload?) = item, record.lastLSN > lsn,
        record.firstLSN <= last
      else { return }
      _ = RecordWrites.forEach(record, payload) { logged in
        if logged.lsn > lsn, logged.lsn <= last {
          trees.apply(logged)
          time = logged.time
        }
        return logged.lsn < last
      }
    }
    roots = trees
    return time
  }
}

extension Salvage {
  /// The writes from `first` to `last` that cannot be read.
  func unreadable(_ first: UInt64, _ last: UInt64) -> [ClosedRange<UInt64>] {
    var gaps: [ClosedRange<UInt64>] = []
    var next = first
    for range in readable where range.upperBound >= first && range.lowerBound <= last {
      if range.lowerBound > next { gaps.append(next...(range.lowerBound - 1)) }
      next = max(next, range.upperBound + 1)
    }
    if next <= last { gaps.append(next...last) }
    return gaps
  }

  /// The newest checkpoint of which anything can be used.
  package var newestCheckpoint: LogSequenceNumber {
    max(bases.last ?? .zero, partials.last?.lsn ?? .zero)
  }

  /// Writes that cannot be read, but whose effect a later checkpoint holds: the states between are lost.
  package var lostHistory: [ClosedRange<UInt64>] {
    let base = newestCheckpoint
    guard start <= base else { return [] }
    return unreadable(start.rawValue, base.rawValue)
  }
}
