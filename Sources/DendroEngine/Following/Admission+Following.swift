import DendroStorage
import DendroTree

// The head of a read-only engine, which takes what another process has written.

extension Admission {
  /// Applies a write that another process has logged behind the last one, and shows it to the observer.
  mutating func follow(
    _ write: WriteView, system change: WriteView?, _ lsn: LogSequenceNumber, _ time: Int64
  ) {
    if !write.isNothing {
      head.apply(write) { path, replaced in batch.undo.append(path, replaced) }
    }
    if let change { system.apply(change) { _, _ in } }
    // What another process has logged is not undone.
    defer { batch.undo.removeAll() }
    lastLSN = lsn
    acknowledgedLSN = lsn
    lastTime = max(lastTime, time)
    statistics.writeCount += 1
    showHead()
    guard batch.undo.count > 0, let observer, observer.wantsCommit(at: write.path) else { return }
    let commit = Commit(lsn: lsn, time: time, replacing: batch.undo.contents, from: 0, root: root)
    if observer.committed(commit, root: root) { isObserverWaiting = true }
  }

  /// Replaces the head, and shows the observer that the whole tree may have changed.
  mutating func replace(_ recovered: Recovery.Result, showsDifference: Bool) {
    let before = root
    head.replace(by: recovered.root, pages: recovered.pages)
    system.replace(by: recovered.system)
    lastLSN = recovered.lastLSN
    acknowledgedLSN = recovered.lastLSN
    durableLSN = min(recovered.end?.durableUpTo ?? recovered.lastLSN, recovered.lastLSN)
    lastTime = recovered.lastTime
    let everywhere = UnsafeRawBufferPointer(start: nil, count: 0)
    guard showsDifference, let observer, observer.wantsCommit(at: everywhere) else { return }
    let change = Change(path: .root, replaced: before, new: root)
    let commit = Commit(lsn: lastLSN, time: lastTime, differences: [change])
    if observer.committed(commit, root: root) { isObserverWaiting = true }
  }
}
