import DendroStorage
import DendroTree

extension Admission {
  /// Admits one write: encodes it into the open batch, applies it to the head, gives it the next LSN and
  /// shows the observer what changed.
  ///
  /// - Parameter isEqual: whether the tree that is set equals the one in its place; nil where that is not
  ///   known yet.
  /// - Returns: why it was refused; nothing has changed then.
  mutating func admit(
    _ draft: Draft, body: PayloadBuffer?, isEqual: Bool? = nil, now: Int64,
    completion: Completion?
  ) -> EngineError? {
    if let body, body.count > limits.writeByteCount {
      return .writeTooLarge(bytes: body.count, limit: limits.writeByteCount)
    }
    if case .running = phase {
      // The usual case first: `refusal` would copy the errors that the other phases hold.
    } else if let refusal = phase.refusal {
      if case .full = phase { wantsProbe = true }
      return refusal
    }
    if let pages, pages.isPartial {
      // `offer` has seen to it without the lock, but for writes that a transaction or closing brings.
      do throws(PageFailure) {
        try root.load(for: draft)
      } catch {
        return .storage(pages.storageError(error))
      }
    }
    let time = nextTime(now)
    return draft.deferred.isEmpty
      ? admit(
        resolved: draft.write, body: body, isEqual: isEqual, time: time, completion: completion)
      : admit(
        resolved: draft.resolved(time: time, against: root), body: body, isEqual: nil, time: time,
        completion: completion)
  }

  /// Admits writes that were held back for a transaction.
  ///
  /// - Returns: the refusals that the caller reports once it has released the lock.
  mutating func admit(
    _ held: [(draft: Draft, completion: Completion?)], now: Int64
  ) -> [(EngineError, Completion?)] {
    var refused: [(EngineError, Completion?)] = []
    for (draft, completion) in held {
      let refusal = admit(draft, body: nil, now: now, completion: completion)
      if let refusal, !complete(completion, .failure(refusal)) {
        refused.append((refusal, completion))
      }
    }
    return refused
  }

  /// A write that changes more than so many places at once is rare; the memory for its changes is freed.
  static let keptChangeCountMax = 1 << 12

  private mutating func admit(
    resolved write: Write, body: PayloadBuffer?, isEqual: Bool?, time: Int64,
    completion: Completion?
  ) -> EngineError? {
    if body == nil, admitLeaf(write, now: time, completion: completion) { return nil }
    if let refusal = memory.refusal(for: write) { return refusal }
    if case .setPriority(let path, _) = write, root.node(at: path).isEmpty {
      return .noData(path)
    }
    let lsn = lastLSN.next
    let savepoint =
      limits.isPersistent
      ? batch.encoder.encode(write, body: body, lsn: lsn, time: time) : nil
    let byteCount =
      savepoint.map { batch.encoder.byteCount - $0.start } ?? byteCountInMemory(write, body)
    if byteCount > limits.writeByteCount {
      if let savepoint { batch.encoder.rollBack(to: savepoint) }
      return .writeTooLarge(bytes: byteCount, limit: limits.writeByteCount)
    }
    let differs = isEqual == false
    head.beginChange()
    if isEqual == true {
      // Nothing to apply.
    } else if let savepoint {
      batch.encoder.payload.withBytes { payload in
        let body = UnsafeRawBufferPointer(rebasing: payload[savepoint.body...])
        head.root.apply(write, packed: body, isKnownToDiffer: differs, recording: &changes)
      }
    } else {
      head.root.apply(write, isKnownToDiffer: differs, recording: &changes)
    }
    head.endChange()
    guard !changes.isEmpty else {
      if let savepoint { batch.encoder.rollBack(to: savepoint) }
      _ = complete(completion, .success(nil))
      return nil
    }
    memory.admitted(write, encodedByteCount: byteCount, replaced: changes[...])
    lastLSN = lsn
    lastTime = time
    statistics.writeCount += 1
    if let observer, observer.wantsCommits {
      let commit = Commit(lsn: lsn, time: time, changes: changes[...], isUndo: false)
      if observer.committed(commit, root: root) { isObserverWaiting = true }
    }
    if savepoint != nil {
      statistics.rawByteCount += UInt64(byteCount)
      batch.encoder.keep(write)
      for change in changes { batch.undo.append(change.path, change.replaced) }
    }
    noteAdmitted(lsn, completion)
    // A second reference to a new subtree would make the next write into it copy its pages.
    changes.removeAll(keepingCapacity: changes.capacity <= Self.keptChangeCountMax)
    return nil
  }

  /// Bytes that a write to a database in memory would take in a log, with its path in full; 0 where no
  /// limit asks for them.
  private func byteCountInMemory(_ write: Write, _ body: PayloadBuffer?) -> Int {
    guard memory.isLimited || WriteCoding.mayBeLarge(write) else { return 0 }
    let pathByteCount = write.path.storedBytes.count
    if let body { return pathByteCount + body.count }
    WriteCoding.encodeBody(of: write, into: scratch)
    defer { scratch.removeAll() }
    return pathByteCount + scratch.count
  }
}
