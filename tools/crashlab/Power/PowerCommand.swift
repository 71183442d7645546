import DendroCrashHarness
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

/// `crashlab power`: the power is cut while a process writes to a real file system.
enum PowerCommand {
  /// Cuts of one control: enough to lose something, few enough to cost nothing.
  private static let controlCount = 3
  /// Until something is lost: on a busy machine a writer may have done nothing by its cut.
  private static let controlCountMax = 20

  static func run(_ options: LabOptions, _ real: RealOptions) -> [LabReport.Row] {
    let kinds = PowerImage.Kind.allCases.filter {
      real.fileSystem == nil || $0.rawValue == real.fileSystem
    }
    let wanted = (options.wanted(.powerCuts) + kinds.count - 1) / kinds.count
    func empty(_ kind: PowerImage.Kind, _ problem: String) -> LabReport.Row {
      LabReport.Row(
        goal: Goal.powerCuts.id, what: "power cuts on \(kind.rawValue)", unit: "cuts", count: 0,
        wanted: wanted, seconds: 0, notRun: problem)
    }
    if let problem = problem { return kinds.map { empty($0, problem) } }
    let place: WorkingDirectory
    do {
      place = try WorkingDirectory(nil)
      try SystemTool.run("mount", "-t", "tmpfs", "-o", "size=3g,mode=700", "crashlab", place.path)
    } catch {
      return kinds.map { empty($0, "\(error)") }
    }
    defer {
      // Its own namespace would see to it too.
      try? SystemTool.run("umount", "--recursive", "--lazy", place.path)
      place.removeIfTemporary()
    }
    var rows: [LabReport.Row] = []
    for kind in kinds where !Interruption.isRequested {
      if let problem = kind.problem {
        rows.append(empty(kind, problem))
        continue
      }
      do {
        let image = try PowerImage(kind, in: place.path)
        defer { image.unmount() }
        try image.format("defaults")
        rows += run(image, wanted: wanted, kindCount: kinds.count, options, real)
      } catch {
        rows.append(empty(kind, "\(error)"))
      }
    }
    return rows
  }

  private static var problem: String? {
    if let problem = Namespace.problem { return problem }
    for tool in ["mount", "umount", "cp", "setpriv"] where SystemTool.path(of: tool) == nil {
      return "\(tool) is missing"
    }
    let hasLoop = FileManager.default.fileExists(atPath: "/dev/loop-control")
    return hasLoop ? nil : "no loop devices"
  }

  /// The cuts, and the control: the same with a writer that acknowledges without synchronizing.
  private static func run(
    _ image: PowerImage, wanted: Int, kindCount: Int, _ options: LabOptions, _ real: RealOptions
  ) -> [LabReport.Row] {
    let name = image.kind.rawValue
    var cuts = LabReport.Row(
      goal: Goal.powerCuts.id, what: "power cuts on \(name)", unit: "cuts", count: 0,
      wanted: wanted, seconds: 0)
    var control = LabReport.Row(
      goal: nil, what: "control on \(name), which must lose", unit: "losses", count: 0, wanted: 1,
      seconds: 0)
    let count = options.count.map { ($0 + kindCount - 1) / kindCount }
    let deadline = options.minutes.map {
      ContinuousClock.now + .seconds($0 * 60 / Double(kindCount))
    }
    let total = count ?? (deadline == nil ? wanted : .max)
    let command =
      "crashlab power --file-system \(name) --seed \(options.seed) --count \(count ?? wanted)"
    var progress = LabProgress(
      "G8 \(name)", unit: "cuts", total: total == .max ? nil : total, deadline: deadline)
    var lab = PowerLab(image, seed: options.seed, writerCount: real.writerCount)
    if real.isVerbose { lab.say = { options.say($0) } }
    do {
      while cuts.count < total, cuts.failures.isEmpty, !Interruption.isRequested,
        deadline.map({ ContinuousClock.now < $0 }) ?? true
      {
        for problem in try lab.cut() {
          cuts.failures.append(LabReport.Failure(problem: problem, command: command))
        }
        cuts.count += 1
        progress.update(cuts.count)
      }
      cuts.details = lab.details
      cuts.seconds = progress.seconds
      progress.clear()
      progress = LabProgress("G8 \(name), control", unit: "cuts", total: controlCount)
      for number in 0..<controlCountMax where !Interruption.isRequested {
        if number >= controlCount, control.count > 0 { break }
        let (lost, problems) = try lab.cutControl()
        control.details["acknowledged writes lost", default: 0] += lost
        if lost > 0 { control.count += 1 }
        for problem in problems {
          control.failures.append(LabReport.Failure(problem: problem, command: command))
        }
      }
      if control.count == 0, !Interruption.isRequested {
        control.failures.append(
          LabReport.Failure(
            problem: "a writer that does not synchronize lost nothing: cuts here prove nothing",
            command: command))
      }
    } catch {
      // What worked once must go on working: a file system that does not mount after a cut, say.
      cuts.failures.append(LabReport.Failure(problem: "\(error)", command: command))
    }
    control.seconds = progress.seconds
    progress.clear()
    return [cuts, control]
  }
}

