import DendroEngine
import DendroStorage

/// One repair: reads the damaged directory, writes the new one and reads that back.
final class Repairer {
  private let arguments: Arguments
  private let terminal: Terminal
  private let target: String?

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    terminal = try Terminal(color: arguments.value("color"))
    let target = try arguments.positional(1).map { try Arguments.absolutePath($0, "TARGET") }
    self.target = target
    guard let target else {
      if arguments.has(.dryRun) { return }
      throw Failure.usage("TARGET is missing", hint: "--dry-run only says what would be saved")
    }
    let name = arguments.positional[1]
    if Self.isInside(target, try arguments.directoryPath()) {
      throw Failure.usage("TARGET is in the damaged directory, which stays as it is")
    }
    guard !Platform.exists(target) || DatabaseDirectory.isUnfinishedBackup(target) else {
      throw Failure(.problem, "\(name) exists already")
    }
    if Platform.exists(apartName) { throw Failure(.problem, "\(apartName) exists already") }
  }

  /// Whether a path that may not exist lies in a directory, links followed.
  private static func isInside(_ path: String, _ directory: String) -> Bool {
    guard let directory = Platform.resolved(directory) else { return false }
    var place = path
    while let slash = place.lastIndex(of: "/") {
      if let found = Platform.resolved(place) {
        return found == directory || found.hasPrefix(directory + "/")
      }
      place = String(place[..<slash])
    }
    return false
  }

  func run() throws -> ExitCode {
    let directory = try DatabaseDirectory.open(
      arguments.directoryPath(), environment: .system, mode: .readOnly)
    defer { directory.close() }
    let progress = Progress("reading")
    let salvage = try Salvage(directory, progress: progress.recovery)
    let refusal = refusal()
    progress.clear()
    let plan = try plan(of: salvage)
    var report = RepairReport(salvage: salvage, plan: plan, refusal: refusal)
    guard report.isDamaged else {
      try show(report)
      return .success
    }
    report.apart = try ApartFile(salvage, path: apartName)
    guard plan.last > .zero else {
      if report.apart != nil, target != nil, !arguments.has(.dryRun) { try report.writeApart() }
      try show(report)
      return report.apart == nil ? .damaged : .problem
    }
    let asks = Terminal.canAsk && !arguments.has(.force)
    if arguments.has(.dryRun) || asks {
      report.outcome = try salvage.rehearse(plan)
      try show(report)
    }
    if let target, !arguments.has(.dryRun) {
      if asks {
        try Terminal.confirm("This writes what can be saved to \(target).", force: false)
      }
      let outcome = try salvage.repair(plan, to: target)
      try check(outcome, target)
      report.outcome = outcome
      report.target = arguments.positional[1]
      try report.writeApart()
      if asks, !arguments.wantsJSON {
        try report.printEnd(to: terminal)
        try terminal.flush()
      } else {
        try show(report)
      }
    }
    return report.isWhole ? .success : .problem
  }

  /// The name of the file for what has no place in the tree.
  private var apartName: String {
    guard var name = arguments.positional(1) else { return "TARGET-apart.jsonl" }
    while name.count > 1, name.hasSuffix("/") { name.removeLast() }
    return "\(name)-apart.jsonl"
  }

  private func plan(of salvage: Salvage) throws -> Salvage.Plan {
    guard arguments.has("before-gap") else { return salvage.plan }
    guard let plan = salvage.planBeforeGap else {
      throw Failure(
        .damaged, "no state is proven: nothing can be saved with --before-gap",
        hint: "without it, each write that can be read is saved")
    }
    return plan
  }

  /// Why the database cannot be opened; nil if it can.
  private func refusal() -> String? {
    do {
      var options = EngineOptions()
      options.loading = .whole
      try Engine.open(at: arguments.directoryPath(), options: options, mode: .readOnly).close()
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Reads back what was written.
  private func check(_ outcome: Salvage.Outcome, _ target: String) throws {
    let engine = try Engine.open(at: target, mode: .readOnly)
    let head = try engine.wholeHead()
    try engine.close()
    guard head.lsn == outcome.plan.last,
      CheckpointCoding.contentHash(of: head.root) == outcome.contentHash
    else {
      throw Failure(.inputOutput, "what was written to \(target) reads differently")
    }
  }

  private func show(_ report: RepairReport) throws {
    if arguments.wantsJSON {
      // Of the two reports on a terminal, the last.
      if Terminal.canAsk, !arguments.has(.force), !arguments.has(.dryRun), report.target == nil,
        report.outcome != nil
      {
        return
      }
      try terminal.print(report.json(arguments.directory).text)
    } else {
      try report.print(to: terminal)
    }
    try terminal.flush()
  }
}
