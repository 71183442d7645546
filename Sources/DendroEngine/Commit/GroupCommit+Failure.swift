import DendroStorage
import DendroTree

/// What a turn does when the disk refuses an append, a synchronize or a new segment.
extension GroupCommit {
  /// Undoes the writes of the batch and of the open one.
  ///
  /// A full disk is only a pause if the log can be cut back to the last good record. Everything else
  /// poisons the engine.
  ///
  /// - Parameter start: from where on the segment has the batch; nil if the append was refused.
  /// - Returns: the error that the completions get.
  func refuse(
    _ batch: inout Batch, _ error: StorageError, appendedFrom start: UInt64?, _ disk: DiskState?,
    _ effects: inout TurnEffects
  ) -> EngineError {
    guard let log = disk?.log else { preconditionFailure("what has refused is a log") }
    var isFull = false
    // A log that is poisoned has cut off what it could.
    if start == nil, log.poison == nil {
      do throws(StorageError) {
        try log.cutBack()
        isFull = error.isOutOfSpace
      } catch {
        effects.events.append(
          LogEvent(.error, "the log could not be cut back", ["error": error.description]))
      }
    }
    if !isFull {
      log.abandon(error, unacknowledgedFrom: start)
    }
    let durableLSN = log.durableUpTo
    let (refusal, isNews) = admission.withLockInTurn { admission in
      admission.durableLSN = durableLSN
      let isNews = admission.isNews(isFull: isFull)
      let refusal = admission.refuse(error, isFull: isFull)
      // The undone writes may have been admitted before a close, which then reports their failure.
      if case .closing = admission.phase, admission.closingFailure == nil {
        admission.closingFailure = refusal
      }
      return (refusal, isNews)
    }
    effects.completions += batch.takeCompletions(failing: refusal)
    undoAll(refusal, &effects)
    if isNews {
      effects.events.append(
        LogEvent(
          isFull ? .warning : .error, Self.sentence(error, isFull: isFull),
          ["error": error.description, "writes": String(batch.writeCount)],
          failure: FailureKind(error, isFull: isFull)))
    }
    return refusal
  }

  /// Poisons the engine after a failed synchronize or roll outside of a batch, and undoes the writes of the
  /// open batch.
  func poison(_ error: StorageError, _ effects: inout TurnEffects) {
    let (refusal, isNews) = admission.withLockInTurn { admission in
      let isNews = admission.isNews(isFull: false)
      return (admission.refuse(error, isFull: false), isNews)
    }
    undoAll(refusal, &effects)
    guard isNews else { return }
    effects.events.append(
      LogEvent(
        .error, Self.sentence(error, isFull: false), ["error": error.description],
        failure: FailureKind(error, isFull: false)))
  }

  private static func sentence(_ error: StorageError, isFull: Bool) -> String {
    switch FailureKind(error, isFull: isFull) {
    case .diskFull: "the disk is full: writes are refused until there is room"
    case .ownershipLost: "the lock is lost: writes are refused until the next opening"
    default: "the disk has failed: writes are refused until the next opening"
    }
  }

  /// Undoes every write that was not acknowledged. No write is admitted any more.
  ///
  /// What the undo brings back may have been removed without having been read. If an observer may look at it, its
  /// pages are read before, without the admission lock; if they cannot be read, the observer gets the error.
  ///
  /// - Returns: the LSNs of the undone writes that have no completion to report the failure.
  private func undo() -> [LogSequenceNumber] {
    var known: Set<Int> = []
    var hasFailed = false
    while true {
      let (unread, unreported, observer) = admission.withLockInTurn { admission in
        let unread = admission.undoneNodes(besides: &known)
        return (unread, unread == nil ? admission.undo() : [], admission.observer)
      }
      guard let (nodes, pages) = unread else { return unreported }
      for node in nodes {
        do throws(PageFailure) {
          try node.load()
        } catch {
          // Before the undo: the observer would find nothing where the pages are.
          if !hasFailed { observer?.failed(.storage(pages.storageError(error))) }
          hasFailed = true
        }
      }
    }
  }

  /// Undoes every write that was not acknowledged, and fails what waits for the open batch.
  func undoAll(_ refusal: EngineError, _ effects: inout TurnEffects) {
    effects.unreported += undo().map { (refusal, $0) }
    effects.completions += admission.withLockInTurn { $0.batch.takeCompletions(failing: refusal) }
    // The open batch has room again, or no writer is to wait for any.
    stall.end()
  }

  /// Looks for room for a record on a disk that was full.
  func probe(_ disk: DiskState?, _ effects: inout TurnEffects) {
    var hasRoom = false
    if let log = disk?.log, case .full = admission.withLockInTurn({ $0.phase }) {
      do throws(StorageError) {
        hasRoom = try log.probe()
      } catch {
        // A poisoned log stays so, however much room there is.
        if log.poison != nil { poison(error, &effects) }
      }
    }
    admission.withLockInTurn { $0.endProbe(foundRoom: hasRoom) }
  }
}

extension Admission {
  /// What an undo would bring back, as far as pages of it may not have been read and the observer may look at it.
  ///
  /// - Parameter known: the places in the undo log of the nodes that were returned before.
  /// - Returns: nil if there is no other.
  fileprivate func undoneNodes(besides known: inout Set<Int>) -> ([Node], CheckpointPages)? {
    guard let pages, pages.isPartial, let observer else { return nil }
    var nodes: [Node] = []
    let undone = inFlight.contents.replaced() + batch.undo.contents.replaced()
    for (index, change) in undone.enumerated()
    where !change.node.isLoadedAtAGlance && !known.contains(index) {
      guard change.path.withStoredBytes({ observer.wantsCommit(at: $0) }) else { continue }
      known.insert(index)
      nodes.append(change.node)
    }
    return nodes.isEmpty ? nil : (nodes, pages)
  }

  /// Whether a refusal of the disk is a failure of its own, and not what was said before.
  fileprivate func isNews(isFull: Bool) -> Bool {
    switch phase {
    case .running, .withheld: !isFull || !isFullReported
    case .full: !isFull
    case .poisoned: false
    case .closing, .closed: closingFailure == nil && !(isFull && isFullReported)
    }
  }

  /// Changes the phase after the disk refused.
  ///
  /// - Returns: why writes are refused from now on.
  fileprivate mutating func refuse(_ error: StorageError, isFull: Bool) -> EngineError {
    if isFull {
      isFullReported = true
      if case .running = phase { phase = .full(error) }
      return .diskFull(error)
    }
    let doubtful = acknowledgedLSN > durableLSN ? durableLSN.next...acknowledgedLSN : nil
    let refusal = EngineError.poisoned(cause: error, notKnownDurable: doubtful)
    switch phase {
    case .running, .full, .withheld: phase = .poisoned(refusal)
    case .poisoned, .closing, .closed: break
    }
    return refusal
  }
}
