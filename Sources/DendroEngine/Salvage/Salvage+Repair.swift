package import DendroStorage
package import DendroTree

extension Salvage {
  /// What a repair saves, and what it cannot.
  package struct Plan: Sendable {
    /// The state with which putting the trees together begins.
    var start: LogSequenceNumber
    /// The state with which the new database begins: its log continues behind it.
    package var base: LogSequenceNumber
    /// The last write of the new database.
    package var last: LogSequenceNumber
    /// The writes that no file holds any more, neither the log nor a checkpoint.
    package var lost: [ClosedRange<UInt64>]
    /// The last of `lost` with saved writes behind it. The tree is then one that never was: the paths that were
    /// not set behind it may be older than they should be.
    package var gap: ClosedRange<UInt64>?
    /// The first state that the new database has with writes behind it, or its only one. At `base` itself it may have one
    /// that never was: without the lost writes.
    package var historyStart: LogSequenceNumber {
      gap.map { $0.upperBound == base.rawValue } ?? false ? base.next : base
    }
    /// The damaged checkpoints whose rest is used.
    var partials: [PartialCheckpoint]
  }

  /// A subtree of the new database in which leaves may be older than those of the damaged one.
  package struct Doubt: Sendable {
    package var path: Path
    package var leafCount: Int
    /// Whether no leaf of it is certain.
    package var isWhole: Bool
  }

  package struct Outcome: Sendable {
    package var plan: Plan
    package var leafCount: Int
    package var contentHash: UInt64
    /// In the order of paths.
    package var doubts: [Doubt]
    /// What damaged checkpoints have lost.
    package var holes: [PartialTree.Hole]
    /// Whether the second root is in doubt.
    package var isSystemInDoubt: Bool
    /// What was in the second root, if it is in doubt: the new database has nothing there, since what it asks for may have
    /// been done already, or cancelled. The last write of the new database removes it.
    package var withdrawn: Node

    /// Whether nothing is missing that the files prove.
    package var isWhole: Bool { plan.lost.isEmpty && holes.isEmpty && !isSystemInDoubt }

    /// Whether the data are as they were after the last write.
    package var isCertain: Bool { plan.lost.isEmpty && holes.isEmpty && doubts.isEmpty }
  }

  package var plan: Plan {
    let partials = self.partials
    let whole = bases.last ?? .zero
    let newest = newestCheckpoint
    let last = max(newest, LogSequenceNumber(readable.last?.upperBound ?? 0))
    let lost = newest < end ? unreadable(newest.rawValue + 1, end.rawValue) : []
    let gap = lost.last { $0.upperBound < last.rawValue }
    if gap == nil, partials.isEmpty {
      // The oldest proven state from which the log leads to the last write.
      let base = bases.first { $0 == last || proven(from: $0) == last } ?? newest
      return Plan(start: base, base: base, last: last, lost: lost, gap: nil, partials: [])
    }
    let base = max(LogSequenceNumber(gap?.upperBound ?? 0), newest)
    return Plan(
      start: whole, base: base, last: last, lost: lost, gap: gap, partials: partials)
  }

  /// What a repair does that writes the last proven state, and nothing behind it; nil if no state is proven.
  package var planBeforeGap: Plan? {
    guard let last = lastProven else { return nil }
    let base = bases.first { $0 <= last && proven(from: $0) == last } ?? last
    let lost = last < end ? [last.rawValue + 1...end.rawValue] : []
    return Plan(start: base, base: base, last: last, lost: lost, gap: nil, partials: [])
  }

  /// The present tree, and what of it is lost; nil if writes are missing, so that no location is surely as it was.
  package func present() throws(StorageError) -> Present? { try builtPresent()?.present }

  /// What is left of a damaged database.
  package struct Present: Sendable {
    package let state: HistoryState
    /// What of the data is lost.
    package let holes: [PartialTree.Hole]
    /// Whether the second root may differ from what it was.
    package let isSystemInDoubt: Bool
  }

