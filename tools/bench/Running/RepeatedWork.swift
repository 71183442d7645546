import Foundation
import Synchronization

/// Work that is repeated on a thread of its own until it is stopped.
final class RepeatedWork: Sendable {
  private let isOver = Atomic(false)
  private let thread = Mutex<RunningThread?>(nil)

  /// Begins.
  ///
  /// - Parameter pause: the seconds from the end of the work to its next time.
  init(pause: Double, _ body: @escaping @Sendable () throws -> Void) {
    thread.withLock {
      $0 = Thread.running { [self] in
        while !isOver.load(ordering: .relaxed) {
          try body()
          Thread.sleep(forTimeInterval: pause)
        }
      }
    }
  }

  /// Waits for its end, and throws what it has thrown.
  func stop() throws {
    isOver.store(true, ordering: .relaxed)
    try thread.withLock(\.self)?.join()
  }
}
