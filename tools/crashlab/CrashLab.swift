import Foundation

/// `crashlab`: makes a database suffer, and judges what is left of it.
@main
enum CrashLab {
  static let help = """
    crashlab — makes databases crash and checks that nothing acknowledged is lost

    USAGE
      crashlab kill [--cycles N] [--writers N] [--seed N] [--directory DIR] [--verbose]

    COMMANDS
      kill   a process with concurrent writers, transactions and checkpoints is killed (SIGKILL) at a
             random moment, again and again; each time the database is reopened, and every
             acknowledged write and the wholeness of all others are checked

    OPTIONS
      --cycles N       how many times to kill (default 200)
      --writers N      concurrent writers in the process (default 16)
      --seed N         what all random choices start from (default: drawn, and printed)
      --directory DIR  an empty or new directory to work in, which is kept (default: a temporary
                       one, removed when all is well)
      --verbose        a line for each cycle

    EXIT CODES
      0 nothing was lost; 1 something was; 64 wrong usage; 69 the child could not be started

    EXAMPLE
      crashlab kill --cycles 1000 --seed 42
    """

  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch arguments.first {
    case "kill":
      await exit(KillCommand.run(Array(arguments.dropFirst())))
    case KilledWriter.subcommand:
      await exit(KilledWriter.run(Array(arguments.dropFirst())))
    case "help", "--help", "-h":
      print(help)
    case nil:
      usage(nil)
    case let other?:
      usage("there is no command «\(other)»")
    }
  }

  static func usage(_ problem: String?) -> Never {
    let lead = problem.map { "crashlab: \($0)\n\n" } ?? ""
    FileHandle.standardError.write(Data((lead + help + "\n").utf8))
    exit(64)
  }
}

/// The options of one command line: `--name value` and `--flag`.
struct Options {
  private var values: [String: String] = [:]
  private var flags: Set<String> = []
  private(set) var problem: String?

  init(_ arguments: [String], named: Set<String>, flags known: Set<String> = []) {
    var rest = arguments[...]
    while let name = rest.popFirst() {
      if known.contains(name) {
        flags.insert(name)
      } else if named.contains(name), let value = rest.popFirst() {
        values[name] = value
      } else {
        problem = named.contains(name) ? "\(name) wants a value" : "there is no option «\(name)»"
        return
      }
    }
  }

  subscript(name: String) -> String? { values[name] }
  func has(_ flag: String) -> Bool { flags.contains(flag) }

  /// The value as a number of the range; the default where it is not given.
  mutating func number<N: FixedWidthInteger>(
    _ name: String, in range: ClosedRange<N>, default fallback: N
  ) -> N {
    guard let text = values[name] else { return fallback }
    guard let number = N(text), range.contains(number) else {
      problem = problem ?? "\(name) wants a number from \(range.lowerBound) to \(range.upperBound)"
      return fallback
    }
    return number
  }
}
