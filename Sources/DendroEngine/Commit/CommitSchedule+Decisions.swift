/// What is to happen to the open batch.
extension CommitSchedule {
  enum Decision {
    case commit
    case gather(Gathering)
    case delay(Delay)
    case rest
  }

  /// The first row of the table in <doc:WritePath> that matches.
  func decision(on open: OpenBatch, at now: Instant) -> Decision {
    if wantsProbe { return .commit }
    if open.isEmpty { return .rest }
    if let gathering = gathering ?? newGathering(for: open, now), now < gathering.end,
      open.mayGather(gathering.callerCount)
    {
      return .gather(gathering)
    }
    let delay = delay ?? newDelay(now)
    if open.mayGrow, now < delay.end { return .delay(delay) }
    return .commit
  }

  /// Whether the commit thread looks for work by itself after a commit delay: callers led a moment ago and may do so
  /// again, and to wake it for each of their writes would cost more.
  func looksAgain(_ now: Instant) -> Bool {
    guard commitDelay > .zero, let lastLead else { return false }
    return now - lastLead <= commitDelay * Self.lookCount
  }

  /// A delay that ends before a synchronize is due.
  func newDelay(_ now: Instant) -> Delay {
    let end = now + commitDelay
    return Delay(since: now, end: due.synchronize.map { min($0, end) } ?? end)
  }

  /// Lets a batch that is flushed wait for a third of the last flush.
  ///
  /// Without this, callers that write again once they are acknowledged form two groups, each of which waits for the
  /// flush of the other. A batch does not wait for callers that have not written again within the time of a flush.
  private func newGathering(for open: OpenBatch, _ now: Instant) -> Gathering? {
    guard open.callerCount > 0, open.isSynchronized, lastFlush >= Self.gatheredFlushMin,
      let acknowledged, now - acknowledged.time <= lastFlush
    else { return nil }
    return Gathering(callerCount: acknowledged.callerCount, end: now + lastFlush / 3)
  }

  static func earlier(_ first: Instant?, _ second: Instant?) -> Instant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
  }
}