  /// The present tree if all of it is as it was, though no state before proves it: what a damaged checkpoint has lost is
  /// in older files, or was replaced since. Nil if it is not.
  func assembled() throws(StorageError) -> HistoryState? {
    guard let builder = try builtPresent() else { return nil }
    return builder.outcome.isCertain ? builder.present.state : nil
  }

  private func builtPresent() throws(StorageError) -> Builder? {
    let plan = self.plan
    guard plan.last > .zero, plan.lost.isEmpty, missingEnd == nil else { return nil }
    var builder = try Builder(self, plan)
    try builder.build(into: nil)
    return builder
  }

  /// Does what a repair would do, without writing anything.
  package func rehearse(_ plan: Plan) throws(StorageError) -> Outcome {
    var builder = try Builder(self, plan)
    try builder.build(into: nil)
    return builder.outcome
  }

  /// Writes a new database with everything that a plan saves. Every write keeps its number and its time.
  ///
  /// - Parameters:
  ///   - plan: nil for everything that can be saved.
  ///   - path: absolute; of a directory that does not exist yet, is empty, or holds an unfinished backup.
  /// - Throws: `.io`; what was written is removed then.
  package func repair(_ plan: Plan? = nil, to path: String) throws(StorageError) -> Outcome {
    let plan = plan ?? self.plan
    return try DatabaseDirectory.make(at: path, environment: directory.environment) {
      (target) throws(StorageError) in
      var builder = try Builder(self, plan)
      try builder.build(into: target)
      try target.finishBackup()
      return builder.outcome
    }
  }

  /// Puts the trees together, and the new log with them.
  private struct Builder {
    let salvage: Salvage
    private(set) var plan: Plan
    private var state: SalvagedState
    /// Damaged checkpoints that the state has not come to yet.
    private var partials: ArraySlice<PartialCheckpoint>
    private var withdrawn = Node.empty

    init(_ salvage: Salvage, _ plan: Plan) throws(StorageError) {
      self.salvage = salvage
      self.plan = plan
      partials = plan.partials[...]
      let isCertain = salvage.bases.contains(plan.start)
      state = SalvagedState(
        try salvage.roots(of: plan.start), lsn: plan.start, time: try salvage.time(of: plan.start),
        isCertain: isCertain)
    }

    /// The trees as far as they are certain.
    var present: Present {
      Present(
        state: HistoryState(roots: state.roots, lsn: state.lsn, time: state.time),
        holes: state.holes, isSystemInDoubt: isSystemInDoubt)
    }

    var outcome: Outcome {
      var doubts: [Doubt] = []
      if let certain = state.certain {
        Salvage.collect(&doubts, at: .root, of: state.roots.data, lackedBy: certain)
      }
      return Outcome(
        plan: plan, leafCount: state.roots.data.leafCount(),
        contentHash: CheckpointCoding.contentHash(of: state.roots.data), doubts: doubts,
        holes: state.holes,
        isSystemInDoubt: isSystemInDoubt, withdrawn: withdrawn)
    }

    private var isSystemInDoubt: Bool {
      !state.isSystemCertain && (salvage.hasSecondRoot || !state.roots.system.isEmpty)
    }

    mutating func build(into target: DatabaseDirectory?) throws(StorageError) {
      let id = salvage.databaseID ?? DatabaseID(salvage.directory.environment.randomness)
      var log: LogWriter?
      var builder = self
      _ = try salvage.read { (item) throws(StorageError) in
        guard case .record(let record, _, let payload?) = item, record.firstLSN <= plan.last
        else { return }
        builder.merge(upTo: record.firstLSN.previous)
        guard record.lastLSN > builder.state.lsn, RecordWrites.problem(record, payload) == nil
        else { return }
        if record.firstLSN <= builder.plan.base {
          // A record that lies across the base belongs to it.
          builder.plan.base = max(builder.plan.base, min(record.lastLSN, plan.last))
        } else if let target {
          if log == nil { log = try builder.begin(id, target) }
          try log?.append(record, payload)
        }
        _ = RecordWrites.forEach(record, payload) { logged in
          if logged.lsn <= plan.last { builder.state.apply(logged) }
          builder.merge(upTo: logged.lsn)
          return true
        }
      }
      builder.merge(upTo: plan.last)
      self = builder
      if let target, log == nil { log = try begin(id, target) }
      try withdraw(log)
      try log?.close()
    }

