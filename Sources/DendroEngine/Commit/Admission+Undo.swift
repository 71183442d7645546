import DendroStorage
import DendroTree

extension Admission {
  /// Undoes every write that was not acknowledged, newest first. The observer gets one commit with the
  /// differences.
  ///
  /// - Returns: the LSNs of the undone writes that have no completion to report the failure.
  mutating func undo() -> [LogSequenceNumber] {
    let first = inFlight.firstLSN ?? batch.undo.firstLSN
    let unreported = inFlight.unreported + batch.undo.unreported
    let changes = inFlight.contents.replaced() + batch.undo.contents.replaced()
    let before = observer == nil || covered != nil ? Node.empty : root
    head.graft(changes)
    let changesOfSystem =
      inFlight.contents.replaced(in: .system) + batch.undo.contents.replaced(in: .system)
    for (path, node) in changesOfSystem.reversed() { system.graft(node, at: path) }
    inFlight.removeAll()
    if secondRoot == .beginning { secondRoot = .absent }
    batch.removeWrites()
    lastLSN = acknowledgedLSN
    covered?.drop()
    if let observer, covered == nil, let first {
      let commit = Commit(
        lsn: first, time: lastTime,
        differences: Self.differences(changes.map(\.path), from: before, to: root))
      if observer.committed(commit, root: root) { isObserverWaiting = true }
    }
    return unreported
  }

  /// One change for each of the highest paths that changed.
  private static func differences(_ paths: [Path], from before: Node, to after: Node) -> [Change] {
    var differences: [Change] = []
    for path in Set(paths).sorted() {
      if let last = differences.last, last.path.isPrefix(of: path) { continue }
      differences.append(
        Change(path: path, replaced: before.node(at: path), new: after.node(at: path)))
    }
    // Removals last: an ancestor that would be empty in between would lose its priority.
    return differences.filter { !$0.new.isEmpty } + differences.filter { $0.new.isEmpty }
  }
}
