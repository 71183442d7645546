import CrashHarness
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

/// `crashlab kill`.
enum KillCommand {
  /// After so many kills a database has seen enough, and the next one begins empty.
  private static let cyclesPerDatabase = 25

  static func run(_ options: LabOptions, _ real: RealOptions) -> [LabReport.Row] {
    var row = LabReport.Row(
      goal: Goal.kills.id, what: Goal.kills.what, unit: Goal.kills.unit, count: 0,
      wanted: options.wanted(.kills), seconds: 0)
    let cycles = real.cycles ?? (options.minutes == nil ? options.wanted(.kills) : .max)
    let deadline = options.minutes.map { ContinuousClock.now + .seconds($0 * 60) }
    let progress = LabProgress(
      "G7", unit: "kills", total: cycles == .max ? nil : cycles, deadline: deadline)
    let place: WorkingDirectory
    do {
      place = try WorkingDirectory(real.directory)
    } catch {
      row.notRun = "no working directory: \(error)"
      return [row]
    }
    var lab = KillLab(
      place: place, seed: options.seed, writerCount: real.writerCount,
      say: { line in
        progress.clear()
        options.say(line)
      }, isVerbose: real.isVerbose)
    do {
      try lab.run(cycles: cycles, until: deadline, cyclesPerDatabase: cyclesPerDatabase) {
        progress.update($0)
      }
    } catch {
      row.notRun = "\(error)"
    }
    progress.clear()
    options.say(lab.summary)
    row.count = lab.cycleCount
    row.seconds = progress.seconds
    row.details = lab.details
    row.failures = lab.problems.map {
      LabReport.Failure(
        problem: $0,
        command: "crashlab kill --count \(lab.cycleCount) --writers \(real.writerCount) "
          + "--seed \(options.seed)")
    }
    if lab.problems.isEmpty {
      place.removeIfTemporary()
    } else {
      options.say("the database is kept in \(place.path)")
    }
    return [row]
  }
}

/// Kills, reopens, judges, and counts.
private struct KillLab {
  let place: WorkingDirectory
  let seed: UInt64
  let writerCount: Int
  let say: (String) -> Void
  let isVerbose: Bool
  private(set) var problems: [String] = []
  private var random: SeededRandomness
  private let started = ContinuousClock.now
  private(set) var cycleCount = 0
  private var acknowledgedCount = 0
  private var survivorCount = 0
  private var tornCount = 0
  private var checkpointCount = 0
  private var killedWhileOpeningCount = 0

  init(
    place: WorkingDirectory, seed: UInt64, writerCount: Int, say: @escaping (String) -> Void,
    isVerbose: Bool
  ) {
    self.place = place
    self.seed = seed
    self.writerCount = writerCount
    self.say = say
    self.isVerbose = isVerbose
    random = SeededRandomness(seed: seed)
  }

  var summary: String {
    let seconds = (ContinuousClock.now - started).seconds
    return "kill: \(cycleCount) cycles, \(acknowledgedCount) acknowledged writes, "
      + "\(survivorCount) unacknowledged ones survived whole, \(tornCount) torn tails, "
      + "\(checkpointCount) reopened from a checkpoint, \(killedWhileOpeningCount) killed while "
      + "opening, \(problems.count) problems, \(String(format: "%.1f", seconds)) s"
  }

  var details: [String: Int] {
    [
      "acknowledged writes": acknowledgedCount, "unacknowledged survivors": survivorCount,
      "torn tails": tornCount, "reopened from a checkpoint": checkpointCount,
      "killed while opening": killedWhileOpeningCount,
    ]
  }

  mutating func run(
    cycles: Int, until deadline: ContinuousClock.Instant?, cyclesPerDatabase: Int,
    _ watch: (Int) -> Void
  ) throws {
    var verdict = KillVerdict(workload: KillWorkload(seed: seed), writerCount: writerCount)
    var directory = ""
    for cycle in 0..<cycles {
      if Interruption.isRequested || deadline.map({ ContinuousClock.now >= $0 }) ?? false { break }
      if cycle % cyclesPerDatabase == 0 {
        acknowledgedCount += verdict.acknowledgedCount
        survivorCount += verdict.unacknowledgedSurvivorCount
        directory = "\(place.path)/database-\(cycle / cyclesPerDatabase)"
        verdict = KillVerdict(
          workload: KillWorkload(seed: random.next()), writerCount: writerCount)
      }
      let found = try runOnce(cycle, directory, &verdict)
      cycleCount += 1
      watch(cycleCount)
      problems += found.map { "cycle \(cycle): \($0)" }
      if !found.isEmpty { break }
    }
    acknowledgedCount += verdict.acknowledgedCount
    survivorCount += verdict.unacknowledgedSurvivorCount
  }

  private mutating func runOnce(_ cycle: Int, _ directory: String, _ verdict: inout KillVerdict)
    throws -> [String]
  {
    let durability = ["commit", "commit", "interval", "none"][Int(random.next() % 4)]
    let draws = random.next() % 1_000_000
    let child = try ChildProcess(
      ChildProcess.ownExecutable,
      [
        KilledWriter.subcommand, "--directory", directory, "--seed", "\(verdict.workload.seed)",
        "--writers", "\(writerCount)", "--durability", durability, "--draws", "\(draws)",
      ])
    // Most die at work; some while they are still opening, which is recovering from the last kill.
    if random.next() % 8 == 0 {
      usleep(UInt32(random.next() % 20_000))
    } else {
      let deadline = ContinuousClock.now + .seconds(20)
      while !child.said.starts(with: "open\n".utf8), ContinuousClock.now < deadline,
        !child.said.starts(with: "failed".utf8)
      {
        usleep(500)
      }
      // Now and then long enough for several checkpoints.
      usleep(UInt32(random.next() % (random.next() % 5 == 0 ? 400_000 : 50_000)))
    }
    child.kill()
    let (end, said) = child.wait()
    let told = Told(said)
    if !told.isOpen { killedWhileOpeningCount += 1 }
    var found = told.failures
    if end != .signal(9) { found.append("the writer ended by itself: \(end)") }
    // Half of the time the judge only looks, and the next child has the recovery to do.
    let mode: Engine.Mode = random.next() % 2 == 0 ? .readOnly : .readWrite
    do throws(EngineError) {
      let engine = try Engine.open(at: directory, mode: mode)
      let report = engine.report
      if report.tornTail != nil { tornCount += 1 }
      if report.checkpointLSN != nil { checkpointCount += 1 }
      for checkpoint in report.unreadableCheckpoints {
        found.append("a checkpoint cannot be read: \(checkpoint)")
      }
      for file in report.foreignFiles { found.append("a file of no known name: \(file)") }
      found += verdict.judge(engine.view(at: .root), acknowledged: told.acknowledged)
      try engine.close()
      if isVerbose {
        say(
          "cycle \(cycle): \(durability), \(told.acknowledged.count) writers heard, "
            + "write \(report.lastLSN), torn \(report.tornByteCount) bytes, "
            + "checkpoint \(report.checkpointLSN?.description ?? "none")")
      }
    } catch {
      if case .storage(.notFound) = error, !told.isOpen, verdict.isUntouched {
        return found  // killed before there was anything
      }
      found.append("the database does not open: \(error)")
    }
    return found
  }
}
