import DendroCrashHarness
import Foundation
import Synchronization

/// One sweep in a process of its own, up to the first violation.
enum MutantSweep {
  static let subcommand = "mutant-sweep"

  /// Which sweep, and how much of it at most.
  struct Plan: Sendable {
    var sweep: String
    /// Nil for all of it.
    var count: Int?

    init(_ sweep: String, _ count: Int? = nil) {
      self.sweep = sweep
      self.count = count
    }

    /// The goal that it serves, if any.
    var goal: String? {
      switch sweep {
      case "log", "kill-then-power-loss", "seals": "G1"
      case "truncation", "missing-file", "mixes", "splices", "lost-seals", "strangers",
        "damaged-checkpoint", "misplaced", "forgeries":
        "G4"
      case "full-disk": "G9"
      case "openers", "rules", "transactions", "promises", "ends", "backups", "moments", "past",
        "real-files",
        "application", "waiting", "listeners":
        nil
      default: sweep.split(separator: "-").first.map(String.init)
      }
    }

    var name: String { goal.map { $0 == sweep ? sweep : "\($0), \(sweep)" } ?? sweep }
  }

  /// Cheap ones first, and a little of everything before much of anything.
  static let plans: [Plan] = [
    Plan("rules"), Plan("openers"), Plan("forgeries"), Plan("misplaced"), Plan("promises"),
    Plan("ends"), Plan("backups"),
    Plan("transactions"), Plan("past"), Plan("moments"), Plan("application"),
    Plan("waiting"), Plan("listeners"), Plan("real-files"),
    Plan("missing-file"), Plan("lost-seals"), Plan("strangers"), Plan("mixes"), Plan("G1", 1000),
    Plan("G2", 1000), Plan("damaged-checkpoint"), Plan("G3", 2000), Plan("log", 3000),
    Plan("full-disk"), Plan("seals"), Plan("G5", 2000), Plan("G1", 5000),
    Plan("kill-then-power-loss", 200_000), Plan("G15", 2000), Plan("truncation"), Plan("splices"),
    Plan("G5"), Plan("G6", 2000), Plan("G5-random", 8000), Plan("log", 20_000),
    Plan("G1", 20_000), Plan("G3", 10_000), Plan("G11", 10_000),
    Plan("G13", 100), Plan("G18", 5000),
  ]

  enum Outcome: Sendable {
    case held
    /// A violation was reported.
    case violated(String)
    /// The process ended by itself: one of our preconditions, or an access to memory that is not there.
    case trapped(String)
    /// No job ended within the timeout.
    case hung(seconds: Int)
  }

  struct Result: Sendable {
    var outcome: Outcome
    var count: Int
    var seconds: Double
  }

  // MARK: In the child

  static func run(_ arguments: [String]) async -> Int32 {
    guard arguments.count == 3, let seed = UInt64(arguments[1]), let count = Int(arguments[2])
    else { return 64 }
    // The parent reads what a trap prints, and no mutant may take the machine's memory.
    dup2(1, 2)
    var limit = rlimit(rlim_cur: 8 << 30, rlim_max: 8 << 30)
    _ = setrlimit(memoryResource, &limit)
    let started = ContinuousClock.now
    @Sendable func report(_ line: String) {
      FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
    do {
      guard let sweep = try Sweeps.named(arguments[0]) else { return 64 }
      let hasFailed = Atomic<Bool>(false)
      let end = Sweep.End(
        count: count > 0 ? count : nil,
        isInterrupted: { hasFailed.load(ordering: .relaxed) })
      let range = sweep.isEndless ? seed..<UInt64.max : sweep.jobs
      let tally = await sweep.run(range, until: end) { tally, _ in
        if !tally.failures.isEmpty { hasFailed.store(true, ordering: .relaxed) }
        report("count \(tally.count)")
      }
      report("count \(tally.count)")
      report("seconds \((ContinuousClock.now - started).seconds)")
      if let failure = tally.failures.first { report("violated \(failure.problem)") }
      return 0
    } catch {
      report("violated it cannot be made: \(error)")
      return 0
    }
  }

  #if canImport(Glibc)
    private static var memoryResource: __rlimit_resource_t {
      __rlimit_resource_t(RLIMIT_AS.rawValue)
    }
  #else
    private static var memoryResource: Int32 { RLIMIT_AS }
  #endif

  // MARK: In the parent

  /// Runs the plan in a child with these mutants.
  static func start(_ plan: Plan, planted: String, seed: UInt64, timeout: Int) -> Result {
    do throws(ChildProcess.StartError) {
      let process = try PlantedProcess(
        ChildProcess.ownExecutable, [subcommand, plan.sweep, "\(seed)", "\(plan.count ?? 0)"],
        planted: planted, timeout: timeout)
      return result(of: process)
    } catch {
      return Result(outcome: .trapped("\(error)"), count: 0, seconds: 0)
    }
  }

  private static func result(of process: PlantedProcess) -> Result {
    var result = Result(outcome: .held, count: 0, seconds: process.seconds)
    var last = ""
    var isComplete = false
    for line in process.said.split(separator: "\n") {
      let (word, rest) = (line.prefix { $0 != " " }, String(line.drop { $0 != " " }.dropFirst()))
      switch word {
      case "count": result.count = Int(rest) ?? result.count
      case "seconds":
        result.seconds = Double(rest) ?? process.seconds
        isComplete = true
      case "violated":
        result.outcome = .violated(rest)
        isComplete = true
      default: last = last.isEmpty ? String(line) : last
      }
    }
    if let seconds = process.silence {
      result.outcome = .hung(seconds: seconds)
    } else if process.end != .exit(0) || !isComplete {
      result.outcome = .trapped(last.isEmpty ? "\(process.end)" : "\(process.end): \(last)")
    }
    return result
  }
}
