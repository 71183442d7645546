/// How long to wait before the next attempt, and for an answer: longer after each failure.
///
/// A statement that waits for a standby cannot be taken back: PostgreSQL goes on to wait though the client has left. So an
/// answer is waited for longer and longer, which bounds the connections that a missing standby costs.
struct Pauses {
  private let firstTimeout: Duration
  private var failureCount = 0

  private static let timeoutMax = Duration.seconds(320)
  private static let pauseMax = Duration.seconds(2)

  init(_ firstTimeout: Duration) { self.firstTimeout = firstTimeout }

  /// For the next answer.
  var timeout: Duration {
    min(firstTimeout * (1 << min(failureCount, 8)), max(firstTimeout, Self.timeoutMax))
  }

  private var pause: Duration {
    min(.milliseconds(20) * (1 << min(failureCount, 8)), Self.pauseMax)
  }

  mutating func succeeded() { failureCount = 0 }

  /// Waits after a failure; returns early once the interruption is set.
  mutating func wait(_ interruption: Interruption) {
    interruption.wait(pause)
    failureCount += 1
  }
}
