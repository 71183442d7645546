import Dendro
import DendroEngine
import Synchronization

/// A line on standard error that is drawn over itself, at most ten times a second, and only if
/// that is a terminal.
package final class Progress {
  private let isShown: Bool
  private let label: String
  private let start = Platform.uptime()
  private var last: UInt64 = 0
  /// Whether a line stands there, which any other line would stand behind.
  private static let isDrawn = Atomic<Bool>(false)

  init(_ label: String) {
    self.label = label
    isShown = Platform.isTerminal(2) && Platform.environment("TERM") != "dumb"
  }

  deinit { clear() }

  var seconds: Double { Double(Platform.uptime() - start) / 1e9 }

  /// - Parameter total: nil if it is not known.
  func update(_ done: UInt64, of total: UInt64?, _ details: @autoclosure () -> String = "") {
    guard isShown else { return }
    let now = Platform.uptime()
    guard now - last >= 100_000_000 else { return }
    last = now
    draw(done, of: total, details())
  }

  /// Says at once what is being done, for steps that take long without saying how far they are.
  func begin(_ step: @autoclosure () -> String) { begin(0, of: nil, step()) }

  func begin(_ done: UInt64, of total: UInt64?, _ step: @autoclosure () -> String) {
    guard isShown else { return }
    last = Platform.uptime()
    draw(done, of: total, step())
  }

  /// About how long work takes still; nil if too little is done to estimate it.
  package static func secondsLeft(_ done: UInt64, of total: UInt64?, after seconds: Double)
    -> Double?
  {
    guard let total, done > 0, done < total, seconds >= 2 else { return nil }
    let share = Double(done) / Double(total)
    return share < 0.01 ? nil : seconds / share - seconds
  }

  package static func text(secondsLeft: Double) -> String {
    let seconds = Int(secondsLeft.rounded(.up))
    if seconds < 60 { return "\(seconds) s" }
    if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
    return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
  }

  /// Makes room for other lines.
  func clear() { if isShown { Self.wipe() } }

  /// Makes room for other lines, whatever is being done.
  static func wipe() {
    if isDrawn.exchange(false, ordering: .relaxed) { Terminal.write("\r\u{1B}[K") }
  }

  private func draw(_ done: UInt64, of total: UInt64?, _ details: String) {
    Self.isDrawn.store(true, ordering: .relaxed)
    // A terminal may be made wider or narrower at any time.
    let columns = Platform.columnCount(2)
    var line = "\(label) "
    if let total, total > 0 {
      let share = min(1, Double(done) / Double(total))
      if columns >= 60 {
        let full = Int(share * 24)
        line += "[" + String(repeating: "#", count: full)
        line += String(repeating: ".", count: 24 - full) + "] "
      }
      line += "\(Int(share * 100))% "
    }
    line += details
    if let left = Self.secondsLeft(done, of: total, after: seconds) {
      line += ", \(Self.text(secondsLeft: left)) left"
    }
    // The last column stays free: a line that fills it wraps, and is not wiped by the next one.
    Terminal.write("\r\u{1B}[K" + line.fitted(to: columns - 1))
  }
}

extension Progress {
  /// For the opening of a database, which may take seconds.
  var recovery: @Sendable (RecoveryProgress) -> Void { recovery(of: nil) }

  /// For the reading of a checkpoint or a log.
  ///
  /// - Parameter name: what is read; nil if that is for the phase to say.
  func recovery(of name: String?) -> @Sendable (RecoveryProgress) -> Void {
    let box = UncheckedBox(self)
    return { progress in
      let name = name ?? (progress.phase == .log ? "log" : "checkpoint")
      box.value.update(
        progress.completedByteCount, of: progress.totalByteCount,
        "\(name) \(Format.bytes(progress.completedByteCount))")
    }
  }
}

extension String {
  /// As much of the text as so many columns have room for, without control characters.
  fileprivate func fitted(to columns: Int) -> String {
    var text = String.UnicodeScalarView()
    var width = 0
    for scalar in unicodeScalars {
      width += String.width(of: scalar)
      guard width <= columns else { break }
      text.append(scalar.isTerminalControl ? "?" : scalar)
    }
    return String(text)
  }
}

/// Hands a value to a closure that the engine calls on the thread that opens it and on no other.
private struct UncheckedBox<Value>: @unchecked Sendable {
  let value: Value
  init(_ value: Value) { self.value = value }
}
