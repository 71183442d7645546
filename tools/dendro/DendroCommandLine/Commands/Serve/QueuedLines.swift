import DendroPlatform
import Dispatch
import Synchronization

/// Lines for standard error, for which nobody waits.
///
/// Standard error may be a pipe whose reader leaves it full: a server goes on all the same. Lines then wait for the reader, so
/// many of them; others are left out, and counted.
final class QueuedLines: Sendable {
  private struct State {
    var waiting: [String] = []
    var byteCount = 0
    var leftOutCount = 0
    /// Whether waiting lines are being written.
    var isDraining = false
  }

  /// Of the lines that wait.
  private static let byteLimit = 1 << 20
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "dendro-log")
  private let draining = DispatchGroup()
  private let leftOut: @Sendable (_ count: Int) -> String

  /// - Parameter leftOut: the line that says how many lines are left out.
  init(leftOut: @escaping @Sendable (_ count: Int) -> String) { self.leftOut = leftOut }

  /// Writes a line, at once if standard error takes it.
  func add(_ line: String) {
    let line = line.printable
    let drains = state.withLock { state -> Bool in
      if !state.isDraining, Self.takes(line) {
        Terminal.noteLine(line)
        return false
      }
      guard state.byteCount + line.utf8.count <= Self.byteLimit else {
        state.leftOutCount += 1
        return false
      }
      state.waiting.append(line)
      state.byteCount += line.utf8.count
      if state.isDraining { return false }
      state.isDraining = true
      draining.enter()
      return true
    }
    if drains { queue.async { [self] in drain() } }
  }

  /// Waits until all lines are written, but no longer than a second.
  func finish() { _ = draining.wait(timeout: .now() + 1) }

  private func drain() {
    while true {
      let lines = state.withLock { state -> [String] in
        var lines = state.waiting
        if state.leftOutCount > 0 {
          lines.append(leftOut(state.leftOutCount))
        }
        state = State(isDraining: !lines.isEmpty)
        return lines
      }
      guard !lines.isEmpty else { break }
      for line in lines { Terminal.noteLine(line) }
    }
    draining.leave()
  }

  /// Whether standard error takes a line without a wait: a pipe that has room has it for so many bytes.
  private static func takes(_ line: String) -> Bool {
    guard line.utf8.count < Int(PIPE_BUF) else { return false }
    var place = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
    // Without a reader there is no wait either.
    return poll(&place, 1, 0) == 1
  }
}
