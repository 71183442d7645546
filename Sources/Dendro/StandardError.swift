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

/// Lines that wait for standard error.
///
/// A disk that refuses can fail a hundred thousand writes with one sentence: of equal lines in a row one a second is written,
/// and the 10th, 100th, …, with their count.
package struct ErrorLines {
  package init() {}

  /// The most lines that wait.
  static let limit = 256
  private var last = ""
  private var lastTime: ContinuousClock.Instant?
  /// How often the last text came in a row.
  private var count = 0
  private var waiting: [String] = []
  private var leftOutCount = 0

  var isEmpty: Bool { waiting.isEmpty }

  package mutating func add(_ text: String, at now: ContinuousClock.Instant) {
    count = last == text ? count + 1 : 1
    last = text
    let isDue = lastTime.map { now - $0 >= .seconds(1) } ?? true
    guard isDue || Self.isPowerOfTen(count) else { return }
    lastTime = now
    guard waiting.count < Self.limit else {
      leftOutCount += 1
      return
    }
    waiting.append(text + (count > 1 ? " (\(count) times)" : ""))
  }

  /// Takes all lines.
  package mutating func take() -> [String] {
    defer {
      waiting = []
      leftOutCount = 0
    }
    return leftOutCount == 0 ? waiting : waiting + ["\(leftOutCount) more errors, left out here"]
  }

  private static func isPowerOfTen(_ count: Int) -> Bool {
    var rest = count
    while rest % 10 == 0 { rest /= 10 }
    return rest == 1
  }
}

extension String {
  /// The text without ends of lines, and without what a terminal obeys instead of showing it: such characters are escaped.
  var onOneLine: String {
    var result = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      switch scalar.value {
      // Control characters, ends of lines and paragraphs, and marks of direction.
      case 0..<0x20, 0x7F...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
        result += "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars
      default: result.append(scalar)
      }
    }
    return String(result)
  }
}
