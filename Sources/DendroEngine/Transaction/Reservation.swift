import DendroTree
import Dispatch
import Synchronization

/// A path that a transaction reserves after three lost runs: other writers at the path, above or below wait
/// until the transaction has ended or the timeout has passed. The timeout begins with the first that waits.
///
/// A block that waits for a writer that waits for the block would never end. With the timeout it waits
/// once, and in its later runs no writer waits for it.
final class Reservation: Sendable {
  private let path: Path
  private let timeout: DispatchTimeInterval
  /// Entered while the reservation lasts: waiting writers wait for the group.
  private let holder = DispatchGroup()
  private let state = Mutex(State())

  fileprivate struct State {
    var isOver = false
    /// Whether it ended before its transaction did.
    var hasTimedOut = false
    /// When the timeout has passed; nil until a writer waits.
    var deadline: DispatchTime?
    /// Whether a timer was set for the deadline.
    var hasTimer = false
  }

  init(_ path: Path, timeout: Duration) {
    self.path = path
    let longest = Duration.seconds(86_400)
    let (seconds, attoseconds) = min(max(timeout, .zero), longest).components
    self.timeout = .nanoseconds(Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
    holder.enter()
  }

  deinit { end() }

  /// A queue of its own, since an application may block all threads of the global queues.
  private static let queue = DispatchQueue(label: "dendro.reservations")

  var isOver: Bool { state.withLock { $0.isOver } }

  /// Lets all writers pass. Later calls have no effect.
  func end() { end(timedOut: false) }

  private func end(timedOut: Bool) {
    let isFirst = state.withLock { state in
      if state.isOver { return false }
      state.isOver = true
      state.hasTimedOut = timedOut
      return true
    }
    if isFirst { holder.leave() }
  }

  /// Waits on the calling thread.
  ///
  /// - Returns: whether the transaction ended in time; if not, the write does not wait for it again.
  func wait() -> Bool {
    let deadline = state.withLock { $0.startedDeadline(timeout) }
    if holder.wait(timeout: deadline) == .timedOut { end(timedOut: true) }
    return !state.withLock { $0.hasTimedOut }
  }

  /// `wait()` without blocking a thread.
  func wait() async -> Bool {
    let (deadline, wantsTimer) = state.withLock { state in
      defer { state.hasTimer = true }
      return (state.startedDeadline(timeout), !state.hasTimer)
    }
    if wantsTimer {
      Self.queue.asyncAfter(deadline: deadline) { self.end(timedOut: true) }
    }
    await withUnsafeContinuation { task in
      holder.notify(queue: Self.queue) { task.resume() }
    }
    return !state.withLock { $0.hasTimedOut }
  }

  /// Whether the write changes data at the path, above or below.
  func concerns(_ write: WriteView) -> Bool { path.withStoredBytes { write.concerns($0) } }
}

extension Reservation.State {
  fileprivate mutating func startedDeadline(_ timeout: DispatchTimeInterval) -> DispatchTime {
    if let deadline { return deadline }
    let new = DispatchTime.now() + timeout
    deadline = new
    return new
  }
}
