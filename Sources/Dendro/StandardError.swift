import Dispatch
import Foundation
import Synchronization

/// The default error handler: one line on standard error.
///
/// A disk that refuses can fail a hundred thousand writes with one sentence: of equal lines in a row
/// only the 1st, 10th, 100th, … are written, with their count.
///
/// The lines are written on a thread of their own. Standard error may be a pipe that its reader leaves full, and
/// errors are reported where other writes wait for their acknowledgement.
enum StandardError {
  /// The most lines that wait.
  fileprivate static let limit = 256
  private static let state = Mutex(State())
  private static let queue = DispatchQueue(
    label: "dendro.standard-error", autoreleaseFrequency: .workItem)

  fileprivate struct State {
    var last = ""
    /// How often the last text came in a row.
    var count = 0
    var waiting: [String] = []
    var leftOutCount = 0
    /// Whether lines are being written, or are about to be.
    var isWriting = false
  }

  /// Returns at once.
  static func report(_ error: DatabaseError) {
    let starts = state.withLock { state -> Bool in
      state.add(error.description)
      guard !state.isWriting, !state.waiting.isEmpty else { return false }
      state.isWriting = true
      return true
    }
    if starts { queue.async { writeAll() } }
  }

  private static func writeAll() {
    while let lines = state.withLock({ $0.takeWaiting() }) {
      for line in lines {
        try? FileHandle.standardError.write(contentsOf: Data("dendro: \(line)\n".utf8))
      }
    }
  }
}

extension StandardError.State {
  fileprivate mutating func add(_ text: String) {
    count = last == text ? count + 1 : 1
    last = text
    guard isPowerOfTen(count) else { return }
    guard waiting.count < StandardError.limit else {
      leftOutCount += 1
      return
    }
    waiting.append(text + (count > 1 ? " (\(count) times)" : ""))
  }

  /// - Returns: nil if nothing waits; nothing is being written then.
  fileprivate mutating func takeWaiting() -> [String]? {
    isWriting = !waiting.isEmpty
    guard isWriting else { return nil }
    defer {
      waiting = []
      leftOutCount = 0
    }
    return leftOutCount == 0 ? waiting : waiting + ["\(leftOutCount) more errors, left out here"]
  }
}

private func isPowerOfTen(_ count: Int) -> Bool {
  var rest = count
  while rest % 10 == 0 { rest /= 10 }
  return rest == 1
}
