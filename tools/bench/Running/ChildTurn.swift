import DendroPlatform
import Foundation

/// A turn of one contestant, which a process of its own takes: the benchmark starts itself with hidden
/// arguments. The child prints the measurement as JSON.
struct ChildTurn {
  enum Step: String { case prepare, measure }

  /// The first argument of a child.
  static let option = "--turn"

  let step: Step
  let workload: String
  let comparison: String
  let contestant: String
  let turn: Turn

  // MARK: In the parent

  /// Runs the child and returns what it printed.
  ///
  /// - Parameter isKilled: whether the child is to end by killing itself.
  func start(isKilled: Bool) throws -> Data {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = [
      Self.option, step.rawValue, workload, comparison, contestant, turn.directory.path,
      turn.isQuick ? "quick" : "full",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let printed = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let endedWell =
      isKilled
      ? process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL
      : process.terminationReason == .exit && process.terminationStatus == 0
    guard endedWell else {
      throw ChildFailure(
        description:
          "\(workload), \(comparison), \(contestant): the process that was to \(step) ended with "
          + "\(process.terminationReason == .exit ? "status" : "signal") "
          + "\(process.terminationStatus)")
    }
    return printed
  }

  // MARK: In the child

  init(
    step: Step, workload: String, comparison: String, contestant: String, turn: Turn
  ) {
    self.step = step
    self.workload = workload
    self.comparison = comparison
    self.contestant = contestant
    self.turn = turn
  }

  /// Nil if the arguments are not those of a child.
  init?(_ arguments: [String]) {
    guard arguments.count == 7, arguments[0] == Self.option, let step = Step(rawValue: arguments[1])
    else { return nil }
    self.init(
      step: step, workload: arguments[2], comparison: arguments[3], contestant: arguments[4],
      turn: Turn(
        directory: URL(fileURLWithPath: arguments[5], isDirectory: true),
        isQuick: arguments[6] == "quick"))
  }

  func take() async throws {
    let contestants = Workload.all.first { $0.name == workload }?.comparisons
      .first { $0.name == comparison }?.contestants
    guard let found = contestants?.first(where: { $0.name == contestant }) else {
      throw ChildFailure(description: "no contestant \(contestant) in \(workload), \(comparison)")
    }
    switch step {
    case .prepare:
      try await found.prepare?(turn)
    case .measure:
      let measurement = try await found.measure(turn)
      FileHandle.standardOutput.write(try JSONEncoder().encode(measurement))
    }
  }
}

struct ChildFailure: Error, CustomStringConvertible {
  let description: String
}
