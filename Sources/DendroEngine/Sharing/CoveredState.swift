import DendroStorage
import DendroTree

/// What readers and the observer of an engine see that shows a write only once the shared log has it.
struct CoveredState {
  private(set) var roots: TreeRoots
  private(set) var lsn: LogSequenceNumber
  /// The head behind the batch that a turn has taken, which is shown once the log has it.
  private var next: (roots: TreeRoots, lsn: LogSequenceNumber)?

  init(_ roots: TreeRoots, _ lsn: LogSequenceNumber) {
    self.roots = roots
    self.lsn = lsn
  }

  /// Notes the head behind a batch that is about to be appended.
  mutating func take(_ roots: TreeRoots, _ lsn: LogSequenceNumber) { next = (roots, lsn) }

  /// Shows the batch that was appended.
  mutating func show() {
    guard let next else { return }
    (roots, lsn) = next
    self.next = nil
  }

  /// Shows what another engine has appended.
  mutating func show(_ roots: TreeRoots, _ lsn: LogSequenceNumber) {
    (self.roots, self.lsn) = (roots, lsn)
    next = nil
  }

  /// Both trees behind a write, if that is the last one that is shown or of the batch that is being appended.
  func roots(at lsn: LogSequenceNumber) -> TreeRoots? {
    if self.lsn == lsn { return roots }
    return next.flatMap { $0.lsn == lsn ? $0.roots : nil }
  }

  /// The batch was taken back.
  mutating func drop() { next = nil }
}

extension Admission {
  /// The tree that readers see.
  var shownRoot: Node { covered?.roots.data ?? root }
  /// The tree that readers see, and the second root as it was then.
  var shownRoots: TreeRoots { covered?.roots ?? roots }
  /// The last write that readers see.
  var shownLSN: LogSequenceNumber { covered?.lsn ?? lastLSN }

  /// Notes the head behind the batch that a turn takes.
  mutating func takeCovered() {
    guard var covered = covered.take() else { return }
    covered.take(roots, lastLSN)
    self.covered = covered
  }

  /// Shows the head, which another engine has appended.
  mutating func showHead() {
    guard var covered = covered.take() else { return }
    covered.show(roots, lastLSN)
    self.covered = covered
  }

  /// Shows the writes of a batch that the shared log has taken, if they were not shown at once.
  ///
  /// - Parameter undo: of the batch.
  mutating func show(covered undo: borrowing UndoLog, _ batchLSN: LogSequenceNumber?) {
    guard covered != nil else { return }
    covered?.show()
    guard let batchLSN, let observer, undo.contents.changesData(from: 0) else { return }
    let everywhere = UnsafeRawBufferPointer(start: nil, count: 0)
    guard observer.wantsCommit(at: everywhere) else { return }
    let commit = Commit(
      lsn: batchLSN, time: lastTime, replacing: undo.contents, from: 0, root: shownRoot)
    if observer.committed(commit, root: shownRoot) { isObserverWaiting = true }
  }
}
