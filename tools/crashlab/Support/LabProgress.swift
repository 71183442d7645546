import DendroCrashHarness
import Foundation
import Synchronization

/// How far a part of a run has come, on standard error: a bar that is drawn over itself if that is
/// a terminal, a line now and then elsewhere.
final class LabProgress: Sendable {
  private let name: String
  private let unit: String
  /// What it ends at; nil if only time ends it.
  private let total: Int?
  private let deadline: ContinuousClock.Instant?
  private let started = ContinuousClock.now
  private let isBar: Bool
  private let state = Mutex((last: ContinuousClock.now, isDrawn: false))

  init(_ name: String, unit: String, total: Int?, deadline: ContinuousClock.Instant? = nil) {
    self.name = name
    self.unit = unit
    self.total = total
    self.deadline = deadline
    let environment = ProcessInfo.processInfo.environment
    let hasColor = environment["NO_COLOR", default: ""].isEmpty
    isBar = isatty(2) == 1 && hasColor && environment["TERM"] != "dumb"
  }

  var seconds: Double { (ContinuousClock.now - started).seconds }

  /// - `share`: how much of the whole that is, if neither a number nor a time to end at was given.
  func update(_ count: Int, share: Double? = nil) {
    let now = ContinuousClock.now
    let isDue = state.withLock { state in
      guard now - state.last >= (isBar ? .milliseconds(100) : .seconds(30)) else { return false }
      state.last = now
      state.isDrawn = true
      return true
    }
    if isDue { write(line(count, share)) }
  }

  private func line(_ count: Int, _ known: Double?) -> String {
    let elapsed = seconds
    var share = total.map { Double(count) / Double(max(1, $0)) } ?? known ?? 0
    if let deadline {
      let left = (deadline - ContinuousClock.now).seconds
      share = max(share, elapsed / max(0.001, elapsed + max(0, left)))
    }
    share = min(1, share)
    let full = Int(share * 24)
    let bar =
      "[" + String(repeating: "#", count: full) + String(repeating: ".", count: 24 - full) + "]"
    let rate = Int(Double(count) / max(0.001, elapsed))
    return
      "\(name) \(bar) \(Int(share * 100))%  \(grouped(count)) \(unit), \(grouped(rate)) a second"
  }

  /// Makes room for other lines.
  func clear() {
    let isDrawn = state.withLock { state in
      defer { state.isDrawn = false }
      return state.isDrawn
    }
    if isDrawn, isBar { emit("\r\u{1B}[K") }
  }

  private func write(_ line: String) { emit(isBar ? "\r\u{1B}[K" + line : line + "\n") }

  private func emit(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
