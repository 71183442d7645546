import Foundation

/// Tests of the suite, in a process of their own: for guards that no sweep reaches, such as those of several servers.
enum MutantTests {
  /// Runs tests in a child with these mutants.
  ///
  /// - Parameters:
  ///   - name: `Target.Suite/function`, or `Target.Suite` for all tests of a suite.
  ///   - bundle: the program that has the tests.
  /// - Returns: counts the tests.
  static func start(
    _ name: String, of bundle: String, planted: String, timeout: Int
  ) -> MutantSweep.Result {
    // What follows in the name of a test: of a suite its functions, of a function its arguments.
    let pattern =
      "^" + name.replacing(".", with: "\\.") + (name.contains("/") ? "\\(" : "/")
    do throws(ChildProcess.StartError) {
      let process = try PlantedProcess(
        bundle, ["--testing-library", "swift-testing", "--filter", pattern], planted: planted,
        timeout: max(timeout, silenceMin), joinsErrors: true)
      return result(of: process)
    } catch {
      return MutantSweep.Result(outcome: .trapped("\(error)"), count: 0, seconds: 0)
    }
  }

  /// A test says nothing between its beginning and its end.
  private static let silenceMin = 240

  private static func result(of process: PlantedProcess) -> MutantSweep.Result {
    var result = MutantSweep.Result(outcome: .held, count: 0, seconds: process.seconds)
    var issue: String?
    var last = ""
    var isComplete = false
    for line in process.said.split(separator: "\n").map(String.init) {
      if let end = line.range(of: " recorded an issue") {
        issue = issue ?? String(line[end.upperBound...])
      } else if let start = line.range(of: "Test run with ") {
        isComplete = true
        result.count = Int(line[start.upperBound...].prefix { $0.isNumber }) ?? 0
      } else {
        last = line
      }
    }
    if let seconds = process.silence {
      result.outcome = .hung(seconds: seconds)
    } else if !isComplete {
      // A program that does not even begin kills nothing.
      guard process.said.contains("Test run started") else { return result }
      result.outcome = .trapped("\(process.end): \(last)")
    } else if process.end != .exit(0), result.count > 0 {
      result.outcome = .violated(issue ?? "\(process.end)")
    }
    return result
  }
}
