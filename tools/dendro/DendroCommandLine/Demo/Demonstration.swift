import Dendro
import DendroStorage
import Foundation

/// The main job: import, write, kill, reopen, compare.
final class Demonstration {
  private let arguments: Arguments
  private let terminal: Terminal
  private let writers: Int
  private let seconds: Double
  private let data: String
  private let directory: String
  private let isTemporary: Bool
  private let started = Platform.uptime()
  private var problems: [String] = []

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    terminal = try Terminal(color: arguments.value("color"))
    writers = try arguments.integer("writers", in: 1...1000) ?? 16
    seconds = Double(try arguments.integer("seconds", in: 1...3600) ?? 3)
    data = arguments.value("data") ?? "/usr/share/iso-codes/json"
    if let directory = arguments.positional(0) {
      self.directory = try Arguments.absolutePath(directory, "DIRECTORY")
      isTemporary = false
      guard !Platform.exists(self.directory) else {
        throw Failure(
          .problem, "\(directory) exists already; the demonstration wants a new directory")
      }
    } else {
      let folder = Platform.environment("TMPDIR") ?? "/tmp"
      directory = "\(folder)/dendro-demo-\(getpid())-\(Platform.now())"
      isTemporary = true
    }
  }

  func run() throws -> ExitCode {
    let files = try sourceFiles()
    try say("Dendro's demonstration, in \(directory)")
    try importAll(files)
    let record = try writeAndKill()
    try reopen(record, files)
    try lookAround()
    let elapsed = Format.seconds(Double(Platform.uptime() - started) / 1e9)
    if let first = problems.first {
      for problem in problems.prefix(20) { try say("  FAILED: \(problem)", .red) }
      try say(
        "\nNot proved: \(Format.count(problems.count, "check")) did not hold, first: \(first) "
          + "(the database stays in \(directory))", .red)
      try terminal.flush()
      return .problem
    }
    try say(
      "\nProved: killed in the middle of \(Format.count(record.underWay, "write")), the database kept "
        + "every one of \(Format.count(record.acknowledged)) acknowledged writes and all "
        + "\(Format.count(importedLeaves)) imported leaves, nothing half done. (\(elapsed))", .green
    )
    try terminal.flush()
    if isTemporary, !arguments.has("keep") {
      try? FileManager.default.removeItem(atPath: directory)
    }
    return .success
  }

  private func say(_ line: String, _ color: Terminal.Color? = nil) throws {
    try terminal.print(color.map { terminal.colored(line, $0) } ?? line)
    try terminal.flush()
  }

  private func heading(_ text: String) throws { try say("\n\(text)", .bold) }

  // MARK: Import

  private var importedLeaves = 0

  private func sourceFiles() throws -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: data)) ?? []
    let files = names.filter { $0.hasPrefix("iso_") && $0.hasSuffix(".json") }.sorted()
    guard !files.isEmpty else {
      throw Failure(
        .unavailable, "there are no iso_*.json files in \(data)",
        hint: "they come with Debian's package iso-codes; tools/run installs it")
    }
    return files
  }

  private static func location(of file: String) -> String { "/iso-codes/\(file.dropLast(5))" }

  private func importAll(_ files: [String]) throws {
    try heading("Import")
    for file in files {
      let words = [directory, Self.location(of: file), "\(data)/\(file)"]
      let importer = try Importer(Arguments(words, for: .import), isQuiet: true)
      guard try importer.run() == .success else {
        throw Failure(.problem, "the import was interrupted")
      }
      importedLeaves += importer.leafCount
      try say("  \(file.padded(to: 16)) \(importer.outcome)")
    }
    try say(
      "  \(Format.count(importedLeaves, "leaf")) of names and codes, each chunk one durable write")
  }

  // MARK: Writers

  private func writeAndKill() throws -> BlogRecord {
    try heading("Writers")
    let seed = UInt64.random(in: 1...UInt64.max)
    let child = try Child(
      arguments: [
        "demo-writer", directory, "--writers", "\(writers)", "--seed", "\(seed)",
      ])
    var record = BlogRecord()
    let limit = seconds + Double(seed % 500) / 1000
    var began = Platform.uptime()
    var nextLine = 0.5
    var isReady = false
    var isKilled = false
    let progress = Progress("writing")
    try say(
      "  process \(child.pid): \(writers) writers (seed \(seed)), every write durable before it counts"
    )
    while try child.readLines({ try record.take($0) }) {
      if !isReady, record.isReady {
        isReady = true
        began = Platform.uptime()
      }
      let now = Double(Platform.uptime() - began) / 1e9
      progress.update(
        UInt64(now * 1000), of: UInt64(limit * 1000),
        "\(Format.count(record.acknowledged)) writes acknowledged")
      if isReady, !isKilled, now >= nextLine {
        nextLine += 0.5
        progress.clear()
        try say(
          "  \(Format.decimal(now, places: 1)) s  \(Format.count(record.acknowledged).leftPadded(to: 9)) "
            + "acknowledged;  listeners: \(record.listened.text)")
        try say("         most stars: \(record.ranking)")
      }
      // A slow machine gets more time, until there are acknowledged writes to lose.
      if isReady ? now >= limit && record.acknowledged >= 100 || now >= limit + 30 : now >= 300,
        !isKilled
      {
        child.kill()
        isKilled = true
      }
    }
    progress.clear()
    let ending = child.wait()
    guard isKilled else {
      throw Failure(
        .problem, "the writer process ended by itself (\(ending))",
        hint: record.complaints.first)
    }
    let time = Double(Platform.uptime() - began) / 1e9
    try say(
      "  killed with SIGKILL after \(Format.decimal(time, places: 1)) s: "
        + "\(Format.count(record.acknowledged)) writes acknowledged "
        + "(\(Format.count(Int(Double(record.acknowledged) / time))) a second), "
        + "\(Format.count(record.underWay)) under way")
    problems += record.complaints
    if record.acknowledged == 0 { problems.append("no write was acknowledged") }
    if record.listened.events == 0 { problems.append("no listener received an event") }
    try say(
      "  the ranked list: \(Format.count(record.top.entered)) entered, "
        + "\(Format.count(record.top.left)) left, \(Format.count(record.top.moved)) moved")
    if record.top.entered == 0 { problems.append("no post entered the ranked list") }
    return record
  }

  // MARK: Comparison

  private func reopen(_ record: BlogRecord, _ files: [String]) throws {
    try heading("Reopened")
    let database = try Database.open(at: directory)
    let report = database.recoveryReport
    let checkpoint =
      report.checkpointedWrite.map { "checkpoint at write \($0), then " } ?? ""
    try say(
      "  \(checkpoint)\(Format.count(report.replayedWriteCount, "write")) replayed "
        + "(\(Format.bytes(report.replayedByteCount))) in \(Format.seconds(report.elapsed.seconds)); "
        + "last write \(report.lastWrite)")
    if let torn = report.tornTail {
      try say("  torn tail cut and quarantined: \(torn)")
    } else {
      try say("  the log ended cleanly: the kill fell between two appends")
    }
    for reason in report.unreadableCheckpoints {
      problems.append("unreadable checkpoint: \(reason)")
    }

    var judge = BlogJudge(record: record)
    let root = try Blocking.run { try await database.reference().getData() }
    judge.compare(root)
    let posts = database.reference().child("posts")
    let ranked = try Blocking.run { try await TopPosts.query(posts).getData() }
    judge.compare(ranked, with: root.childSnapshot(forPath: "posts"))
    for file in files {
      let source = try Data(contentsOf: URL(fileURLWithPath: "\(data)/\(file)"))
      // Foundation reads the original: a second opinion on our own reader.
      let original = try ComparableText.make(JSONSerialization.jsonObject(with: source))
      let stored = try ComparableText.make(
        root.childSnapshot(forPath: Self.location(of: file)).value)
      judge.check(original == stored, "\(file) is as it was imported")
    }
    try database.close()
    problems += judge.problems
    try say(
      "  \(Format.count(judge.checks)) checks: \(judge.summary); "
        + (judge.problems.isEmpty
          ? "all hold" : "\(Format.count(judge.problems.count)) do not hold"))
  }

  // MARK: Files

  private func lookAround() throws {
    try heading("The log's last lines")
    _ = try Command.log.run(Arguments([directory, "--last", "8"], for: .log))
    try heading("Files")
    let files = try DatabaseDirectory.open(directory, environment: .system, mode: .readOnly)
    defer { files.close() }
    let survey = try Survey(files, isFull: true)
    try survey.print(to: terminal)
    try heading("Verified")
    var verification = try Verification(files)
    try verification.run()
    try verification.print(to: terminal)
    for damage in verification.damage { problems.append(damage.message) }
  }
}

extension Duration {
  var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
