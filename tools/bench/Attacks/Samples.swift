import Synchronization

/// What several threads have measured.
final class Samples: Sendable {
  private let values = Mutex<[Double]>([])

  func append(_ value: Double) { values.withLock { $0.append(value) } }

  var all: [Double] { values.withLock(\.self) }
}
