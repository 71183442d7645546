import Synchronization

/// Counts durations by size, as Prometheus does.
package final class Histogram: Sendable {
  /// Upper bounds in seconds; what is above the last has a bucket of its own.
  static let bounds: [Double] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1,
    2.5, 5, 10,
  ]

  private let state = Mutex(State())

  private struct State {
    var counts = [UInt64](repeating: 0, count: Histogram.bounds.count + 1)
    var sum = 0.0
  }

  package init() {}

  package func observe(seconds: Double) {
    let index = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
    state.withLock { state in
      state.counts[index] += 1
      state.sum += seconds
    }
  }

  func observe(since start: ContinuousClock.Instant) {
    observe(seconds: (ContinuousClock.now - start) / .seconds(1))
  }

  /// How many durations were at most as long as each bound, and how many there were.
  package var figures: (cumulative: [UInt64], count: UInt64, sum: Double) {
    let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
    var total: UInt64 = 0
    let cumulative = counts.map { count in
      total += count
      return total
    }
    return (cumulative.dropLast(), total, sum)
  }
}
