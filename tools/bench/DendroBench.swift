import Foundation

/// `dendro-bench [WORKLOAD…]`: measures Dendro on fixed workloads and prints the figures.
@main
enum DendroBench {
  static let help = """
    usage: dendro-bench [WORKLOAD…] [--list] [--quick] [--json] [--rounds N] [--directory DIR]

    Measures Dendro, all workloads where none is named. Each workload prints the medians of its
    rounds with the least and the most beside them. Built with DENDRO_BENCH_LEVELDB=1 (which is
    what tools/bench/peer does), some take turns with LevelDB in the same run; only these ratios
    mean something on a machine that others use too.

      --list           name the workloads, each with a sentence
      --quick          a twentieth of the work in one round: whether it runs, not how fast
      --json           one JSON object instead of text
      --rounds N       rounds of each workload; 5 unless told otherwise
      --directory DIR  where the databases are made and removed; the system's temporary folder

    examples:
      dendro-bench sets reopen
      dendro-bench --quick --json
    """

  static func main() async {
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
      complain(error.message + "\n\n" + help)
      exit(64)
    } catch {
      complain("dendro-bench: \(error)")
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

  private static func complain(_ message: String) {
    FileHandle.standardError.write(Data((message + "\n").utf8))
  }
}
