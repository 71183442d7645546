import DendroStorage
import DendroTree

extension Admission {
  /// Undoes every write that was not acknowledged, newest first. The observer gets one commit with the
  /// differences.
  ///
  /// - Returns: the LSNs of the undone writes that have no completion to report the failure.
  mutating func undo() -> [LogSequenceNumber] {
    let writes = inFlight.writes + batch.writes
    let changes = inFlight.changes + batch.changes
    let before = observer == nil ? Node.empty : root
    for change in changes.reversed() { root.graft(change.replaced, at: change.path) }
    inFlight = InFlight()
    batch.removeWrites()
    lastLSN = acknowledgedLSN
    if let observer, let first = writes.first {
      let commit = Commit(
        lsn: first.lsn, time: lastTime,
        changes: Self.differences(changes, from: before, to: root)[...], isUndo: true)
      if observer.committed(commit, root: root) { isObserverWaiting = true }
    }
    return writes.filter { !$0.hasCompletion }.map(\.lsn)
  }

  /// One change for each of the highest paths that changed.
  private static func differences(_ changes: [Change], from before: Node, to after: Node)
    -> [Change]
  {
    var differences: [Change] = []
    for path in Set(changes.map(\.path)).sorted() {
      if let last = differences.last, last.path.isPrefix(of: path) { continue }
      differences.append(
        Change(path: path, replaced: before.node(at: path), new: after.node(at: path)))
    }
    // Removals last: an ancestor that would be empty in between would lose its priority.
    return differences.filter { !$0.new.isEmpty } + differences.filter { $0.new.isEmpty }
  }
}
