/// Finds a client that has stopped to read. Looked at again and again, about once a second.
struct ReadTimer: Sendable {
  private var sentByteCount = -1
  private var since = ContinuousClock.now

  /// - Parameters:
  ///   - sentByteCount: what the client's socket has taken so far.
  ///   - isWaiting: whether there is more for it.
  mutating func hasStopped(
    _ now: ContinuousClock.Instant, sentByteCount: Int, isWaiting: Bool, limit: Duration
  ) -> Bool {
    if !isWaiting || sentByteCount != self.sentByteCount {
      self.sentByteCount = isWaiting ? sentByteCount : -1
      since = now
      return false
    }
    return now - since >= limit
  }
}
