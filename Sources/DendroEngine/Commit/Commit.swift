package import DendroStorage
package import DendroTree

/// Receives every change of the head, in commit order, before the write is on the disk.
package protocol CommitObserver: AnyObject, Sendable {
  /// Whether `committed` has anything to do at this moment. Asked under the admission lock.
  var wantsCommits: Bool { get }

  /// Whether `committed` has anything to do where nothing but the leaf at this path changes. Asked under the
  /// admission lock, with every write of a leaf.
  func wantsCommit(ofLeafAt path: Path) -> Bool

  /// Called under the admission lock, on the writer's thread; for an undo on that of the cycle. It has to
  /// be quick, and may call neither user code nor the engine.
  ///
  /// - Parameters:
  ///   - commit: what changed.
  ///   - root: the head after the change. Keeping it (or a node of it) is O(1), but later writes then have
  ///     to copy the pages on their path.
  /// - Returns: whether `afterAdmission()` is to be called.
  func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool

  /// `committed` for a write that changed one leaf, which needs no `Commit` where the path says all.
  ///
  /// - Parameter change: makes what changed.
  func committed(
    leafAt path: Path, lsn: LogSequenceNumber, time: Int64, root: borrowing Node,
    change: () -> Change
  ) -> Bool

  /// Called where `committed` asked for it, on the same thread, once the admission lock is released.
  func afterAdmission()

  /// Called once where another process's writer cannot be followed any more: no commit follows.
  func failed(_ error: EngineError)
}

extension CommitObserver {
  package var wantsCommits: Bool { true }

  package func wantsCommit(ofLeafAt path: Path) -> Bool { wantsCommits }

  package func committed(
    leafAt path: Path, lsn: LogSequenceNumber, time: Int64, root: borrowing Node,
    change: () -> Change
  ) -> Bool {
    committed(Commit(lsn: lsn, time: time, changes: [change()], isUndo: false), root: root)
  }

  package func afterAdmission() {}

  package func failed(_ error: EngineError) {}
}

/// One admitted write, or the undo of all writes that were not acknowledged.
package struct Commit: Sendable {
  /// The write that was admitted, or the oldest one that was undone.
  package let lsn: LogSequenceNumber
  /// Milliseconds since 1970 at admission.
  package let time: Int64
  /// What changed, in that order; for an undo one change for each topmost path that changed.
  package let changes: ArraySlice<Change>
  /// Whether the writes were undone because the disk refused them; or the head was replaced as a whole, in an
  /// engine that follows another process.
  package let isUndo: Bool

  init(lsn: LogSequenceNumber, time: Int64, changes: ArraySlice<Change>, isUndo: Bool) {
    self.lsn = lsn
    self.time = time
    self.changes = changes
    self.isUndo = isUndo
  }
}
