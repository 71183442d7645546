import Foundation

/// Runs `body` on `count` threads at once, passes each its number, and throws the first error.
func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
  let firstError = FirstError()
  let group = DispatchGroup()
  for number in 0..<count {
    group.enter()
    Thread.detachNewThread {
      do {
        try body(number)
      } catch {
        firstError.record(error)
      }
      group.leave()
    }
  }
  group.wait()
  try firstError.check()
}

/// The first error of several threads. A lock protects it, hence `@unchecked Sendable`.
private final class FirstError: @unchecked Sendable {
  private let lock = NSLock()
  private var error: (any Error)?

  func record(_ error: any Error) {
    lock.withLock { self.error = self.error ?? error }
  }

  func check() throws {
    if let error = lock.withLock({ error }) { throw error }
  }
}
