import CrashHarness
import Foundation

/// The same seed in two processes, which hash differently: nothing that is written, told or called
/// may depend on it.
enum DigestCommand {
  static let subcommand = "digests"

  /// The child: a line for each seed.
  static func run(_ arguments: [String]) -> Int32 {
    var options = Options(arguments, named: ["--from", "--count"])
    let first = options.number("--from", in: 0...UInt64.max >> 1, default: 0)
    let count = options.number("--count", in: 1...1_000_000_000, default: UInt64(1))
    guard options.problem == nil else { return 64 }
    for seed in first..<first + count { print(line(seed)) }
    return 0
  }

  private static func line(_ seed: UInt64) -> String {
    "\(seed) \(Determinism.digest(of: seed).map { String($0, radix: 16) } ?? "failed")"
  }

  static func compare(_ options: LabOptions) -> [LabReport.Row] {
    let progress = LabProgress("G13, two processes", unit: "seeds", total: nil)
    // One process is enough to see a difference; a quarter of the goal keeps it cheap.
    let count = UInt64(options.count ?? options.wanted(.determinism) / 4)
    var row = LabReport.Row(
      goal: nil, what: "the same seed in two processes", unit: "seeds", count: 0, seconds: 0)
    do {
      let child = try ChildProcess(
        ChildProcess.ownExecutable,
        [subcommand, "--from", "\(options.seed)", "--count", "\(count)"])
      let (end, said) = child.wait()
      let lines = String(decoding: said, as: UTF8.self).split(separator: "\n")
      if end != .exit(0) || lines.count != Int(count) {
        row.failures.append(
          LabReport.Failure(
            problem: "the other process ended with \(end) after \(lines.count) seeds",
            command: "crashlab deterministic --seed \(options.seed)"))
      }
      for (index, theirs) in lines.enumerated() where row.failures.count < 3 {
        let seed = options.seed + UInt64(index)
        row.count += 1
        if line(seed) != theirs {
          row.failures.append(
            LabReport.Failure(
              problem: "seed \(seed) gives something else in another process",
              command: "crashlab deterministic --seed \(seed) --count 1"))
        }
      }
    } catch {
      row.notRun = "\(error)"
    }
    row.seconds = progress.seconds
    return [row]
  }
}
