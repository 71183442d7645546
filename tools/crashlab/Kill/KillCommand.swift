import DendroCrashHarness
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Synchronization

/// `crashlab kill`.
enum KillCommand {
  /// After so many kills a database has seen enough, and the next one begins empty.
  private static let cyclesPerDatabase = 25
  /// Databases at a time: much of a cycle is waiting.
  private static let laneCount = 2 * ProcessInfo.processInfo.activeProcessorCount

  /// What the lanes share.
  private struct Board {
    var nextDatabase = 0
    var row: LabReport.Row
    var counts = KillCounts()
    /// Why nothing can be run; nil if it can.
    var problem: String?
  }

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
    let board = Mutex(Board(row: row))
    @Sendable func isOver(_ board: Board) -> Bool {
      !board.row.failures.isEmpty || board.problem != nil || Interruption.isRequested
        || deadline.map { ContinuousClock.now >= $0 } ?? false
    }
    @Sendable func work(on number: Int) {
      // Each database has its own seed, so that it can be run again alone.
      let seed = options.seed &+ UInt64(number)
      let wanted = min(cyclesPerDatabase, cycles - number * cyclesPerDatabase)
      var database = KilledDatabase(
        directory: "\(place.path)/database-\(number)", seed: seed, writerCount: real.writerCount)
      var count = 0
      while count < wanted, !board.withLock({ isOver($0) }) {
        let found: [String]
        do {
          guard let problems = try database.kill() else { break }
          found = problems
        } catch {
          return board.withLock { $0.problem = "\(error)" }
        }
        count += 1
        if real.isVerbose { options.say("database \(number), \(database.lastCycle)") }
        let command =
          "crashlab kill --seed \(seed) --count \(count) --writers \(real.writerCount)"
        let total = board.withLock { board in
          board.row.count += 1
          board.row.failures += found.map {
            LabReport.Failure(problem: "database \(number), kill \(count): \($0)", command: command)
          }
          return board.row.count
        }
        progress.update(total)
      }
      let counts = database.counts
      board.withLock { $0.counts.add(counts) }
      if database.isWell, place.isTemporary { database.remove() }
    }
    Lanes.run(laneCount) {
      while let number = board.withLock({ board -> Int? in
        guard !isOver(board), board.nextDatabase < cycles / cyclesPerDatabase + 1,
          board.nextDatabase * cyclesPerDatabase < cycles
        else { return nil }
        defer { board.nextDatabase += 1 }
        return board.nextDatabase
      }) {
        work(on: number)
      }
    }
    progress.clear()
    let (found, counts, problem) = board.withLock { ($0.row, $0.counts, $0.problem) }
    row = found
    row.seconds = progress.seconds
    row.details = counts.details
    // What worked once must go on working.
    if let problem {
      if row.count == 0 {
        row.notRun = problem
      } else {
        row.failures.append(
          LabReport.Failure(problem: problem, command: "crashlab kill --seed \(options.seed)"))
      }
    }
    if row.failures.isEmpty {
      place.removeIfTemporary()
    } else {
      row.kept = place.path
    }
    return [row]
  }
}

/// What is counted beside the kills.
struct KillCounts: Sendable {
  var acknowledged = 0
  var survivors = 0
  var tornTails = 0
  var checkpoints = 0
  var earlyKills = 0

  mutating func add(_ other: KillCounts) {
    acknowledged += other.acknowledged
    survivors += other.survivors
    tornTails += other.tornTails
    checkpoints += other.checkpoints
    earlyKills += other.earlyKills
  }

  var details: [String: Int] {
    [
      "acknowledged writes": acknowledged, "unacknowledged survivors": survivors,
      "torn tails": tornTails, "reopened from a checkpoint": checkpoints,
      "killed while opening": earlyKills,
    ]
  }
}

/// A database whose writers are killed, one after the other.
private struct KilledDatabase {
  let directory: String
  private let writerCount: Int
  private let random: SeededRandomness
  private var verdict: KillVerdict
  private var found = KillCounts()
  private(set) var isWell = true
  /// In words.
  private(set) var lastCycle = ""

  init(directory: String, seed: UInt64, writerCount: Int) {
    self.directory = directory
    self.writerCount = writerCount
    random = SeededRandomness(seed: seed)
    verdict = KillVerdict(
      workload: KillWorkload(seed: random.next()), writerCount: writerCount)
  }

  var counts: KillCounts {
    var counts = found
    counts.acknowledged = verdict.acknowledgedCount
    counts.survivors = verdict.unacknowledgedSurvivorCount
    return counts
  }

  func remove() { try? FileManager.default.removeItem(atPath: directory) }

  /// Starts a writer, kills it, and judges what it left.
  ///
  /// - Returns: what is wrong; nil if the lab was interrupted.
  mutating func kill() throws -> [String]? {
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
      let deadline = ContinuousClock.now + .seconds(60)
      while !child.said.starts(with: "open\n".utf8), ContinuousClock.now < deadline,
        !child.said.starts(with: "failed".utf8), !child.isComplete
      {
        usleep(500)
      }
      // Now and then long enough for several checkpoints.
      usleep(UInt32(random.next() % (random.next() % 10 == 0 ? 200_000 : 20_000)))
    }
    child.kill()
    let (end, said) = child.wait()
    if Interruption.explains(end) { return nil }
    let output = WriterOutput(said)
    if !output.isOpen { found.earlyKills += 1 }
    var problems = output.failures
    if end != .signal(9) { problems.append("the writer ended by itself: \(end)") }
    problems += judge(output)
    lastCycle = "\(durability), \(output.acknowledged.count) writers heard, \(lastCycle)"
    isWell = isWell && problems.isEmpty
    return problems
  }

  private mutating func judge(_ output: WriterOutput) -> [String] {
    // Half of the time the judge only looks, and the next child has the recovery to do.
    let mode: Engine.Mode = random.next() % 2 == 0 ? .readOnly : .readWrite
    do throws(EngineError) {
      let engine = try Engine.open(at: directory, mode: mode)
      let report = engine.report
      if report.tornTail != nil { found.tornTails += 1 }
      if report.checkpointLSN != nil { found.checkpoints += 1 }
      var problems = report.unreadableCheckpoints.map { "a checkpoint cannot be read: \($0)" }
      problems += report.foreignFiles.map { "a file of no known name: \($0)" }
      problems += verdict.judge(try engine.view(at: .root), acknowledged: output.acknowledged)
      try engine.close()
      lastCycle =
        "write \(report.lastLSN), torn \(report.tornByteCount) bytes, "
        + "checkpoint \(report.checkpointLSN?.description ?? "none")"
      return problems
    } catch {
      if case .storage(.notFound) = error, !output.isOpen, verdict.isUntouched {
        return []  // It was killed before the database existed.
      }
      return ["the database does not open: \(error)"]
    }
  }
}
