import DendroStorage
import Dispatch
import Synchronization

/// A result that one thread waits for and another one, mostly the commit thread, sets.
final class BlockingResult: Sendable {
  private let result = Mutex<Result<LogSequenceNumber?, EngineError>?>(nil)
  private let semaphore = DispatchSemaphore(value: 0)

  func set(_ value: Result<LogSequenceNumber?, EngineError>) {
    result.withLock { $0 = value }
    semaphore.signal()
  }

  /// Waits for the result. Call once.
  func get() throws(EngineError) -> LogSequenceNumber? {
    semaphore.wait()
    return try result.withLock { $0! }.get()
  }
}
