import Foundation
import Synchronization

/// The default error handler: one line on standard error.
///
/// A disk that refuses can fail a hundred thousand writes with one sentence: of equal lines in a row
/// only the 1st, 10th, 100th, … are written, with their count.
enum StandardError {
  private static let last = Mutex<(text: String, count: Int)>(("", 0))

  static func report(_ error: DatabaseError) {
    let text = error.description
    let count = last.withLock { last in
      last = last.text == text ? (text, last.count + 1) : (text, 1)
      return last.count
    }
    guard isPowerOfTen(count) else { return }
    let times = count > 1 ? " (\(count) times)" : ""
    try? FileHandle.standardError.write(contentsOf: Data("dendro: \(text)\(times)\n".utf8))
  }

  private static func isPowerOfTen(_ count: Int) -> Bool {
    var rest = count
    while rest % 10 == 0 { rest /= 10 }
    return rest == 1
  }
}
