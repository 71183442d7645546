import Dendro
import DendroPlatform
import DendroStorage

/// From the words of the command line to the exit status.
package enum CommandLineTool {
  static let version = Database.sdkVersion()
  /// Of the release, at midnight UTC in seconds since 1970: 2026-11-24. `SOURCE_DATE_EPOCH` says another one, as the
  /// package's build does with that of the commit.
  static let releaseDate: Int64 = 1_795_478_400

  static let commands: [Command] = [
    .import, .export, .get, .set, .update, .push, .remove, .increment, .apply, .watch, .serve,
    .cluster,
    .log, .history, .blame, .diff, .compare, .hash, .dump, .info, .pending, .verify, .repair,
    .checkpoint, .purge, .backup, .archive, .restore, .rules, .shell, .demo, .completion, .manual,
    .demoWriter,
    .completePath,
  ]

  /// Runs the verb of the process's command line.
  ///
  /// - Returns: the exit status.
  package static func main() -> Int32 {
    // A reader that closes the pipe ends the process, as with other tools.
    signal(SIGPIPE, SIG_DFL)
    Interruption.unblock()
    Platform.openStandardDescriptors()
    let words = Platform.arguments()
    guard !words.isEmpty else {
      // Not even the tool's own name.
      report(Failure(.unavailable, "the arguments cannot be read: is /proc mounted?"))
      return ExitCode.unavailable.rawValue
    }
    return run(Array(words.dropFirst()))
  }

  /// Does what the words ask for; the signals of the process stay as they are.
  ///
  /// - Parameter arguments: what follows the tool's own name; nil for one that is not UTF-8.
  package static func run(_ arguments: [String?]) -> Int32 {
    do {
      let words = try arguments.enumerated().map { index, word in
        // With replacement characters it would be another path or another value.
        guard let word else { throw Failure.usage("argument \(index + 1) is not UTF-8") }
        return word
      }
      return try dispatch(words)
    } catch let failure as Failure {
      report(failure)
      return failure.code.rawValue
    } catch {
      let failure = Failure(describing: error)
      report(failure)
      return failure.code.rawValue
    }
  }

  private static func dispatch(_ words: [String]) throws -> Int32 {
    guard let first = words.first else {
      Terminal.noteLine(
        Help.overview(of: commands, version: version, columns: Help.columns(2)))
      return ExitCode.usage.rawValue
    }
    switch first {
    case "-h", "--help", "help":
      guard words.count > 1, first == "help" else {
        try show(Help.overview(of: commands, version: version, columns: Help.columns()))
        return ExitCode.success.rawValue
      }
      try show(Help.page(for: command(named: words[1]), columns: Help.columns()))
      return ExitCode.success.rawValue
    case "--version":
      switch words.dropFirst() {
      case []: try show("dendro \(version)\nreads and writes format \(FileFormat.newestVersion)\n")
      case ["--json"]:
        try show(
          JSONValue.object([
            ("version", .string(version)), ("format", .unsigned(UInt64(FileFormat.newestVersion))),
          ]).text + "\n")
      default: throw Failure.usage("--version takes --json and nothing else")
      }
      return ExitCode.success.rawValue
    case _ where first.hasPrefix("-"):
      throw Failure.usage("the verb comes first: dendro VERB DIRECTORY [PATH] …")
    default: break
    }
    let command = try command(named: first)
    let arguments = try Arguments(words.dropFirst(), for: command)
    if arguments.wantsHelp {
      try show(Help.page(for: command, columns: Help.columns()))
      return ExitCode.success.rawValue
    }
    let code: ExitCode
    do {
      code = try command.run(arguments)
    } catch is Interruption.Ended {
      Terminal.note("dendro: interrupted")
      return Interruption.exitStatus
    } catch {
      throw Failure(describing: error).fitting(command)
        .naming(arguments.positional + ["with"].compactMap(arguments.value))
    }
    // The verb ended in order, but its caller must see that it did not finish.
    return code == .interrupted ? Interruption.exitStatus : code.rawValue
  }

  static func command(named name: String) throws -> Command {
    if let command = commands.first(where: { $0.name == name }) { return command }
    let visible = commands.filter { !$0.isHidden }.map(\.name)
    let near = suggestion(for: name, among: visible)
    throw Failure.usage(
      "there is no verb \(Failure.quoted(name))",
      hint: near.map { "did you mean '\($0)'?" } ?? "dendro --help lists them")
  }

  private static func show(_ text: String) throws {
    var text = text
    try text.withUTF8 {
      try Platform.writeAll(1, UnsafeRawBufferPointer($0), to: "standard output")
    }
  }

  private static func report(_ failure: Failure) {
    Terminal.note("dendro: \(failure.message)")
    if let hint = failure.hint { Terminal.note("  \(hint)") }
  }
}