/// Cuts the power on one image, again and again, and judges what the next start finds.
struct PowerLab {
  /// After so many cuts a new file system is made, and mounted in another way.
  private static let cutsPerImage = 20

  private let image: PowerImage
  private let writerCount: Int
  private let random: SeededRandomness
  private var verdict: KillVerdict
  private var cutCount = 0
  private var databaseCount = 0
  private(set) var details: [String: Int] = [:]
  var say: (String) -> Void = { _ in }

  init(_ image: PowerImage, seed: UInt64, writerCount: Int) {
    self.image = image
    self.writerCount = writerCount
    random = SeededRandomness(seed: seed)
    verdict = KillVerdict(workload: KillWorkload(seed: seed), writerCount: writerCount)
  }

  /// Cuts the power once under full durability. The next cut continues with the same database.
  ///
  /// - Returns: what is wrong.
  mutating func cut() throws -> [String] {
    if cutCount % Self.cutsPerImage == 0 {
      let options = image.kind.mountOptions
      try image.format(options[cutCount / Self.cutsPerImage % options.count])
      databaseCount += 1
      verdict = KillVerdict(
        workload: KillWorkload(seed: random.next()), writerCount: writerCount)
    }
    cutCount += 1
    let acknowledgedBefore = verdict.acknowledgedCount
    let output = try writeUntilTheCut(verdict.workload.seed, durability: "commit")
    var found = output.failures
    do throws(EngineError) {
      let mode: Engine.Mode = random.next() % 2 == 0 ? .readOnly : .readWrite
      let engine = try Engine.open(at: directory, mode: mode)
      if engine.report.tornTail != nil { details["torn tails", default: 0] += 1 }
      if engine.report.checkpointLSN != nil { details["opened from a checkpoint", default: 0] += 1 }
      for checkpoint in engine.report.unreadableCheckpoints {
        found.append("a checkpoint cannot be read: \(checkpoint)")
      }
      for file in engine.report.foreignFiles { found.append("a file of no known name: \(file)") }
      found += verdict.judge(try engine.view(at: .root), acknowledged: output.acknowledged)
      try engine.close()
    } catch {
      if case .storage(.notFound) = error, output.acknowledged.isEmpty, verdict.isUntouched {
        return found  // cut before there was anything
      }
      found.append("the database does not open: \(error)")
    }
    let acknowledged = verdict.acknowledgedCount - acknowledgedBefore
    details["acknowledged writes", default: 0] += acknowledged
    say("cut \(cutCount): \(acknowledged) acknowledged writes, \(found.count) problems")
    return found
  }

  /// One cut of a writer that acknowledges what it never synchronized, on a database of its own.
  mutating func cutControl() throws -> (lost: Int, problems: [String]) {
    databaseCount += 1
    let workload = KillWorkload(seed: random.next())
    var verdict = KillVerdict(workload: workload, writerCount: writerCount, mayLose: true)
    let output = try writeUntilTheCut(workload.seed, durability: "none")
    let acknowledged = output.acknowledged.values.reduce(0, +)
    do throws(EngineError) {
      let engine = try Engine.open(at: directory, mode: .readWrite)
      let problems = verdict.judge(try engine.view(at: .root), acknowledged: output.acknowledged)
      try engine.close()
      say("control: \(verdict.lostCount) of \(acknowledged) acknowledged writes lost")
      return (verdict.lostCount, problems)
    } catch {
      if case .storage(.notFound) = error { return (acknowledged, []) }
      return (0, ["without synchronizing, the database does not open: \(error)"])
    }
  }

  private var directory: String { "\(image.mountPoint)/database-\(databaseCount)" }

  /// Starts a writer, stops it somewhere, cuts the power, and starts the machine again.
  private func writeUntilTheCut(_ seed: UInt64, durability: String) throws -> WriterOutput {
    let draws = random.next() % 1_000_000
    // Should this process be killed, its child, stopped for ever, would keep the file system mounted.
    let child = try ChildProcess(
      SystemTool.path(of: "setpriv") ?? "setpriv",
      [
        "--pdeathsig", "KILL", "--", ChildProcess.ownExecutable, KilledWriter.subcommand,
        "--directory", directory, "--seed", "\(seed)", "--writers", "\(writerCount)",
        "--durability", durability, "--draws", "\(draws)",
      ])
    // Most are cut at work; some while they are still opening.
    let isEarly = random.next() % 8 == 0 && durability != "none"
    let deadline = ContinuousClock.now + .seconds(60)
    while !isEarly, !child.said.starts(with: "open\n".utf8), ContinuousClock.now < deadline,
      !child.said.starts(with: "failed".utf8), !child.isComplete
    {
      usleep(500)
    }
    usleep(UInt32(random.next() % (isEarly ? 30_000 : 60_000)) + (isEarly ? 0 : 5000))
    var failures: [String] = []
    if !child.stop() { failures.append("the writer ended by itself") }
    // What was said before the stop was acknowledged; what is not heard yet makes it only stronger.
    while !child.isHeard, failures.isEmpty { usleep(200) }
    usleep(1000)
    let said = child.said
    let result = Result { try image.cut() }
    child.kill()
    _ = child.wait()
    try image.restart(from: try result.get())
    var output = WriterOutput(said)
    output.failures += failures
    return output
  }
}