    /// Empties the second root if it is in doubt, by one more write, but for rules that lock and the name of a new history.
    private mutating func withdraw(_ log: LogWriter?) throws(StorageError) {
      guard isSystemInDoubt else { return }
      withdrawn = state.roots.system
      plan.last = plan.last.next
      guard let log else { return }
      var left = ServerRules.root(inPlaceOf: withdrawn)
      SyncedClient.keep(from: withdrawn, in: &left)
      NumberedResults.beginHistory(in: &left) {
        salvage.directory.environment.randomness.next()
      }
      let change = EncodedWrite(
        nil, system: EncodedWrite(.set(.root, left)))
      change.prepare(isLogged: true)
      var encoder = BatchEncoder()
      change.withView { write in
        _ = encoder.append(write, extras: change, lsn: plan.last, time: state.time)
      }
      try encoder.payload.withBytes { (bytes) throws(StorageError) in
        try log.stage(bytes, firstLSN: plan.last, count: 1, baseTime: state.time)
      }
      try log.write()
    }

    /// Goes on with damaged checkpoints up to a write.
    private mutating func merge(upTo lsn: LogSequenceNumber) {
      while let next = partials.first, next.lsn <= lsn {
        partials.removeFirst()
        state.merge(next)
      }
    }

    /// Writes the checkpoint of the base, if there is one, and begins the log behind it.
    private func begin(_ id: DatabaseID, _ target: DatabaseDirectory) throws(StorageError)
      -> LogWriter
    {
      var logChecksum: UInt32 = 0
      if plan.base > .zero {
        // As for a backup: binds the checkpoint to this log.
        logChecksum = UInt32(truncatingIfNeeded: target.environment.randomness.next())
        _ = try CheckpointCoding.write(
          state.roots, lsn: plan.base, time: state.time, databaseID: id, logChecksum: logChecksum,
          to: target, isCancelled: { false })
      }
      return try LogWriter.create(
        target, databaseID: id, after: plan.base, logChecksum: logChecksum, time: state.time,
        hasSecondRoot: salvage.hasSecondRoot || !state.roots.system.isEmpty)
    }
  }

  /// Counts the leaves of `all` that `certain` lacks: of each location of which no leaf is certain, else by the first two
  /// keys of their paths.
  private static func collect(
    _ doubts: inout [Doubt], at path: Path, of all: Node, lackedBy certain: Node
  ) {
    if all.isBranch, certain.isBranch, path.count < 2 {
      for (key, child) in all.children {
        let path = path.appending(key)
        collect(&doubts, at: path, of: child, lackedBy: certain.child(key))
      }
      return
    }
    let count = doubtfulLeafCount(certain, all)
    if count == 0 { return }
    doubts.append(Doubt(path: path, leafCount: count, isWhole: !certain.isBranch))
  }

  private static func doubtfulLeafCount(_ certain: Node, _ all: Node) -> Int {
    guard all.isBranch else { return all.isEmpty || certain.isLeaf ? 0 : 1 }
    guard certain.isBranch else { return all.leafCount() }
    return all.children.reduce(0) { $0 + doubtfulLeafCount(certain.child($1.key), $1.node) }
  }
}

extension LogWriter {
  /// Appends the writes of a record of another log.
  fileprivate func append(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer)
    throws(StorageError)
  {
    guard record.firstLSN == nextLSN else {
      throw .corrupt(
        path: record.segment.fileName, offset: record.offset, expected: "first LSN \(nextLSN)",
        found: "\(record.firstLSN), which the first reading of the log did not find")
    }
    try stage(payload, firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime)
    try write()
    if wantsRoll { try roll(time: record.baseTime) }
  }
}
