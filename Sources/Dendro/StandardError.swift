import Dispatch
import Foundation
import Synchronization

/// The default error handler: one line on standard error.
///
/// The lines are written on a thread of their own. Standard error may be a pipe that its reader leaves full, and
/// errors are reported where other writes wait for their acknowledgement.
enum StandardError {
  private static let state = Mutex(State())
  private static let queue = DispatchQueue(
    label: "dendro.standard-error", autoreleaseFrequency: .workItem)

  private struct State {
    var lines = ErrorLines()
    /// Whether lines are being written, or are about to be.
    var isWriting = false
  }

  /// Returns at once.
  static func report(_ error: DatabaseError) {
    let starts = state.withLock { state -> Bool in
      state.lines.add(error.description, at: .now)
      guard !state.isWriting, !state.lines.isEmpty else { return false }
      state.isWriting = true
      return true
    }
    if starts { queue.async { writeAll() } }
  }

  private static func writeAll() {
    while true {
      let lines = state.withLock { state in
        let lines = state.lines.take()
        state.isWriting = !lines.isEmpty
        return lines
      }
      if lines.isEmpty { return }
      for line in lines { write("dendro: \(line)") }
    }
  }

  /// Writes one line. A server's words may be part of it: what a terminal would obey is escaped.
  static func write(_ line: String) {
    try? FileHandle.standardError.write(contentsOf: Data((line.onOneLine + "\n").utf8))
  }
}
