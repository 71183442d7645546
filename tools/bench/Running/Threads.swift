import Foundation

/// Runs `body` on `count` threads at once, passes each its number, and throws the first error.
func runInThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
  let threads = (0..<count).map { number in Thread.running { try body(number) } }
  var firstError: (any Error)?
  for thread in threads {
    do { try thread.join() } catch { firstError = firstError ?? error }
  }
  if let firstError { throw firstError }
}

extension Thread {
  /// Starts a thread.
  static func running(_ body: @escaping @Sendable () throws -> Void) -> RunningThread {
    let running = RunningThread()
    detachNewThread {
      do {
        try body()
        running.end(nil)
      } catch {
        running.end(error)
      }
    }
    return running
  }
}

/// A thread that can be waited for once.
///
/// The error is written before the semaphore is signaled, and read afterwards, hence `@unchecked Sendable`.
final class RunningThread: @unchecked Sendable {
  private let ended = DispatchSemaphore(value: 0)
  private var error: (any Error)?

  /// Waits for the end, and throws the error of the thread.
  func join() throws {
    ended.wait()
    if let error { throw error }
  }

  fileprivate func end(_ error: (any Error)?) {
    self.error = error
    ended.signal()
  }
}
