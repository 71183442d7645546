import Dispatch
import Synchronization

/// A bridge for verbs that have nothing else to do.
enum Blocking {
  /// Runs asynchronous work and waits for it on the calling thread, which must not be one of the
  /// concurrency pool's.
  static func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws
    -> Value
  {
    let done = DispatchSemaphore(value: 0)
    let outcome = Mutex<Result<Value, any Error>?>(nil)
    Task {
      let result: Result<Value, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      outcome.withLock { $0 = result }
      done.signal()
    }
    done.wait()
    guard let result = outcome.withLock({ $0 }) else { fatalError("signalled without a result") }
    return try result.get()
  }
}
