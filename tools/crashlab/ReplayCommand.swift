import DendroCrashHarness
import Foundation

/// `crashlab replay SWEEP JOB [steps=…] [OPERATION STATE]…`: one failure again, with what led to it.
enum ReplayCommand {
  static func run(_ words: [String]) -> Int32 {
    guard var place = Reproduction(words: words) else {
      CrashLab.usage("replay wants the words that a failure printed: SWEEP JOB …")
    }
    let sweep: Sweep
    do {
      guard let found = try Sweeps.named(place.sweep) else {
        CrashLab.usage(
          "there is no sweep «\(place.sweep)»; there are \(Sweeps.ids.joined(separator: ", "))")
      }
      sweep = found
    } catch {
      print("the sweep cannot be made: \(error)")
      return 69
    }
    guard sweep.jobs.contains(place.job) else {
      CrashLab.usage(
        "\(sweep.id) has the jobs \(sweep.jobs.lowerBound) to \(sweep.jobs.upperBound - 1)")
    }
    // The memory limit applies again, and a trap is reported as one.
    if sweep.id == HostileFiles.sweep.id, !HostileCommand.isSanitized {
      return HostileCommand.replay(place)
    }
    place.isExplained = true
    let tally = sweep.tried(place)
    print("\(sweep.name): \(grouped(tally.count)) \(sweep.unit)\(tally.detailText)")
    for failure in tally.failures { print("\(failure.problem)\n  again: \(failure.reproduction)") }
    if tally.failures.isEmpty { print("nothing fails") }
    return tally.failures.isEmpty ? 0 : 1
  }
}
