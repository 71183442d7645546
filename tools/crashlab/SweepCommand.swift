import CrashHarness
import Foundation

/// The commands that run in this process, on simulated disks.
enum SweepCommand {
  /// One sweep of a command, with the goal that it serves.
  struct Part: Sendable {
    var goal: Goal?
    var make: @Sendable (LabOptions) throws -> Sweep
    /// Of what was found, what the goal counts; nil for what the sweep counts.
    var figure: (@Sendable (Tally) -> Int)?

    init(
      _ goal: Goal?, figure: (@Sendable (Tally) -> Int)? = nil,
      _ make: @escaping @Sendable (LabOptions) throws -> Sweep
    ) {
      self.goal = goal
      self.figure = figure
      self.make = make
    }
  }

  static let parts: [String: [Part]] = [
    "states": [
      Part(.crashStates) { _ in CrashStates.sweep },
      Part(nil) { _ in try KillsThenPowerLoss.sweep() },
      Part(nil) { _ in LogCrashes.sweep },
      Part(nil) { _ in try Seals.sweep() },
    ],
    "exhaust": [
      Part(.shortWorkloads, figure: { $0.details["workloads", default: 0] }) { options in
        try ShortWorkloads.sweep(length: options.isSoak ? 4 : 3)
      }
    ],
    "recovery": [Part(.recoveryCrashes) { _ in RecoveryCrashes.sweep }],
    "bits": [
      Part(.bitFlips) { _ in Damage.everyBit(of: try Sweeps.bitDatabase()) },
      Part(.randomBitFlips) { _ in Damage.randomBits(of: try Sweeps.largeDatabase()) },
      Part(nil) { _ in Damage.everyTruncation(of: try Sweeps.smallDatabase()) },
      Part(nil) { _ in Damage.everyMissingFile(of: try Sweeps.smallDatabase()) },
      Part(nil) { _ in MixedFiles.mixes(of: try Forks()) },
      Part(nil) { _ in MixedFiles.splices(of: try Forks()) },
      Part(nil) { _ in MixedFiles.lostSeals(of: try Forks()) },
      Part(nil) { _ in MixedFiles.strangers(of: try Forks()) },
      Part(nil) { _ in try MixedFiles.strangerCheckpoint() },
      Part(nil) { _ in try MixedFiles.damagedCheckpoints() },
      Part(nil) { _ in MisplacedFiles.sweep },
      Part(nil) { _ in Forgeries.sweep },
    ],
    "faults": [
      Part(.faults) { _ in Faults.everyCall() },
      Part(.randomFaults) { _ in Faults.random },
      Part(.recoveryFaults) { _ in RecoveryFaults.sweep },
      Part(nil) { _ in FullDisks.sweep },
      Part(nil) { _ in Openers.sweep },
      Part(nil) { _ in Rules.sweep },
      Part(nil) { _ in Transactions.sweep },
      Part(nil) { _ in Promises.sweep },
      Part(nil) { _ in Ends.sweep },
      Part(nil) { _ in Backups.sweep },
      Part(nil) { _ in Moments.sweep },
      Part(nil) { _ in Past.sweep },
      Part(nil) { _ in RealFiles.sweep },
      Part(nil) { _ in Applications.sweep },
    ],
    "soak": [Part(.soak) { _ in Soak.sweep }],
    "histories": [Part(.histories) { _ in Histories.sweep }],
    "deterministic": [Part(.determinism) { _ in Determinism.sweep }],
  ]

  /// How many of a sweep that draws, and has no goal of its own, are looked at.
  private static let endlessCount = 100_000

  static func run(_ command: String, _ options: LabOptions) async -> [LabReport.Row] {
    let parts = parts[command] ?? []
    var rows: [LabReport.Row] = []
    var endlessCount = 0
    for part in parts {
      if let sweep = try? part.make(options), sweep.isEndless { endlessCount += 1 }
    }
    for part in parts where !Interruption.isRequested {
      let sweep: Sweep
      do {
        sweep = try part.make(options)
      } catch {
        let failure = LabReport.Failure(
          problem: "it cannot be made: \(error)", command: "crashlab \(command)")
        rows.append(
          LabReport.Row(
            goal: part.goal?.id, what: part.goal?.what ?? command, unit: "", count: 0, seconds: 0,
            failures: [failure]))
        continue
      }
      if let row = await run(part, sweep, options, sharingTimeWith: max(1, endlessCount)) {
        rows.append(row)
      }
    }
    return rows
  }

  private static func run(
    _ part: Part, _ sweep: Sweep, _ options: LabOptions, sharingTimeWith endlessCount: Int
  ) async -> LabReport.Row? {
    let wanted = part.goal.map(options.wanted)
    var end = Sweep.End(isInterrupted: { Interruption.isRequested })
    var total: Int?
    if sweep.isEndless {
      if let minutes = options.minutes {
        end.deadline = .now + .seconds(minutes * 60 / Double(endlessCount))
        end.count = options.count
      } else {
        end.count = options.count ?? wanted ?? Self.endlessCount
        // A part that only a release asks for.
        if end.count == 0 { return nil }
      }
      total = end.count
    } else {
      end.count = options.count
      total = options.count
    }
    let range = sweep.isEndless ? options.seed..<UInt64.max : sweep.jobs
    let progress = LabProgress(
      part.goal?.id ?? sweep.name, unit: sweep.unit, total: total, deadline: end.deadline)
    let jobCount = sweep.isEndless ? nil : Double(max(1, sweep.jobs.count))
    let tally = await sweep.run(range, until: end) { tally, begun in
      progress.update(tally.count, share: jobCount.map { Double(begun) / $0 })
    }
    progress.clear()
    let seconds = progress.seconds
    var failures = tally.failures.prefix(3).map {
      LabReport.Failure(problem: $0.problem, command: "\($0.reproduction)")
    }
    if let first = tally.failures.first {
      if sweep.stepCount != nil { options.note("\(sweep.name): making the failure short") }
      let short = Shrinker().shrink(first, of: sweep)
      failures.insert(
        LabReport.Failure(problem: short.problem, command: "\(short.reproduction)"), at: 0)
    }
    return LabReport.Row(
      goal: part.goal?.id, what: part.goal?.what ?? sweep.name,
      unit: part.figure == nil ? sweep.unit : part.goal?.unit ?? sweep.unit,
      count: part.figure?(tally) ?? tally.count, wanted: wanted, seconds: seconds,
      details: tally.details, failures: failures)
  }
}

extension Sweep {
  /// Whether it goes on for as long as one lets it.
  var isEndless: Bool { jobs.upperBound == .max }
}
