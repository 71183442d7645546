import Foundation

/// Wakes threads that wait for a change.
final class Condition: @unchecked Sendable {
  // Unchecked: `count` is used under `condition`, which all threads may use.
  private let condition = NSCondition()
  private var count: UInt64 = 0

  /// How many signals there were.
  var signalCount: UInt64 { condition.withLock { count } }

  func signal() {
    condition.withLock {
      count += 1
      condition.broadcast()
    }
  }

  /// Waits until there were more signals.
  ///
  /// - Returns: false if the time is over.
  func wait(behind seen: UInt64, until deadline: ContinuousClock.Instant) -> Bool {
    condition.withLock {
      while count == seen {
        let rest = deadline - .now
        if rest <= .zero { return false }
        _ = condition.wait(until: Date(timeIntervalSinceNow: rest / .seconds(1)))
      }
      return true
    }
  }
}
