import DendroTesting
import Foundation

/// What it takes to see one failing state again.
///
/// A failure prints `DENDRO_REPLAY='<suite> <seed> <operation> <state> …' swift test …`; with that
/// variable set, each suite runs that one state alone.
struct Reproduction: CustomStringConvertible {
  var suite: String
  var seed: UInt64
  /// One crash after the other: how far the trace went, and what became of what was pending.
  var crashes: [(operation: Int, state: CrashState)] = []

  var description: String {
    let steps = crashes.map { " \($0.operation) \($0.state.fates.isEmpty ? "-" : "\($0.state)")" }
    return "DENDRO_REPLAY='\(suite) \(seed)\(steps.joined())' "
      + "swift test -c release --filter SimulationTests"
  }

  /// The state that the environment asks for, where it is one of this suite.
  static func requested(for suite: String) -> Reproduction? {
    guard let text = ProcessInfo.processInfo.environment["DENDRO_REPLAY"] else { return nil }
    let words = text.split(separator: " ")
    guard words.count >= 2, words[0] == suite, let seed = UInt64(words[1]) else { return nil }
    var result = Reproduction(suite: suite, seed: seed)
    var rest = words.dropFirst(2)
    while let operation = rest.first.flatMap({ Int($0) }) {
      let text = rest.dropFirst().first ?? "-"
      result.crashes.append((operation, text == "-" ? CrashState([]) : CrashState(String(text))!))
      rest = rest.dropFirst(2)
    }
    return result
  }

  /// Prints what led to the first crash, for whoever looks at it.
  func explain(_ disk: SimulatedDisk, _ point: CrashPoint) {
    for (index, operation) in disk.trace.prefix(point.operationCount).enumerated() {
      print("\(index + 1). \(operation)")
    }
    for (text, fate) in zip(point.pendingDescriptions, crashes.first?.state.fates ?? []) {
      print("  pending: \(text): \(CrashState([fate]))")
    }
  }

  /// Whether some other suite's state is asked for: then there is nothing to do here.
  static var isOnlyOne: Bool { ProcessInfo.processInfo.environment["DENDRO_REPLAY"] != nil }
}
