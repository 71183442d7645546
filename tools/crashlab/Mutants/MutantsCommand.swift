import DendroCrashHarness
import Foundation

/// `crashlab mutants`: takes one guard after the other away, and shows which sweep kills the mutant.
///
/// A mutant that survives is no guard, or the lab does not look where it should.
enum MutantsCommand {
  /// A mutant of this build.
  struct Entry: Sendable {
    var name: String
    /// What holds while the guard is there.
    var guards: String
    var killer: Killer
    /// A second guard that implies the same and is taken away as well.
    var twin: String?
  }

  /// What is known to kill a mutant.
  enum Killer: Sendable {
    /// It runs first; the others follow if it does not.
    case sweep(String)
    /// Tests of the suite, by their names; no sweep reaches the guard.
    case tests(String)

    var sweep: String? { if case .sweep(let name) = self { name } else { nil } }
    var tests: String? { if case .tests(let name) = self { name } else { nil } }
  }

  private struct Row: Encodable {
    var mutant: String
    var twin: String?
    var guards: String
    /// Nil if it survived.
    var sweep: String?
    var count = 0
    var seconds = 0.0
    var how: String?
    /// What the sweep reported.
    var problem: String?
  }

  private struct Document: Encodable {
    var seed: UInt64
    var passed: Bool
    var control: [Row]
    var mutants: [Row]
    var survivors: [String]
  }

  private struct Choice {
    var seed: UInt64
    var only: [Entry]
    var sweeps: [MutantSweep.Plan]
    /// The program that has the tests; nil for sweeps alone.
    var bundle: String?
    var timeout: Int
    var isJSON: Bool
    var isMarkdown: Bool
    var skipsControl: Bool
  }

  static func run(_ arguments: [String]) -> Int32 {
    if catalogue.isEmpty {
      note(
        """
        crashlab mutants: this build has all guards and no mutant. Run tools/mutants: it makes a copy of
        the tree with every mutant of Tests/Mutants, builds crashlab there and runs this command in it.
        """)
      return 69
    }
    let choice: Choice
    do {
      choice = try parse(arguments)
    } catch {
      note("crashlab mutants: \(error)")
      return 64
    }
    Interruption.listen()
    var control: [Row] = []
    if !choice.skipsControl {
      note("control: every sweep and test with all guards in place")
      self.control(choice) { row in
        control.append(row)
        note("  \(row.sweep ?? ""): \(grouped(row.count)), \(time(row.seconds))\(problem(row))")
      }
    }
    var mutants: [Row] = []
    for (index, mutant) in choice.only.enumerated() where !Interruption.isRequested {
      let row = judge(mutant, choice)
      // Interrupted before the last sweep.
      if row.sweep == nil, Interruption.isRequested { break }
      mutants.append(row)
      note(
        "\(index + 1)/\(choice.only.count) \(row.mutant): "
          + (row.sweep.map {
            "killed by \($0), after \(grouped(row.count)), \(time(row.seconds))\(problem(row))"
          }
            ?? "SURVIVED"))
    }
    let survivors = mutants.filter { $0.sweep == nil }.map(\.mutant)
    let isRight = control.allSatisfy { $0.how == nil }
    let document = Document(
      seed: choice.seed, passed: isRight && survivors.isEmpty, control: control, mutants: mutants,
      survivors: survivors)
    report(document, choice)
    if let code = Interruption.exitCode { return code }
    return document.passed ? 0 : 1
  }

  /// Runs what kills the mutants without any.
  private static func control(_ choice: Choice, _ note: (Row) -> Void) {
    for plan in choice.sweeps where !Interruption.isRequested {
      let result = MutantSweep.start(plan, planted: "", seed: choice.seed, timeout: 600)
      note(row(result, plan.name))
    }
    guard let bundle = choice.bundle else { return }
    for tests in Set(choice.only.compactMap(\.killer.tests)).sorted() {
      if Interruption.isRequested { return }
      let result = MutantTests.start(tests, of: bundle, planted: "", timeout: choice.timeout)
      var row = row(result, name(of: tests))
      if result.count == 0, row.how == nil {
        (row.how, row.problem) = ("missing", "there is no such test")
      }
      note(row)
    }
  }

  private static func judge(_ mutant: Entry, _ choice: Choice) -> Row {
    let planted = [mutant.name, mutant.twin].compactMap(\.self).joined(separator: ",")
    var seconds = 0.0
    var survivor = Row(mutant: mutant.name, twin: mutant.twin, guards: mutant.guards)
    func killed(_ result: MutantSweep.Result, by killer: String) -> Row? {
      seconds += result.seconds
      var row = row(result, killer)
      // Interrupted, it was ended by us.
      guard row.how != nil, !Interruption.isRequested else { return nil }
      row.mutant = mutant.name
      row.twin = mutant.twin
      row.guards = mutant.guards
      row.seconds = seconds
      return row
    }
    switch mutant.killer {
    case .sweep(let sweep):
      var plans = choice.sweeps
      if plans.contains(where: { $0.sweep == sweep }) {
        // Enough of a sweep that draws at random to reach what it is known to kill.
        plans.insert(MutantSweep.Plan(sweep, 200_000), at: 0)
      }
      for plan in plans where !Interruption.isRequested {
        let result = MutantSweep.start(
          plan, planted: planted, seed: choice.seed, timeout: choice.timeout)
        if let row = killed(result, by: plan.name) { return row }
      }
    case .tests(let tests):
      guard let bundle = choice.bundle else { break }
      let result = MutantTests.start(tests, of: bundle, planted: planted, timeout: choice.timeout)
      if let row = killed(result, by: name(of: tests)) { return row }
    }
    survivor.seconds = seconds
    return survivor
  }

