import DendroStorage
import DendroTree

extension Admission {
  /// Admits a write of one leaf on the shortest way: the tree is descended once, and the log and the undo log
  /// get bytes. Neither a `Write` nor a `Change` is made.
  ///
  /// - Parameters:
  ///   - path: of at most `Limits.depth` keys.
  ///   - now: milliseconds since 1970.
  /// - Returns: whether the write was admitted, or changed nothing. If not, nothing was done, and the write has
  ///   to be offered as a `Draft`: there is more to it than the tree decides, or more than a leaf to replace.
  mutating func admit(
    _ edit: LeafEdit, at path: Path, now: Int64, completion: Completion?
  ) -> Bool {
    path.storedBytes.withUnsafeBytes {
      admit(edit, at: path, stored: $0, now: now, completion: completion)
    }
  }

  @inline(__always)
  private mutating func admit(
    _ edit: LeafEdit, at path: Path, stored: UnsafeRawBufferPointer, now: Int64,
    completion: Completion?
  ) -> Bool {
    guard admitsPacked(byteCount: stored.count + LeafEdit.byteCountMax) else { return false }
    head.beginChange()
    let outcome = batch.undo.append(stored) { head.root.exchange(edit, at: stored, replaced: $0) }
    head.endChange()
    switch outcome {
    case .declined, .unloaded: return false
    case .unchanged:
      _ = complete(completion, .success(nil))
      return true
    case .inserted, .replaced: break
    }
    let lsn = lastLSN.next
    let time = nextTime(now)
    if limits.isPersistent {
      statistics.rawByteCount += UInt64(
        batch.encoder.encode(edit, at: stored, lsn: lsn, time: time))
    }
    if let observer, observer.wantsCommit(ofLeafAt: path) {
      let waits = observer.committed(leafAt: path, lsn: lsn, time: time, root: root) {
        Change(path: path, replaced: batch.undo.lastReplaced, new: root.node(at: path))
      }
      if waits { isObserverWaiting = true }
    }
    finishPacked(lsn, time, completion)
    return true
  }

  /// Whether a write of so many bytes can be admitted without a `Draft`: where nothing has to be asked but the
  /// tree.
  @inline(__always)
  func admitsPacked(byteCount: Int) -> Bool {
    guard case .running = phase else { return false }
    return transaction == nil && !memory.isLimited && !isStalled
      && byteCount + BatchEncoder.headByteCountMax <= limits.writeByteCount
  }

  /// Gives a write that was applied and encoded its number, and shows the observer what changed.
  @inline(__always)
  mutating func finishPacked(
    _ lsn: LogSequenceNumber, _ time: Int64, _ completion: Completion?
  ) {
    lastLSN = lsn
    lastTime = time
    statistics.writeCount += 1
    if let observer, !changes.isEmpty {
      let commit = Commit(lsn: lsn, time: time, changes: changes[...], isUndo: false)
      if observer.committed(commit, root: root) { isObserverWaiting = true }
    }
    noteAdmitted(lsn, completion)
  }

  /// Adds a write that was admitted to the open batch.
  @inline(__always)
  mutating func noteAdmitted(_ lsn: LogSequenceNumber, _ completion: Completion?) {
    if limits.isPersistent { return batch.noteWrite(lsn, completion: completion) }
    // In memory there is nothing that a disk could refuse.
    batch.undo.removeAll()
    if limits.countsWrites { batch.countInMemory += 1 }
    _ = complete(completion, .success(lsn))
  }

  /// `admit(_:at:now:completion:)` for a write that sets or increments one leaf. Returns false for others.
  mutating func admitLeaf(_ write: Write, now: Int64, completion: Completion?) -> Bool {
    switch write {
    case .set(let path, let node):
      guard let byteCount = node.packedLeafByteCount, byteCount <= LeafEdit.byteCountMax,
        node.priority == nil
      else { return false }
      return withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { packed in
        node.writePackedLeaf(to: packed.baseAddress.unsafelyUnwrapped)
        return admit(
          .set(UnsafeRawBufferPointer(packed)), at: path, now: now, completion: completion)
      }
    case .increment(let path, let delta):
      return admit(.increment(delta), at: path, now: now, completion: completion)
    case .remove, .setPriority, .update: return false
    }
  }
}
