import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

/// `crashlab kill`.
enum KillCommand {
  /// After so many kills a database has seen enough, and the next one begins empty.
  private static let cyclesPerDatabase = 25

  static func run(_ arguments: [String]) async -> Int32 {
    var options = Options(
      arguments, named: ["--cycles", "--writers", "--seed", "--directory"], flags: ["--verbose"])
    let cycles = options.number("--cycles", in: 1...1_000_000, default: 200)
    let writers = options.number("--writers", in: 1...1024, default: 16)
    let seed = options.number(
      "--seed", in: 0...UInt64.max, default: UInt64.random(in: 0...UInt64.max))
    if let problem = options.problem { CrashLab.usage(problem) }
    print("crashlab kill --cycles \(cycles) --writers \(writers) --seed \(seed)")
    let place: WorkingDirectory
    do {
      place = try WorkingDirectory(options["--directory"])
    } catch {
      print("no working directory: \(error)")
      return 69
    }
    var lab = KillLab(
      place: place, seed: seed, writerCount: writers, isVerbose: options.has("--verbose"))
    do {
      try lab.run(cycles: cycles, cyclesPerDatabase: cyclesPerDatabase)
    } catch {
      print(error)
      return 69
    }
    print(lab.summary)
    guard lab.problems.isEmpty else {
      print("the database is kept in \(place.path)")
      return 1
    }
    place.removeIfTemporary()
    return 0
  }
}

/// Kills, reopens, judges, and counts.
private struct KillLab {
  let place: WorkingDirectory
  let seed: UInt64
  let writerCount: Int
  let isVerbose: Bool
  private(set) var problems: [String] = []
  private var random: SeededRandomness
  private let started = ContinuousClock.now
  private var cycleCount = 0
  private var acknowledgedCount = 0
  private var survivorCount = 0
  private var tornCount = 0
  private var checkpointCount = 0
  private var killedWhileOpeningCount = 0

  init(place: WorkingDirectory, seed: UInt64, writerCount: Int, isVerbose: Bool) {
    self.place = place
    self.seed = seed
    self.writerCount = writerCount
    self.isVerbose = isVerbose
    random = SeededRandomness(seed: seed)
  }

  var summary: String {
    let seconds = (ContinuousClock.now - started).inSeconds
    return "kill: \(cycleCount) cycles, \(acknowledgedCount) acknowledged writes, "
      + "\(survivorCount) unacknowledged ones survived whole, \(tornCount) torn tails, "
      + "\(checkpointCount) reopened from a checkpoint, \(killedWhileOpeningCount) killed while "
      + "opening, \(problems.count) problems, \(String(format: "%.1f", seconds)) s"
  }

  mutating func run(cycles: Int, cyclesPerDatabase: Int) throws {
    var verdict = KillVerdict(workload: KillWorkload(seed: seed), writerCount: writerCount)
    var directory = ""
    for cycle in 0..<cycles {
      if cycle % cyclesPerDatabase == 0 {
        acknowledgedCount += verdict.acknowledgedCount
        survivorCount += verdict.unacknowledgedSurvivorCount
        directory = "\(place.path)/database-\(cycle / cyclesPerDatabase)"
        verdict = KillVerdict(
          workload: KillWorkload(seed: random.next()), writerCount: writerCount)
      }
      let found = try runOnce(cycle, directory, &verdict)
      cycleCount += 1
      problems += found
      for problem in found { print("cycle \(cycle): \(problem)") }
      if !found.isEmpty {
        print(
          "to see it again: crashlab kill --cycles \(cycle + 1) --writers \(writerCount) --seed \(seed)"
        )
        break
      }
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
        print(
          "cycle \(cycle): \(durability), \(told.acknowledged.count) writers heard, "
            + "write \(report.lastLSN), torn \(report.tornByteCount) bytes, "
            + "checkpoint \(report.checkpointLSN?.description ?? "none")")
      }
    } catch {
      if case .storage(.notFound) = error, !told.isOpen, verdict.states.allSatisfy({ $0.done == 0 })
      {
        return found  // killed before there was anything
      }
      found.append("the database does not open: \(error)")
    }
    return found
  }
}

/// What a killed writer had said.
private struct Told {
  var isOpen = false
  /// For each writer the last number.
  var acknowledged: [Int: Int] = [:]
  var failures: [String] = []

  init(_ bytes: [UInt8]) {
    // The last line may be cut: then it was not said.
    let whole = bytes[..<((bytes.lastIndex(of: 10) ?? -1) + 1)]
    for line in String(decoding: whole, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      if line == "open" {
        isOpen = true
      } else if words.count == 2, let writer = Int(words[0]), let number = Int(words[1]) {
        if let last = acknowledged[writer], number != last + 1 {
          failures.append("writer \(writer) was told \(number) after \(last)")
        }
        acknowledged[writer] = number
      } else {
        failures.append("the writer says: \(line)")
      }
    }
  }
}

/// Where the databases are made.
struct WorkingDirectory {
  let path: String
  private let isTemporary: Bool

  init(_ given: String?) throws {
    let manager = FileManager.default
    if let given {
      path = URL(fileURLWithPath: given).path
      isTemporary = false
      try manager.createDirectory(atPath: path, withIntermediateDirectories: true)
      guard try manager.contentsOfDirectory(atPath: path).isEmpty else {
        throw CocoaError(.fileWriteFileExists)
      }
    } else {
      path =
        manager.temporaryDirectory.path
        + "/crashlab-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
      isTemporary = true
      try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
  }

  func removeIfTemporary() {
    if isTemporary { try? FileManager.default.removeItem(atPath: path) }
  }
}
