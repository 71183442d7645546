/// How long to wait before the next attempt, and for an answer: longer after each failure.
///
/// A statement that waits for a standby cannot be taken back: PostgreSQL goes on to wait though the client has left. So an
/// answer is waited for longer and longer, which bounds the connections that a missing standby costs. A failure that came
/// at once, as from a PostgreSQL that is being started, has left nothing behind, and each host of an address is asked
/// before the wait grows: the one that answers may be the last of them.
struct Pauses {
  private let firstTimeout: Duration
  private let hostCount: Int
  private var failureCount = 0
  /// Of those that were not answered in time.
  private var silenceCount = 0
  /// When this attempt began.
  private var begun: ContinuousClock.Instant

  private static let timeoutMax = Duration.seconds(320)
  private static let pauseMax = Duration.seconds(2)

  init(
    _ firstTimeout: Duration, hostCount: Int = 1, now: ContinuousClock.Instant = .now
  ) {
    self.firstTimeout = firstTimeout
    self.hostCount = hostCount
    begun = now
  }

  /// For the next answer.
  var timeout: Duration {
    min(
      firstTimeout * (1 << min(silenceCount / hostCount, 8)), max(firstTimeout, Self.timeoutMax))
  }

  private var pause: Duration {
    min(.milliseconds(20) * (1 << min(failureCount, 8)), Self.pauseMax)
  }

  mutating func succeeded(now: ContinuousClock.Instant = .now) {
    failureCount = 0
    silenceCount = 0
    begun = now
  }

  /// - Returns: how long to wait before the next attempt.
  mutating func failed(now: ContinuousClock.Instant = .now) -> Duration {
    defer { failureCount += 1 }
    if now - begun >= timeout { silenceCount += 1 }
    begun = now + pause
    return pause
  }

  /// Waits after a failure; returns early once the interruption is set.
  mutating func wait(_ interruption: Interruption) {
    interruption.wait(failed())
    begun = .now
  }
}
