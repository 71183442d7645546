import DendroCrashHarness
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

    /// The sweep of that id, which serves no goal of its own.
    static func beside(_ id: String) -> Part {
      Part(nil) { _ in
        guard let sweep = try Sweeps.named(id) else { preconditionFailure("no sweep \(id)") }
        return sweep
      }
    }
  }

  static let parts: [String: [Part]] = [
    "states": [
      Part(.crashStates) { _ in CrashStates.sweep },
      .beside("kill-then-power-loss"), .beside("log"), .beside("seals"),
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
      .beside("truncation"), .beside("missing-file"), .beside("mixes"), .beside("splices"),
      .beside("lost-seals"), .beside("strangers"), .beside("stranger-checkpoint"),
      .beside("damaged-checkpoint"), .beside("misplaced"), .beside("forgeries"),
    ],
    "faults": [
      Part(.faults) { _ in Faults.everyCall() },
      Part(.randomFaults) { _ in Faults.random },
      Part(.recoveryFaults) { _ in RecoveryFaults.sweep },
      .beside("full-disk"), .beside("openers"), .beside("rules"), .beside("transactions"),
      .beside("promises"), .beside("ends"), .beside("backups"), .beside("moments"),
      .beside("past"), .beside("real-files"), .beside("application"), .beside("waiting"),
      .beside("listeners"),
    ],
    "soak": [Part(.soak) { _ in Soak.sweep }],
    "histories": [Part(.histories) { _ in Histories.sweep }],
    "deterministic": [Part(.determinism) { _ in Determinism.sweep }],
  ]

  /// How many of a sweep that draws, and has no goal of its own, are looked at.
  private static let endlessCount = 100_000

  /// - `share`: of the minutes that were given, what this may take.
  static func run(_ command: String, _ options: LabOptions, share: Double = 1) async
    -> [LabReport.Row]
  {
    let parts = parts[command] ?? []
    let made = parts.map { part in Result { try part.make(options) } }
    // Without what it takes to make their databases.
    let deadline = options.minutes.map { ContinuousClock.now + .seconds($0 * 60 * share) }
    func isEndless(_ index: Int) -> Bool { (try? made[index].get())?.isEndless ?? false }
    // If there is a time to end at: what ends by itself leaves the others what it did not need.
    let order =
      deadline == nil
      ? Array(parts.indices)
      : parts.indices.filter { !isEndless($0) } + parts.indices.filter { isEndless($0) }
    var rows: [Int: LabReport.Row] = [:]
    for (place, index) in order.enumerated() where !Interruption.isRequested {
      let part = parts[index]
      switch made[index] {
      case .success(let sweep):
        let end = deadline.map { deadline in
          let now = ContinuousClock.now
          return now + (deadline - now) / (order.count - place)
        }
        rows[index] = await run(part, sweep, options, until: end)
      case .failure(let error):
        let failure = LabReport.Failure(
          problem: "it cannot be made: \(error)", command: "crashlab \(command)")
        rows[index] = LabReport.Row(
          goal: part.goal?.id, what: part.goal?.what ?? command, unit: "", count: 0, seconds: 0,
          failures: [failure])
      }
    }
    return rows.sorted { $0.key < $1.key }.map(\.value)
  }

  private static func run(
    _ part: Part, _ sweep: Sweep, _ options: LabOptions,
    until deadline: ContinuousClock.Instant?
  ) async -> LabReport.Row? {
    let wanted = part.goal.map(options.wanted)
    var end = Sweep.End(
      count: options.count, deadline: deadline, figure: part.figure,
      isInterrupted: { Interruption.isRequested })
    if sweep.isEndless, deadline == nil {
      end.count = options.count ?? wanted ?? Self.endlessCount
      // A part that only a release asks for.
      if end.count == 0 { return nil }
    }
    let total = end.count
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
    if let first = tally.failures.first, !Interruption.isRequested {
      if sweep.stepCount != nil { options.note("\(sweep.name): making the failure short") }
      let short = Shrinker().shrink(first, of: sweep)
      let shortest = LabReport.Failure(problem: short.problem, command: "\(short.reproduction)")
      failures.removeAll { $0 == shortest }
      failures.insert(shortest, at: 0)
    }
    var row = LabReport.Row(
      goal: part.goal?.id, what: part.goal?.what ?? sweep.name,
      unit: part.figure == nil ? sweep.unit : part.goal?.unit ?? sweep.unit,
      count: part.figure?(tally) ?? tally.count, wanted: wanted, seconds: seconds,
      details: tally.details, failures: failures)
    if tally.count == 0, failures.isEmpty { row.notRun = "there was no time for it" }
    return row
  }
}

extension Sweep {
  /// Whether it runs until it is stopped.
  var isEndless: Bool { jobs.upperBound == .max }
}
