import Dispatch
import Synchronization

/// The closing of a database: the first call of `close()` does the work, later calls wait until it is done.
final class Closing: Sendable {
  private let isBegun = Atomic<Bool>(false)
  /// Left once the directory is free.
  private let inProgress = DispatchGroup()

  init() { inProgress.enter() }

  deinit { if !hasBegun { inProgress.leave() } }

  var hasBegun: Bool { isBegun.load(ordering: .acquiring) }

  /// - Returns: whether the caller is the one that closes; it has to call `end()`.
  func begin() -> Bool { !isBegun.exchange(true, ordering: .acquiringAndReleasing) }

  func end() { inProgress.leave() }

  func wait() { inProgress.wait() }

  /// `wait()` without blocking a thread.
  func wait() async {
    await withCheckedContinuation { continuation in
      inProgress.notify(queue: Self.queue) { continuation.resume() }
    }
  }

  /// Calls `body` once the database is closed or released.
  func notify(_ body: @escaping @Sendable () -> Void) {
    inProgress.notify(queue: Self.queue, execute: body)
  }

  private static let queue = DispatchQueue(label: ThreadName.closing.rawValue)
}
