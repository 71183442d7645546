package import DendroStorage
package import DendroTree

/// Gets every change of the head, in commit order, before any disk was touched.
package protocol CommitObserver: AnyObject, Sendable {
  /// Called under the admission lock, by the thread that writes: be quick, call no user code, do not
  /// call the engine.
  ///
  /// - Parameters:
  ///   - commit: what changed.
  ///   - root: the head after the change. Keeping it (or a node of it) is O(1) and costs later
  ///     writes a copy of the pages on their way.
  func committed(_ commit: borrowing Commit, root: borrowing Node)
}

/// One admitted write, or the undoing of the last ones.
package struct Commit: Sendable {
  /// Of the write that was admitted, or of the oldest one that was undone.
  package let lsn: LogSequenceNumber
  /// Milliseconds since 1970 at admission.
  package let time: Int64
  /// What changed, in that order; for an undo one change for each of the highest paths that did.
  package let changes: ArraySlice<Change>
  /// Whether the writes were undone because the disk refused them.
  package let isUndo: Bool

  init(lsn: LogSequenceNumber, time: Int64, changes: ArraySlice<Change>, isUndo: Bool) {
    self.lsn = lsn
    self.time = time
    self.changes = changes
    self.isUndo = isUndo
  }
}
