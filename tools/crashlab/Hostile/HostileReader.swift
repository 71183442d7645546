import DendroCrashHarness
import Foundation

/// The process that reads hostile directories. It prints each number before it begins, so that the parent
/// process knows where it died or hangs.
enum HostileReader {
  static let subcommand = "hostile-reader"

  /// The lines that it says: `<seed>` before each job, `failed <seed> <problem>`, and `done` with how
  /// many directories were opened and refused.
  static func run(_ arguments: [String]) -> Int32 {
    var options = Options(arguments, named: ["--from", "--to"])
    let first = options.number("--from", in: 0...UInt64.max >> 1, default: 0)
    let end = options.number("--to", in: 0...UInt64.max, default: 0)
    guard options.problem == nil, first < end else { return 64 }
    var total = Tally()
    for seed in first..<end {
      say("\(seed)")
      let tally = HostileFiles.sweep.judge(Reproduction(HostileFiles.sweep.id, seed))
      for failure in tally.failures { say("failed \(seed) \(failure.problem)") }
      total.add(tally)
    }
    say("done \(total.details["opened", default: 0]) \(total.details["refused", default: 0])")
    return 0
  }

  private static func say(_ line: String) {
    var bytes = Array((line + "\n").utf8)
    _ = Foundation.write(1, &bytes, bytes.count)
  }
}
