import DendroPlatform
import Foundation

/// `dendro-bench [WORKLOAD…]`: measures Dendro and its peers on fixed workloads and prints the figures.
@main
enum DendroBench {
  static let help = """
    usage: dendro-bench [WORKLOAD…] [--list] [--quick] [--json | --markdown] [--rounds N]
                        [--picture FILE] [--directory DIR]

    Measures Dendro with the named workloads, or with all of them. Each figure is the median of
    the rounds, followed by the minimum and the maximum. If built by tools/bench/peer, it takes
    turns with LevelDB, RocksDB, LMDB, SQLite and Redis in the same run. Every turn is a process
    of its own. On a shared machine only the ratios and the CPU times are meaningful.

      --list           list the workloads, each with its row of the table and a sentence
      --quick          do a twentieth of the work in one round, to check that it runs
      --json           print one JSON object instead of text
      --markdown       print the table of goals and the figures as Markdown instead of text
      --picture FILE   write the ratios to peers into FILE as well, as an SVG picture
      --rounds N       give each contestant N turns; the default is 3
      --directory DIR  create the databases in DIR, and remove them afterwards; the default is the
                       system's temporary folder

    A workload may be named by its row: W1 is sets. The workload synced takes turns with pyrebase4
    as well, if DENDRO_BENCH_PYTHON is the path of a Python interpreter that can import it.

    examples:
      dendro-bench sets reopen
      dendro-bench W2 --rounds 5
      dendro-bench --quick --json
    """

  @concurrent static func main() async {
    do {
      let arguments = Array(CommandLine.arguments.dropFirst())
      if let turn = ChildTurn(arguments) { return try await turn.take() }
      let options = try BenchOptions(arguments)
      switch options.action {
      case .help: print(help)
      case .list: list()
      case .run: try run(options)
      }
    } catch let error as UsageError {
      printError(error.message + "\n\n" + help)
      exit(64)
    } catch {
      printError("dendro-bench: \(error)")
      exit(1)
    }
  }

  private static func list() {
    let width = (Workload.all.map(\.name.count).max() ?? 0) + 2
    for workload in Workload.all {
      write(
        (workload.row ?? "").padding(toLength: 4, withPad: " ", startingAt: 0)
          + workload.name.padding(toLength: width, withPad: " ", startingAt: 0)
          + workload.sentence)
    }
  }

  private static func run(_ options: BenchOptions) throws {
    let session = try Session(options)
    defer { session.removeWorkspace() }
    let machine = Machine(workspace: session.workspace)
    let isText = options.output == .text
    if isText { write(machine.description) }
    var results: [ContestantResult] = []
    for workload in options.workloads {
      if isText {
        write("\n\(workload.title): \(workload.sentence)")
      } else if isatty(STDERR_FILENO) != 0 {
        printError("dendro-bench: \(workload.title)")
      }
      for comparison in workload.comparisons {
        let compared = try session.run(comparison, of: workload)
        if isText { write(Report.text(comparison.name, compared)) }
        for contestant in comparison.contestants {
          guard let lack = contestant.lack?() else { continue }
          let text = "\(contestant.name) is left out: \(lack)"
          if isText { write("    \(text)") } else { printError("dendro-bench: \(text)") }
        }
        results += compared
      }
    }
    let goals = try Goal.all.compactMap { try $0.outcome(in: results) }
    if let picture = options.picture {
      try Data(Picture.svg(goals, machine: machine).utf8).write(
        to: URL(fileURLWithPath: picture))
    }
    switch options.output {
    case .text: if !goals.isEmpty { write("\n" + Report.text(goals)) }
    case .json:
      write(
        try Report.json(
          machine: machine, isQuick: options.isQuick, results: results, goals: goals))
    case .markdown:
      write(
        Report.markdown(
          machine: machine, isQuick: options.isQuick, results: results, goals: goals))
    }
  }

  /// At once, also into a pipe: a run takes minutes.
  private static func write(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
  }

  private static func printError(_ message: String) {
    FileHandle.standardError.write(Data((message + "\n").utf8))
  }
}

extension Workload {
  /// The name, with the row of the table that it belongs to.
  var title: String { row.map { "\(name) (\($0))" } ?? name }
}
