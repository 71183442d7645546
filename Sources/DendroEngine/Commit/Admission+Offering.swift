import DendroStorage
import DendroTree

extension Admission {
  /// Admits a write if nothing has to be asked or waited for: the usual case.
  ///
  /// - Returns: false if that is not so, or the write is refused: it has to be offered.
  @inline(__always)
  mutating func admitAtOnce(
    _ write: WriteView, now: Int64, completion: Completion?
  ) -> Bool {
    guard case .running = phase, transactions.letAllPass, !memory.isLimited, !isStalled,
      write.logByteCount < Self.comparedByteMin, hasPages(for: write), write.extras == nil
    else { return false }
    return admit(write, now: now, completion: completion) == nil
  }

  /// Admits or refuses one write, or says what its caller waits for first.
  ///
  /// - Parameters:
  ///   - now: milliseconds since 1970.
  mutating func offer(
    _ write: WriteView, now: Int64, _ completion: Completion?, _ waits: inout PermittedWaits
  ) -> AdmissionOutcome {
    if waits.transaction, !transactions.isEmpty, case .running = phase {
      if let transaction = transactions.ofThisThread {
        return .followsTransaction(transaction.writes)
      }
      if let reservation = transactions.reservation(concerning: write) {
        return .waitsForTransaction(reservation)
      }
    }
    if askForDisk(&waits) { return .waitsForDisk }
    if waits.probe != nil, let refusal = phase.refusal { return conclude(refusal, completion) }
    if needsSecondRoot(for: write) { return .needsSecondRoot }
    if waits.measure, memory.isMeasureDue(for: write.factsOfAll) { return .needsMeasure }
    if let pages, !hasPages(for: write) { return .needsPages(root, pages) }
    var isEqual: Bool?
    if let existing = counterpart(of: write) {
      if let comparison = waits.comparison, comparison.existing.isIdentical(to: existing) {
        isEqual = comparison.isEqual
      } else if waits.comparisonCount > 0 {
        waits.comparisonCount -= 1
        return .needsComparison(existing)
      }
    }
    var time = now
    if let judging = waits.judging {
      switch judge(write, judging, now: now) {
      case .allowed(let judged): time = judged
      case .refused(let refusal): return conclude(refusal, completion)
      case .unknown: return .needsJudgement(HeadNode(root, pages), time: nextTime(now))
      }
    }
    let refusal = admit(write, isEqual: isEqual, now: time, completion: completion)
    return refusal.map { conclude($0, completion) } ?? .settled
  }

  /// Whether a write may be made that is judged.
  private enum Permission {
    /// At the time that was judged.
    case allowed(Int64)
    case refused(EngineError)
    /// It has to be judged without the lock.
    case unknown
  }

  /// Looks whether the judgement of a write holds for the head, or makes one.
  private func judge(_ write: WriteView, _ judging: Judging, now: Int64) -> Permission {
    guard judging.time != nil else { return .unknown }
    let write = EncodedWrite.keeping(write)
    let step = judging.nextStep(
      for: write, on: root, isPartial: pages?.isPartial ?? false, lastTime: lastTime)
    switch step {
    case .admit(let time): return .allowed(time)
    case .judgeFirst: return .unknown
    case .judgeUnderLock:
      let time = nextTime(now)
      return judging.judgeUnderLock(write, on: root, time: time).map { .refused($0) }
        ?? .allowed(time)
    }
  }

  /// The head, on which a write is judged before it is offered, and the time that the write would get; nil if it may have
  /// to wait first, or pages may have to be read for it.
  func headToJudge(now: Int64) -> (head: HeadNode, time: Int64)? {
    guard case .running = phase, transactions.letAllPass, !isStalled, !(pages?.isPartial ?? false)
    else { return nil }
    return (HeadNode(root), nextTime(now))
  }

  /// Whether all pages of the tree that a write needs were read.
  @inline(__always)
  private func hasPages(for write: WriteView) -> Bool {
    guard let pages, pages.isPartial else { return true }
    return root.isLoaded(for: write)
  }

  /// The bytes of an encoded tree from which on it is compared without the lock.
  private static let comparedByteMin = 16 << 10

  /// The tree that a large one replaces; nil if it is quick to see whether they are equal.
  private func counterpart(of write: WriteView) -> Node? {
    guard write.logByteCount >= Self.comparedByteMin, let new = write.tree, new.isBranch else {
      return nil
    }
    let existing = root.node(at: Path(trusted: write.path))
    guard existing.childCount == new.childCount, !existing.isIdentical(to: new) else { return nil }
    return existing
  }

  /// Asks for the disk if a write may have to wait for it: on a full one for a probe, once.
  ///
  /// - Returns: whether the write waits: until a turn takes an open batch that is over its limit, or for the probe.
  mutating func askForDisk(_ waits: inout PermittedWaits) -> Bool {
    guard waits.disk else { return false }
    switch phase {
    case .running: return isStalled
    case .full:
      let request = waits.probe ?? schedule.requestProbe()
      waits.probe = request
      return !schedule.hasProbed(since: request)
    case .poisoned, .withheld, .closing, .closed: return false
    }
  }

  private mutating func conclude(
    _ refusal: EngineError, _ completion: Completion?
  ) -> AdmissionOutcome {
    complete(completion, .failure(refusal)) ? .settled : .refused(refusal)
  }

  /// Adds a completion with its result to the open batch, behind those of earlier writes.
  ///
  /// - Returns: false if the caller has to report the result, since no batch follows or there is no
  ///   completion.
  mutating func complete(
    _ completion: Completion?, _ result: Result<LogSequenceNumber?, EngineError>
  ) -> Bool {
    if case .closed = phase { return false }
    // Earlier writes may wait for the shared log for long: a refusal does not.
    if case .withheld = phase, case .failure = result { return false }
    guard let completion else { return false }
    batch.completions.append(.init(result: result, completion: completion))
    return true
  }
}
