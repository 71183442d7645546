package import DendroStorage
package import DendroTree

/// Receives every change of the head, in commit order, before the write is on the disk. If the engine shows writes only once a
/// shared log has them (`CoveredState`), the head is the covered one, and a change is that of a whole batch, after the shared
/// log has it.
package protocol CommitObserver: AnyObject, Sendable {
  /// Whether `committed` has anything to do at this moment with a write at this stored path, which is the common
  /// beginning of all that it changes. Asked under the admission lock, with every write.
  func wantsCommit(at storedPath: UnsafeRawBufferPointer) -> Bool

  /// Called under the admission lock, on the writer's thread; for an undo or a covered batch on that of the turn. It has to
  /// be quick, and may call neither user code nor the engine.
  ///
  /// - Parameters:
  ///   - commit: what changed.
  ///   - root: the head after the change. Keeping it (or a node of it) is O(1), but later writes then have
  ///     to copy the pages on their path.
  /// - Returns: whether `afterAdmission()` is to be called.
  func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool

  /// Called if `committed` asked for it, on the same thread, once the admission lock is released.
  func afterAdmission()

  /// Called when another process's writer cannot be followed any more, and before an undo brings back data that
  /// cannot be read. What commits show from then on may not be all that there is.
  func failed(_ error: EngineError)
}

extension CommitObserver {
  package func wantsCommit(at storedPath: UnsafeRawBufferPointer) -> Bool { true }

  package func afterAdmission() {}

  package func failed(_ error: EngineError) {}
}

/// One admitted write, a batch that a shared log has, or the undo of all writes that were not acknowledged.
package struct Commit {
  /// The write that was admitted, the last one of the batch, or the oldest one that was undone.
  package let lsn: LogSequenceNumber
  /// Milliseconds since 1970 at admission; of a batch or an undo, at the last admission.
  package let time: Int64
  /// Whether the writes were undone because the disk refused them; or the head was replaced as a whole, in an
  /// engine that follows another process.
  package let isUndo: Bool
  private let source: Source

  private enum Source {
    /// The entries of an undo log from a number on, and the tree after the write.
    case undo(UndoLog.Contents, from: Int, root: Node)
    case changes([Change])
  }

  init(
    lsn: LogSequenceNumber, time: Int64, replacing undo: UndoLog.Contents, from first: Int,
    root: Node
  ) {
    self.lsn = lsn
    self.time = time
    isUndo = false
    source = .undo(undo, from: first, root: root)
  }

  init(lsn: LogSequenceNumber, time: Int64, differences: [Change]) {
    self.lsn = lsn
    self.time = time
    isUndo = true
    source = .changes(differences)
  }

  /// The paths of the topmost nodes that changed, in the order of the changes; a later one may lie below an earlier one.
  package var paths: [Path] {
    switch source {
    case .undo(let undo, let first, _): undo.paths(from: first)
    case .changes(let changes): changes.map(\.path)
    }
  }

  /// What changed, in that order; for an undo one change for each topmost path that changed.
  package var changes: [Change] {
    switch source {
    case .undo(let undo, let first, let root):
      var changes = undo.replaced(from: first).map { path, node in
        Change(path: path, replaced: node, new: .empty)
      }
      changes.complete(in: root)
      return changes
    case .changes(let changes): return changes
    }
  }
}
