import DendroStorage
import DendroTree

extension Admission {
  /// Admits an update on the shortest way, as `admit(_:at:now:completion:)` does one leaf: all its leaves are
  /// edited in one descent each.
  ///
  /// - Parameter update: finished at `base`.
  /// - Returns: whether it was admitted, or changed nothing. If not, nothing was done, and it has to be offered
  ///   as a `Draft`.
  mutating func admit(
    _ update: borrowing PackedUpdate, at base: Path, now: Int64, completion: Completion?
  ) -> Bool {
    guard admitsPacked(byteCount: base.storedBytes.count + update.body.count) else { return false }
    if let pages, pages.isPartial, !areLoaded(update, at: base) { return false }
    let isObserved = observer?.wantsCommits ?? false
    let noted = batch.undo.count
    assert(changes.isEmpty)
    let scratch = self.scratch
    base.storedBytes.withUnsafeBytes { scratch.append($0) }
    let baseByteCount = scratch.count
    var cursor = LeafCursor()
    head.beginChange()
    update.forEach { path, action in
      scratch.append(path)
      scratch.withBytes { apply(action, at: $0, isObserved: isObserved, &cursor) }
      scratch.removeAfter(baseByteCount)
    }
    head.endChange()
    scratch.removeAll()
    defer { changes.removeAll(keepingCapacity: changes.capacity <= Self.keptChangeCountMax) }
    guard batch.undo.count > noted else {
      _ = complete(completion, .success(nil))
      return true
    }
    let lsn = lastLSN.next
    let time = nextTime(now)
    if limits.isPersistent {
      let byteCount = base.storedBytes.withUnsafeBytes {
        batch.encoder.encode(updating: $0, body: update.body, lsn: lsn, time: time)
      }
      statistics.rawByteCount += UInt64(byteCount)
    }
    finishPacked(lsn, time, completion)
    return true
  }

  /// Whether the pages that the update needs have been read.
  private func areLoaded(_ update: borrowing PackedUpdate, at base: Path) -> Bool {
    var areLoaded = true
    let removalCount = update.removalCount
    base.storedBytes.withUnsafeBytes { scratch.append($0) }
    let baseByteCount = scratch.count
    update.forEach { path, action in
      guard areLoaded else { return }
      scratch.append(path)
      let removes = if case .remove = action { true } else { false }
      areLoaded = scratch.withBytes {
        root.isLoaded(along: $0, removalCount: removes ? removalCount : 0)
      }
      scratch.removeAfter(baseByteCount)
    }
    scratch.removeAll()
    return areLoaded
  }

  private mutating func apply(
    _ action: PackedUpdate.Action, at storedPath: UnsafeRawBufferPointer, isObserved: Bool,
    _ cursor: inout LeafCursor
  ) {
    let noted = batch.undo.count
    if case .edit(let edit) = action {
      let outcome = batch.undo.append(storedPath) {
        head.root.exchange(edit, at: storedPath, &cursor, replaced: $0)
      }
      switch outcome {
      case .declined, .unloaded: break
      case .unchanged, .inserted, .replaced:
        if isObserved, batch.undo.count > noted { noteLastChange(at: storedPath) }
        return
      }
    }
    cursor.forget()
    guard let path = Path(storedBytes: storedPath) else {
      preconditionFailure("a path that was parsed is valid")
    }
    let first = changes.count
    head.root.apply(Write(action.entryAction, at: path), recording: &changes)
    for change in changes[first...] { batch.undo.append(change.path, change.replaced) }
    if !isObserved { changes.removeLast(changes.count - first) }
  }

  private mutating func noteLastChange(at storedPath: UnsafeRawBufferPointer) {
    guard let path = Path(storedBytes: storedPath) else { return }
    changes.append(
      Change(path: path, replaced: batch.undo.lastReplaced, new: root.node(at: path)))
  }
}

extension Write {
  /// The write of one entry of an update.
  fileprivate init(_ action: Entry.Action, at path: Path) {
    switch action {
    case .set(let node): self = .set(path, node)
    case .remove: self = .remove(path)
    case .increment(let delta): self = .increment(path, delta)
    case .setPriority(let priority): self = .setPriority(path, priority)
    }
  }
}
