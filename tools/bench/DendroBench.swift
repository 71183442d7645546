import Foundation

/// `dendro-bench [WORKLOAD…]`: measures Dendro on fixed workloads and prints the figures.
@main
enum DendroBench {
  static let help = """
    usage: dendro-bench [WORKLOAD…] [--list] [--quick] [--json] [--rounds N] [--directory DIR]

    Measures Dendro with the named workloads, or with all of them. Each figure is the median of
    the rounds, followed by the minimum and the maximum. If built by tools/bench/peer, some
    workloads take turns with LevelDB in the same run; on a shared machine only these ratios are
    meaningful.

      --list           list the workloads, each with a sentence
      --quick          do a twentieth of the work in one round, to check that it runs
      --json           print one JSON object instead of text
      --rounds N       run each workload N times; the default is 5
      --directory DIR  create the databases in DIR, and remove them afterwards; the default is the
                       system's temporary folder

    examples:
      dendro-bench sets reopen
      dendro-bench --quick --json
    """

  @concurrent static func main() async {
    do {
      let options = try BenchOptions(CommandLine.arguments.dropFirst())
      switch options.action {
      case .help:
        print(help)
      case .list:
        let width = Workload.all.map(\.name.count).max() ?? 0
        for workload in Workload.all {
          print(
            workload.name.padding(toLength: width + 2, withPad: " ", startingAt: 0), terminator: "")
          print(workload.sentence)
        }
      case .run:
        try await run(options)
      }
    } catch let error as UsageError {
      printError(error.message + "\n\n" + help)
      exit(64)
    } catch {
      printError("dendro-bench: \(error)")
      exit(1)
    }
  }

  private static func run(_ options: BenchOptions) async throws {
    let session = try Session(options)
    defer { session.removeWorkspace() }
    let machine = Machine(workspace: session.workspace)
    if !options.printsJSON { print(machine.description) }
    for workload in options.workloads {
      if !options.printsJSON { print("\n\(workload.name): \(workload.sentence)") }
      try await workload.run(session)
    }
    if options.printsJSON {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      let document = Document(
        machine: machine, isQuick: options.isQuick, figures: session.figures)
      print(String(decoding: try encoder.encode(document), as: UTF8.self))
    }
  }

  private struct Document: Encodable {
    let machine: Machine
    let isQuick: Bool
    let figures: [Figure]
  }

  private static func printError(_ message: String) {
    FileHandle.standardError.write(Data((message + "\n").utf8))
  }
}
