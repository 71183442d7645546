import DendroStorage
import DendroTree

extension Admission {
  /// Admits one write: computes its server values, applies it to the head, gives it the next LSN, shows the observer
  /// what changed, and adds it to the open batch.
  ///
  /// - Parameters:
  ///   - write: its pages are in memory.
  ///   - isEqual: whether the tree that is set equals the one in its place; nil if that is not known yet.
  ///   - now: milliseconds since 1970.
  /// - Returns: why it was refused; nothing has changed then.
  @inline(__always)
  mutating func admit(
    _ write: WriteView, isEqual: Bool? = nil, now: Int64, completion: Completion?
  ) -> EngineError? {
    if case .running = phase {
      // The usual case first: `refusal` would copy the errors that the other phases hold.
    } else if let refusal = refusal() {
      return refusal
    }
    let time = nextTime(now)
    guard write.facts.hasServerValues else {
      return admit(
        resolved: write, extras: write.extras, isEqual: isEqual, time: time, completion: completion)
    }
    return admitResolving(write, time: time, completion: completion)
  }

  private mutating func refusal() -> EngineError? {
    if case .full = phase { schedule.wantsProbe = true }
    return phase.refusal
  }

  private mutating func admitResolving(
    _ write: WriteView, time: Int64, completion: Completion?
  ) -> EngineError? {
    let resolved = resolved
    defer { resolved.removeAll() }
    write.appendResolved(time: time, against: root, to: resolved)
    return resolved.withBytes { body in
      var facts = write.facts
      facts.hasServerValues = false
      return admit(
        resolved: WriteView(write.kind, at: write.path, body: body, facts: facts),
        extras: write.extras, isEqual: nil, time: time, completion: completion)
    }
  }

  private mutating func admit(
    resolved write: WriteView, extras: EncodedWrite?, isEqual: Bool?, time: Int64,
    completion: Completion?
  ) -> EngineError? {
    if memory.isLimited, let refusal = memory.refusal(for: write.facts(with: extras)) {
      return refusal
    }
    if write.kind == .setPriority {
      let path = Path(trusted: write.path)
      if root.node(at: path).isEmpty { return .noData(path) }
    }
    let byteCount = batch.encoder.byteCount(
      of: write, extras: extras, time: time, limit: limits.writeByteCount)
    if byteCount > limits.writeByteCount {
      return .writeTooLarge(bytes: byteCount, limit: limits.writeByteCount)
    }
    let noted = batch.undo.count
    if isEqual != true, !write.isNothing {
      head.apply(write, isKnownToDiffer: isEqual == false) { path, replaced in
        batch.undo.append(path, replaced)
      }
    }
    if let change = extras?.system { apply(system: change) }
    guard batch.undo.count > noted else {
      _ = complete(completion, .success(nil))
      return nil
    }
    let lsn = lastLSN.next
    lastLSN = lsn
    lastTime = time
    statistics.writeCount += 1
    if memory.isLimited {
      memory.admitted(
        write.facts, encodedByteCount: write.path.count + write.logByteCount,
        replaced: { batch.undo.contents.replaced(from: noted).map(\.node) })
      if let change = extras?.system {
        memory.admitted(
          change.facts, encodedByteCount: change.path.storedBytes.count + change.logByteCount,
          replaced: { batch.undo.contents.replaced(from: noted, in: .system).map(\.node) })
      }
    }
    if let observer, covered == nil, observer.wantsCommit(at: write.path),
      extras == nil || batch.undo.contents.changesData(from: noted)
    {
      show(lsn, time, from: noted, to: observer)
    }
    if limits.isPersistent {
      let byteCount = batch.encoder.append(write, extras: extras, lsn: lsn, time: time)
      statistics.rawByteCount += UInt64(byteCount)
      batch.noteWrite(lsn, completion: completion)
    } else {
      finishInMemory(lsn, completion)
    }
    return nil
  }

  private mutating func apply(system change: EncodedWrite) {
    change.withView { change in
      system.apply(change) { path, replaced in
        batch.undo.append(path, replaced, in: .system)
      }
    }
  }

  @inline(never)
  private mutating func show(
    _ lsn: LogSequenceNumber, _ time: Int64, from noted: Int, to observer: any CommitObserver
  ) {
    let commit = Commit(
      lsn: lsn, time: time, replacing: batch.undo.contents, from: noted, root: root)
    if observer.committed(commit, root: root) { isObserverWaiting = true }
  }

  /// In memory there is nothing that a disk could refuse.
  private mutating func finishInMemory(_ lsn: LogSequenceNumber, _ completion: Completion?) {
    batch.undo.removeAll()
    if limits.countsWrites { batch.countInMemory += 1 }
    _ = complete(completion, .success(lsn))
  }
}
