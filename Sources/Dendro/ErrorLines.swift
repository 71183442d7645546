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
