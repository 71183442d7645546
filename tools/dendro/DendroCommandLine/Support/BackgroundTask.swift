import Dispatch
import Synchronization

/// Blocking work beside that of the calling thread.
final class BackgroundTask<Output: Sendable>: Sendable {
  private let outcome = Mutex<Result<Output, any Error>?>(nil)
  private let end = DispatchGroup()

  init(_ body: @escaping @Sendable () throws -> Output) {
    DispatchQueue(label: "background").async(group: end) { [self] in
      let result = Result { try body() }
      outcome.withLock { $0 = result }
    }
  }

  func wait() { end.wait() }

  /// Waits for the result.
  func result() throws -> Output {
    wait()
    guard let result = outcome.withLock({ $0 }) else {
      preconditionFailure("a body that has ended has a result")
    }
    return try result.get()
  }
}
