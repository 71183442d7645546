package import DendroStorage
package import DendroTree

extension Salvage {
  /// What a repair saves, and what it cannot.
  package struct Plan: Sendable {
    /// The state with which the new database begins: its log continues behind it.
    package var base: LogSequenceNumber
    /// The last write of the new database.
    package var last: LogSequenceNumber
    /// The writes that no file holds any more, neither the log nor a checkpoint.
    package var lost: [ClosedRange<UInt64>]
    /// The last of `lost` with saved writes behind it. The tree is then one that never was: the paths that were
    /// not set behind it may be older than they should be.
    package var gap: ClosedRange<UInt64>?
  }

  /// A subtree of the new database in which leaves may be older than those of the damaged one.
  package struct Doubt: Sendable {
    package var path: Path
    package var leafCount: Int
  }

  package struct Outcome: Sendable {
    package var plan: Plan
    package var leafCount: Int
    package var contentHash: UInt64
    /// In the order of paths.
    package var doubts: [Doubt]
  }

  package var plan: Plan {
    let newest = bases.last ?? .zero
    let last = max(newest, LogSequenceNumber(readable.last?.upperBound ?? 0))
    let lost = newest < end ? unreadable(newest.rawValue + 1, end.rawValue) : []
    if let gap = lost.last(where: { $0.upperBound < last.rawValue }) {
      return Plan(base: LogSequenceNumber(gap.upperBound), last: last, lost: lost, gap: gap)
    }
    // The oldest proven state from which the log leads to the last write.
    let base = bases.first { $0 == last || proven(from: $0) == last } ?? newest
    return Plan(base: base, last: last, lost: lost, gap: nil)
  }

  /// Does what a repair would do, without writing anything.
  package func rehearse() throws(StorageError) -> Outcome {
    var builder = try Builder(self, plan)
    try builder.build(into: nil)
    return builder.outcome
  }

  /// Writes a new database with everything that can be saved. Every write keeps its number and its time.
  ///
  /// - Parameter path: absolute; of a directory that does not exist yet, is empty, or holds an unfinished
  ///   backup.
  /// - Throws: `.io`; what was written is removed then.
  package func repair(to path: String) throws(StorageError) -> Outcome {
    try DatabaseDirectory.make(at: path, environment: directory.environment) {
      (target) throws(StorageError) in
      var builder = try Builder(self, plan)
      try builder.build(into: target)
      try target.finishBackup()
      return builder.outcome
    }
  }

  /// Puts the tree together, and the new log with it.
  private struct Builder {
    let salvage: Salvage
    private(set) var plan: Plan
    private var roots: TreeRoots
    /// What was set behind the gap, in a tree of its own: the rest of the data is in doubt.
    private var certain = Node.empty
    private var time: Int64 = 0
    /// The state up to which `roots` are built.
    private var lsn: LogSequenceNumber

    init(_ salvage: Salvage, _ plan: Plan) throws(StorageError) {
      self.salvage = salvage
      self.plan = plan
      lsn = plan.gap == nil ? plan.base : salvage.bases.last ?? .zero
      roots = try salvage.roots(of: lsn)
      if lsn > .zero { time = try CheckpointReader.open(salvage.directory, lsn: lsn).time }
    }

    var outcome: Outcome {
      var doubts: [Doubt] = []
      if plan.gap != nil { Salvage.collect(&doubts, at: .root, of: roots.data, lackedBy: certain) }
      return Outcome(
        plan: plan, leafCount: roots.data.leafCount(),
        contentHash: CheckpointCoding.contentHash(of: roots.data), doubts: doubts)
    }

    mutating func build(into target: DatabaseDirectory?) throws(StorageError) {
      let id = salvage.databaseID ?? DatabaseID(salvage.directory.environment.randomness)
      var log: LogWriter?
      var builder = self
      _ = try salvage.read { (item) throws(StorageError) in
        guard case .record(let record, _, let payload?) = item, record.lastLSN > builder.lsn
        else { return }
        guard RecordWrites.problem(record, payload) == nil else { return }
        if record.firstLSN <= builder.plan.base {
          // A record that lies across the base belongs to it.
          builder.plan.base = max(builder.plan.base, record.lastLSN)
        } else if let target {
          if log == nil { log = try builder.begin(id, target) }
          try log?.append(record, payload)
        }
        _ = RecordWrites.forEach(record, payload) { logged in
          builder.apply(logged)
          return true
        }
      }
      self = builder
      guard let target else { return }
      if log == nil { log = try begin(id, target) }
      try log?.close()
    }

    private mutating func apply(_ logged: LoggedWrite) {
      guard logged.lsn > lsn else { return }
      roots.apply(logged)
      lsn = logged.lsn
      time = max(time, logged.time)
      if let gap = plan.gap, logged.lsn.rawValue > gap.upperBound {
        certain.applyCertain(logged.write)
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
          roots, lsn: plan.base, time: time, databaseID: id, logChecksum: logChecksum, to: target,
          isCancelled: { false })
      }
      return try LogWriter.create(
        target, databaseID: id, after: plan.base, logChecksum: logChecksum, time: time,
        hasSecondRoot: salvage.hasSecondRoot || !roots.system.isEmpty)
    }
  }

  /// Counts the leaves of `all` that `certain` lacks, by the first two keys of their paths.
  private static func collect(
    _ doubts: inout [Doubt], at path: Path, of all: Node, lackedBy certain: Node
  ) {
    if all.isBranch, path.count < 2 {
      for (key, child) in all.children {
        let path = path.appending(key)
        collect(&doubts, at: path, of: child, lackedBy: certain.child(key))
      }
      return
    }
    let count = doubtfulLeafCount(certain, all)
    if count > 0 { doubts.append(Doubt(path: path, leafCount: count)) }
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
    try stage(payload, firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime)
    try write()
    if wantsRoll { try roll(time: record.baseTime) }
  }
}

extension Node {
  /// Applies what a write does whatever was there before: an increment counts only if the number that it
  /// adds to is certain.
  fileprivate mutating func applyCertain(_ write: Write) {
    switch write {
    case .increment(let path, _):
      if node(at: path).isLeaf { _ = apply(write) }
    case .update(let base, let entries):
      let certain = entries.filter { entry in
        guard case .increment = entry.action else { return true }
        return node(at: base.appending(entry.path)).isLeaf
      }
      if !certain.isEmpty { _ = apply(.update(base, certain)) }
    case .set, .remove, .setPriority:
      _ = apply(write)
    }
  }
}
