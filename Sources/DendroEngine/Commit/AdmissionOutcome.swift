import DendroStorage
import DendroTree

/// What admission did with a write, and what its caller does next.
enum AdmissionOutcome {
  /// The head shows the write; or it was refused, and its completion in the open batch says why.
  case admitted
  /// The running transaction's block made the write, which is admitted when the transaction ends.
  case held
  /// The caller reports the error at once.
  case refused(EngineError)
  /// The caller waits in `WriteStall`, then offers the write again.
  case waitsForDisk
  /// The caller waits for the end of the transaction or of its reservation, then offers the write again.
  case waitsForTransaction(Reservation)
  /// The caller has the tree's memory measured, then offers the write again.
  case needsMeasure
  /// The caller reads the pages of the tree that the write needs, then offers the write again.
  case needsPages(Node, CheckpointPages)
  /// The caller compares this tree with the one that it sets in its place, then offers the write again.
  case needsComparison(Node)
}

/// What the caller of a write may still be made to wait for.
struct PermittedWaits {
  var disk = true
  var transaction = true
  var measure = true
  /// Comparisons of trees, each overtaken by another write, after which the trees are compared under the
  /// lock.
  var comparisonCount = 4
  /// The last comparison.
  var comparison: Comparison?
  /// The probe of a full disk that the caller waits for.
  fileprivate(set) var probe: UInt64?

  /// Whether the tree that a write sets equals the one in its place.
  struct Comparison {
    let existing: Node
    let isEqual: Bool

    init(_ draft: Draft, with existing: Node) {
      self.existing = existing
      isEqual = if case .set(_, let new) = draft.write { existing == new } else { false }
    }
  }

  /// For a caller that does the disk's work itself, and would wait for it for ever.
  static var none: PermittedWaits {
    PermittedWaits(disk: false, transaction: false, measure: false, comparisonCount: 0)
  }
}

extension Admission {
  /// Admits or refuses one write, or says what its caller waits for first.
  ///
  /// - Parameters:
  ///   - body: the draft's encoded body, where that was made outside the lock.
  ///   - now: milliseconds since 1970.
  mutating func offer(
    _ draft: Draft, body: PayloadBuffer?, now: Int64, _ completion: Completion?,
    _ waits: inout PermittedWaits
  ) -> AdmissionOutcome {
    if transaction != nil, case .running = phase,
      let outcome = transactionOutcome(draft, completion, waits)
    {
      if case .refused(let refusal) = outcome { return conclude(refusal, completion) }
      return outcome
    }
    if mustWaitForDisk(&waits) { return .waitsForDisk }
    if waits.probe != nil, let refusal = phase.refusal { return conclude(refusal, completion) }
    if waits.measure, memory.isMeasureDue(for: draft.write) { return .needsMeasure }
    if let pages, pages.isPartial, !root.isLoaded(for: draft) { return .needsPages(root, pages) }
    var isEqual: Bool?
    if let body, let existing = counterpart(of: draft, body) {
      if let comparison = waits.comparison, comparison.existing.isIdentical(to: existing) {
        isEqual = comparison.isEqual
      } else if waits.comparisonCount > 0 {
        waits.comparisonCount -= 1
        return .needsComparison(existing)
      }
    }
    let refusal = admit(
      draft, body: body, isEqual: isEqual, now: now, completion: completion)
    return refusal.map { conclude($0, completion) } ?? .admitted
  }

  /// The bytes of an encoded tree from which on it is compared without the lock.
  private static let comparedByteMin = 16 << 10

  /// The tree that a large one replaces; nil where it is quick to see whether they are equal.
  private func counterpart(of draft: Draft, _ body: PayloadBuffer) -> Node? {
    guard body.count >= Self.comparedByteMin, case .set(let path, let new) = draft.write,
      new.isBranch
    else { return nil }
    let existing = root.node(at: path)
    guard existing.childCount == new.childCount, !existing.isIdentical(to: new) else { return nil }
    return existing
  }

  /// Whether a write waits for the disk: until a cycle takes an open batch that is over its
  /// limit, or, on a full disk, for one probe.
  mutating func mustWaitForDisk(_ waits: inout PermittedWaits) -> Bool {
    guard waits.disk else { return false }
    switch phase {
    case .running: return isStalled
    case .full:
      guard let request = waits.probe else {
        waits.probe = requestProbe()
        return true
      }
      return !hasProbed(since: request)
    case .poisoned, .closing, .closed: return false
    }
  }

  private mutating func conclude(
    _ refusal: EngineError, _ completion: Completion?
  ) -> AdmissionOutcome {
    complete(completion, .failure(refusal)) ? .admitted : .refused(refusal)
  }

  /// Adds a completion with its result to the open batch, behind those of earlier writes.
  ///
  /// - Returns: false where the caller has to report the result, since no batch follows or there is no
  ///   completion.
  mutating func complete(
    _ completion: Completion?, _ result: Result<LogSequenceNumber?, EngineError>
  ) -> Bool {
    if case .closed = phase { return false }
    guard let completion else { return false }
    batch.completions.append(.init(result: result, completion: completion))
    return true
  }

  /// What the running transaction makes of a write. Call only while one runs.
  ///
  /// - Returns: nil where the transaction does not concern the write.
  private mutating func transactionOutcome(
    _ draft: Draft, _ completion: Completion?, _ waits: PermittedWaits
  ) -> AdmissionOutcome? {
    // Not bound to a name: a second reference would make each append copy the held writes.
    if transaction?.isOnThisThread == true {
      guard transaction?.hold(draft, completion) == true else {
        return .refused(.tooManyWaiting(limit: RunningTransaction.heldWriteLimit))
      }
      return .held
    }
    guard waits.transaction, let reservation = transaction?.reservation, !reservation.isOver,
      reservation.concerns(draft.write)
    else { return nil }
    return .waitsForTransaction(reservation)
  }
}
