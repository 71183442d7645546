import DendroStorage
import DendroTree

/// What admission did with a write that it was offered.
enum AdmissionOutcome {
  /// The head shows it, or its completion gets an error after those of the writes before it.
  case admitted
  /// It is admitted once the running transaction, whose block has written it, has ended.
  case held
  /// The caller reports the error at once.
  case refused(EngineError)
  /// To be offered again once `WriteStall` lets the caller pass.
  case waitsForDisk
  /// To be offered again once the transaction has ended, or the reservation's time has.
  case waitsForTransaction(Reservation)
  /// To be offered again once the tree's memory was measured.
  case needsMeasure
}

/// What a caller still waits for before its write is admitted or refused.
struct PermittedWaits {
  var disk = true
  var transaction = true
  var measure = true
  /// The probe of a full disk that the caller waits for.
  fileprivate(set) var probe: UInt64?

  /// For callers that hold up the disk's work by waiting.
  static var none: PermittedWaits {
    PermittedWaits(disk: false, transaction: false, measure: false)
  }
}

extension Admission {
  /// Decides about one write.
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
    guard let refusal = admit(draft, body: body, now: now, completion: completion) else {
      return .admitted
    }
    return conclude(refusal, completion)
  }

  /// Whether a write waits for the disk: until the open batch was taken where that is over its limit, and
  /// on a full disk for one probe.
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

  /// Calls `completion` after those of the writes before.
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

  /// Called only while a transaction runs.
  ///
  /// - Returns: nil where the write has nothing to do with it.
  private mutating func transactionOutcome(
    _ draft: Draft, _ completion: Completion?, _ waits: PermittedWaits
  ) -> AdmissionOutcome? {
    // Not bound to a name: a second reference would make each append copy what is held.
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
