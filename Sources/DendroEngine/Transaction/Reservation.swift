import DendroTree
import Dispatch
import Synchronization

/// A path that a transaction keeps to itself: from when it was overtaken three times until it ends, but
/// no longer than the writers' patience, which begins with the first one that waits.
///
/// A block that waits for a writer that waits for the block would stand still for ever: so it stands still
/// once, for the patience, and in its later runs nobody waits for it.
final class Reservation: Sendable {
  private let path: Path
  private let patience: DispatchTimeInterval
  /// Entered until the end.
  private let holder = DispatchGroup()
  private let state = Mutex(State())

  fileprivate struct State {
    var isOver = false
    /// Whether it ended before its transaction did.
    var isInVain = false
    /// When it ends at the latest, once somebody waits.
    var deadline: DispatchTime?
    /// Whether somebody sees to it that it ends then, whoever waits.
    var hasTimer = false
  }

  init(_ path: Path, patience: Duration) {
    self.path = path
    let longest = Duration.seconds(86_400)
    let (seconds, attoseconds) = min(max(patience, .zero), longest).components
    self.patience = .nanoseconds(Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
    holder.enter()
  }

  deinit { end() }

  /// Not a global one, whose threads an application may hold up.
  private static let queue = DispatchQueue(label: "dendro.reservations")

  var isOver: Bool { state.withLock { $0.isOver } }

  /// Lets everybody go who waits. Any number of times.
  func end() { end(inVain: false) }

  private func end(inVain: Bool) {
    let isFirst = state.withLock { state in
      if state.isOver { return false }
      state.isOver = true
      state.isInVain = inVain
      return true
    }
    if isFirst { holder.leave() }
  }

  /// Waits on the calling thread.
  ///
  /// - Returns: whether the transaction ended in time; if not, the write goes ahead of it.
  func wait() -> Bool {
    let deadline = state.withLock { $0.startedDeadline(patience) }
    if holder.wait(timeout: deadline) == .timedOut { end(inVain: true) }
    return !state.withLock { $0.isInVain }
  }

  /// `wait()` without holding a thread.
  func wait() async -> Bool {
    let (deadline, wantsTimer) = state.withLock { state in
      defer { state.hasTimer = true }
      return (state.startedDeadline(patience), !state.hasTimer)
    }
    if wantsTimer {
      Self.queue.asyncAfter(deadline: deadline) { self.end(inVain: true) }
    }
    await withUnsafeContinuation { task in
      holder.notify(queue: Self.queue) { task.resume() }
    }
    return !state.withLock { $0.isInVain }
  }

  /// Whether the write changes the node at the path, one above or one below.
  func concerns(_ write: Write) -> Bool {
    guard isRelated(write.path) else { return false }
    guard case .update(let base, let entries) = write else { return true }
    return entries.contains { isRelated(base.appending($0.path)) }
  }

  private func isRelated(_ other: Path) -> Bool {
    path.isPrefix(of: other) || other.isPrefix(of: path)
  }
}

extension Reservation.State {
  fileprivate mutating func startedDeadline(_ patience: DispatchTimeInterval) -> DispatchTime {
    if let deadline { return deadline }
    let new = DispatchTime.now() + patience
    deadline = new
    return new
  }
}
