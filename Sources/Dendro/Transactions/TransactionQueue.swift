import Dispatch

/// The transactions of a database: one at a time, in the order in which they were started.
///
/// They run on a queue of their own, neither the caller's nor the callback queue, and hold their
/// database open until they have ended.
final class TransactionQueue: Sendable {
  /// Transactions that may wait: starting more waits too.
  static let limit = 16_384

  private let queue = DispatchQueue(
    label: ThreadName.transactions.rawValue, autoreleaseFrequency: .workItem)
  /// One signal for each free place in the queue. Starts at 0, since a semaphore must not be freed with a
  /// lower value than it was made with.
  private let places = DispatchSemaphore(value: 0)

  init() {
    for _ in 0..<Self.limit { places.signal() }
  }

  /// Starts a transaction for a caller that waits for its end.
  func start(_ transaction: Transaction) {
    run { transaction.run() }
  }

  /// Runs `body`, which may run one transaction of the engine, in its turn.
  func run(_ body: @escaping @Sendable () -> Void) {
    queue.async { ThreadName.transactions.during(body) }
  }

  /// Starts a transaction once there is a place for it.
  ///
  /// - Parameter mayWait: false on the queue's own thread, if no place becomes free meanwhile.
  /// - Returns: false if there is no place.
  func start(_ transaction: Transaction, mayWait: Bool) -> Bool {
    if mayWait {
      places.wait()
    } else if places.wait(timeout: .now()) == .timedOut {
      return false
    }
    queue.async { [places] in
      places.signal()
      ThreadName.transactions.during { transaction.run() }
    }
    return true
  }
}
