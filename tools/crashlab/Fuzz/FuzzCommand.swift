import DendroCrashHarness
import Foundation
import DendroFuzzTargets

/// What `fuzz` takes besides.
struct FuzzOptions {
  static let named: Set<String> = ["--target", "--input", "--executions", "--seconds"]
  static let flags: Set<String> = ["--minimize"]

  var targets = FuzzTarget.all
  /// A single input to run, and nothing else.
  var input: String?
  var count: Int?
  var seconds: Int?
  var minimizes: Bool

  init(_ words: inout Options, _ options: LabOptions) {
    if let names = words["--target"] {
      targets = []
      for name in names.split(separator: ",") {
        guard let target = FuzzTarget.named(String(name)) else {
          let known = FuzzTarget.all.map(\.name).joined(separator: ", ")
          words.fail("there is no target «\(name)»; there are \(known)")
          break
        }
        targets.append(target)
      }
    }
    input = words["--input"]
    if input != nil, targets.count != 1 { words.fail("--input wants a --target") }
    count = options.count
    if words["--executions"] != nil {
      count = words.number("--executions", in: 1...1_000_000_000_000, default: 1)
    }
    seconds = options.minutes.map { Int(($0 * 60).rounded(.up)) }
    if words["--seconds"] != nil {
      seconds = words.number("--seconds", in: 1...10_000_000, default: 1)
    }
    minimizes = words.has("--minimize")
  }
}

/// `crashlab fuzz`: the kept inputs replayed, then libFuzzer on one target after the other.
enum FuzzCommand {
  static func run(_ options: LabOptions, _ fuzz: FuzzOptions) -> [LabReport.Row] {
    // A process that ends by a trap is to end at once.
    setenv("SWIFT_BACKTRACE", "enable=no", 1)
    if let input = fuzz.input { return [one(input, of: fuzz.targets[0])] }
    var rows = [replay(fuzz.targets)]
    guard Fuzzer.isBuilt else {
      rows.append(
        LabReport.Row(
          goal: Goal.fuzzing.id, what: Goal.fuzzing.what, unit: Goal.fuzzing.unit, count: 0,
          wanted: options.wanted(.fuzzing), seconds: 0,
          notRun: "this build has no fuzzer: tools/fuzz makes the one that does"))
      return rows
    }
    return rows + search(options, fuzz)
  }

  // MARK: Replaying

  private static func one(_ path: String, of target: FuzzTarget) -> LabReport.Row {
    var row = LabReport.Row(
      goal: nil, what: "\(target.name), one input", unit: "inputs", count: 1, seconds: 0)
    guard let bytes = FileManager.default.contents(atPath: path) else {
      row.count = 0
      row.notRun = "\(path) cannot be read"
      return row
    }
    if let problem = target.problem(with: Array(bytes)) {
      row.failures = [failure(problem, target, path)]
    }
    return row
  }

  private static func replay(_ targets: [FuzzTarget]) -> LabReport.Row {
    let progress = LabProgress("G20", unit: "inputs", total: nil)
    var row = LabReport.Row(
      goal: "G20", what: "kept inputs of the fuzzer", unit: "inputs", count: 0, seconds: 0)
    for target in targets where !Interruption.isRequested {
      let corpus = Corpus(of: target)
      do {
        let found = try KeptInputs.run(target)
        row.count += found.count
        row.failures += found.problems.map {
          failure($0.problem, target, $0.input.map { "\(corpus.path)/\($0)" } ?? corpus.path)
        }
      } catch {
        row.notRun = "\(error)"
      }
      progress.update(row.count)
    }
    progress.clear()
    row.seconds = progress.seconds
    return row
  }

  private static func failure(_ problem: String, _ target: FuzzTarget, _ path: String)
    -> LabReport.Failure
  {
    LabReport.Failure(
      problem: "\(target.name): \(problem)",
      command: "swift run crashlab fuzz --target \(target.name) --input \(path)")
  }

  // MARK: Searching

  private static func search(_ options: LabOptions, _ fuzz: FuzzOptions) -> [LabReport.Row] {
    let wanted = options.wanted(.fuzzing)
    let count = fuzz.count ?? (fuzz.seconds == nil ? wanted : nil)
    var total = LabReport.Row(
      goal: Goal.fuzzing.id, what: Goal.fuzzing.what, unit: Goal.fuzzing.unit, count: 0,
      wanted: wanted, seconds: 0)
    var rows: [LabReport.Row] = []
    let weights = fuzz.targets.reduce(0) { $0 + $1.weight }
    let progress = LabProgress(
      "G10", unit: Goal.fuzzing.unit, total: count,
      deadline: fuzz.seconds.map { .now + .seconds($0) })
    for target in fuzz.targets where !Interruption.isRequested {
      let started = ContinuousClock.now
      var row = LabReport.Row(
        goal: nil, what: "\(target.name): \(target.summary)", unit: Goal.fuzzing.unit, count: 0,
        seconds: 0)
      do {
        let run = try FuzzRun(target)
        let share = { (whole: Int) in max(1, whole * target.weight / weights) }
        let result = try run.search(
          count: count.map { share($0) + 1 }, seconds: fuzz.seconds.map(share),
          seed: options.seed
        ) { progress.update(total.count + $0) }
        row.count = result.executionCount
        row.details = ["new inputs": result.newCount, "MB at most": result.peakMegabytes]
        row.failures = result.failures
        if fuzz.minimizes, row.failures.isEmpty { try run.minimize() }
      } catch {
        row.notRun = "\(error)"
      }
      row.seconds = (ContinuousClock.now - started).seconds
      total.count += row.count
      total.seconds += row.seconds
      rows.append(row)
    }
    progress.clear()
    return rows + [total]
  }
}