  /// Of tests, without their target.
  private static func name(of tests: String) -> String {
    "`\(tests.drop { $0 != "." }.dropFirst())`"
  }

  private static func row(_ result: MutantSweep.Result, _ killer: String) -> Row {
    var row = Row(mutant: "", guards: "", sweep: killer, count: result.count)
    row.seconds = result.seconds
    switch result.outcome {
    case .held: break
    case .violated(let problem): (row.how, row.problem) = ("violation", problem)
    case .trapped(let text): (row.how, row.problem) = ("trap", text)
    case .hung(let seconds): (row.how, row.problem) = ("hang", "no end within \(seconds) s")
    }
    return row
  }

  // MARK: Arguments

  private struct Usage: Error, CustomStringConvertible { var description: String }

  private static func parse(_ arguments: [String]) throws -> Choice {
    var words = Options(
      arguments, named: ["--seed", "--only", "--sweeps", "--tests", "--timeout"],
      flags: ["--json", "--markdown", "--no-control"])
    let seed: UInt64 = words.number("--seed", in: 0...UInt64.max >> 1, default: 1)
    let timeout = words.number("--timeout", in: 1...86_400, default: 20)
    if let problem = words.problem { throw Usage(description: problem) }
    var only = catalogue
    for entry in only {
      if let sweep = entry.killer.sweep, !Sweeps.ids.contains(sweep) {
        throw Usage(description: "\(entry.name): there is no sweep «\(sweep)»")
      }
    }
    if let names = words["--only"] {
      only = try names.split(separator: ",").map { name in
        guard let mutant = catalogue.first(where: { $0.name == name }) else {
          throw Usage(description: "there is no mutant «\(name)»")
        }
        return mutant
      }
    }
    let bundle = words["--tests"]
    if let bundle, !FileManager.default.isExecutableFile(atPath: bundle) {
      throw Usage(description: "there is no program \(bundle)")
    }
    // Without their program they are not judged.
    if bundle == nil { only.removeAll { $0.killer.tests != nil } }
    // Where only tests are asked for, no sweep has to hold.
    var sweeps = only.contains { $0.killer.sweep != nil } ? MutantSweep.plans : []
    if let names = words["--sweeps"] {
      sweeps = try names.split(separator: ",").map { word in
        let parts = word.split(separator: ":")
        guard let name = parts.first.map(String.init), Sweeps.ids.contains(name) else {
          throw Usage(description: "there is no sweep «\(word)»")
        }
        return MutantSweep.Plan(name, parts.count > 1 ? Int(parts[1]) : nil)
      }
    }
    return Choice(
      seed: seed, only: only, sweeps: sweeps, bundle: bundle, timeout: timeout,
      isJSON: words.has("--json"), isMarkdown: words.has("--markdown"),
      skipsControl: words.has("--no-control"))
  }

  // MARK: Reporting

  private static func report(_ document: Document, _ choice: Choice) {
    var text: String
    if choice.isJSON {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
      text = (try? encoder.encode(document)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
      text += "\n"
    } else if choice.isMarkdown {
      text = page(document)
    } else {
      let width = document.mutants.map(\.mutant.count).max() ?? 0
      text = document.mutants.map { row in
        let name = row.mutant + String(repeating: " ", count: width - row.mutant.count)
        guard let sweep = row.sweep else { return "\(name)  SURVIVED  \(row.guards)\n" }
        let how = row.how == "violation" ? "" : " (\(row.how ?? ""))"
        return "\(name)  \(sweep)\(how), after \(grouped(row.count)), \(time(row.seconds))\n"
      }.joined()
      let killed = document.mutants.count - document.survivors.count
      text += "\n\(killed) of \(document.mutants.count) mutants killed"
      if !document.survivors.isEmpty {
        text += "; survived: " + document.survivors.joined(separator: ", ")
      }
      text += "\n"
      for row in document.control where row.how != nil {
        text += "CONTROL FAILED: \(row.sweep ?? ""): \(row.problem ?? "")\n"
      }
    }
    FileHandle.standardOutput.write(Data(text.utf8))
  }

  /// The page that stands beside the catalogue.
  private static func page(_ document: Document) -> String {
    let count = document.mutants.count
    let day = Date.now.formatted(.iso8601.year().month().day())
    var text = """
      # What kills each mutant

      Run on \(day): \(count - document.survivors.count) of \(count) mutants killed. `tools/mutants --markdown` prints this page.

      «After» counts the states, runs, bit flips or scenarios of the sweep that killed the mutant, or the tests that ran; the
      time is that of all sweeps up to there.

      | mutant, and what its guard does | killed by | after | time |
      | --- | --- | --- | --- |

      """
    for row in document.mutants {
      let twin = row.twin.map { " (with `\($0)`)" } ?? ""
      let how = row.how.map { $0 == "violation" ? "" : " (\($0))" } ?? ""
      let sweep = row.sweep.map { $0 + how } ?? "**survives**"
      text +=
        "| `\(row.mutant)`\(twin): \(row.guards) | \(sweep) | \(grouped(row.count)) | "
        + "\(time(row.seconds)) |\n"
    }
    return text
  }

  private static func problem(_ row: Row) -> String {
    guard let how = row.how else { return "" }
    return ": \(how == "violation" ? "" : "\(how): ")\((row.problem ?? "").prefix(140))"
  }

  private static func time(_ seconds: Double) -> String { String(format: "%.1f s", seconds) }

  private static func note(_ line: String) {
    FileHandle.standardError.write(Data((line + "\n").utf8))
  }
}
