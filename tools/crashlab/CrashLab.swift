import DendroCrashHarness
import Foundation

/// `crashlab`: makes a database suffer, and judges what is left of it.
@main
enum CrashLab {
  static let help = """
    crashlab — makes databases crash and checks that nothing acknowledged is lost

    USAGE
      crashlab COMMAND [--seed N] [--count N | --minutes N] [--soak] [--json]
      crashlab replay SWEEP JOB …
      crashlab golden DIRECTORY

    ON A SIMULATED DISK
      states         crashed after every call, in every state that a power cut could have left (G1)
      exhaust        every short workload, crashed everywhere, torn at every byte (G2)
      recovery       crashed again inside the recovery, and a third time (G3)
      bits           every bit of a database flipped, every end cut, files mixed up (G4)
      faults         every call failing in every way, also while recovering (G5, G6)
      soak           random operations through the API, with listeners, against an oracle (G11)
      histories      threads that read, write, transact and listen at the same places (G18)
      deterministic  the same seed twice, in one process and in two (G13)

    ON THE REAL SYSTEM
      kill           a process with concurrent writers, transactions and checkpoints, killed at random
                     moments (G7)
      power          power cuts on real ext4, XFS and Btrfs in images, with a control that must lose
                     data (G8); as root, with loop devices
      full           a real disk that is full at every 4 KiB step (G9); as root
      hostile        directories made to do harm, read by a process that has 512 MB (G15)
      fuzz           all parsers, held against inputs that libFuzzer finds (G10); needs the build that
                     tools/fuzz makes, without which it replays the kept inputs alone (G20);
                     [--target NAME,…] [--executions N | --seconds N] [--minimize] [--input FILE]

    MORE
      all            every command above, one after the other
      replay         one failure again, from the words that it printed; those that were mended stand
                     in Tests/Fixtures/PastSeeds.txt, and the suite replays them (G20)
      golden         writes the golden databases of today's format into a directory (G19)
      mutants        takes every guard away, one after the other, and shows which sweep kills the
                     mutant (G12); in the build that tools/mutants makes;
                     [--only NAME,…] [--sweeps ID[:COUNT],…] [--timeout SECONDS] [--markdown]
                     [--no-control]

    OPTIONS
      --seed N       what all random choices start from (default: drawn, and printed)
      --count N      how many are judged (default: what the goal asks of a submission)
      --minutes N    go on for so long, with each command; what ends by itself may end earlier
      --soak         as much as the goals ask before a release
      --json         the result as JSON on standard output
      --verbose      kill, power: a line for each cycle
      --writers N    kill, power: concurrent writers in the process (default 16)
      --directory D  kill: an empty or new directory to work in, which is kept (default: a temporary
                     one, removed when all is well)
      --file-system  power: ext4, xfs or btrfs alone (default: all three in turn)

    EXIT CODES
      0 nothing was lost; 1 something was; 64 wrong usage; 69 nothing could be run; 130, 143 what was
      judged until it was interrupted, by Ctrl-C or SIGTERM, and nothing was lost

    EXAMPLES
      crashlab states --count 100000 --seed 42
      crashlab kill --count 1000
      crashlab all --json
    """

  private static let order = [
    "states", "exhaust", "recovery", "bits", "faults", "soak", "histories", "deterministic", "kill",
    "power", "full", "hostile", "fuzz",
  ]

  static func main() {
    // On the main thread: a process that a thread of Dispatch's started has inherited that thread's mask,
    // with which no signal would ever come.
    Interruption.unblock()
    Task.detached { exit(await run()) }
    dispatchMain()
  }

  private static func run() async -> Int32 {
    if getenv(FuzzRun.targetVariable) != nil { return Fuzzer.run() }
    let arguments = Array(CommandLine.arguments.dropFirst())
    let rest = Array(arguments.dropFirst())
    if rest.contains(where: { ["--help", "-h"].contains($0) }) { return showHelp() }
    switch arguments.first {
    case "replay": return ReplayCommand.run(rest)
    case KilledWriter.subcommand: return await KilledWriter.run(rest)
    case KilledClient.subcommand: return await KilledClient.run(rest)
    case KeptDatabase.subcommand: return await KeptDatabase.run(rest)
    case HostileReader.subcommand: return HostileReader.run(rest)
    case DigestCommand.subcommand: return DigestCommand.run(rest)
    case KeptInputs.subcommand: return KeptInputs.run(rest)
    case MutantSweep.subcommand: return await MutantSweep.run(rest)
    case "golden": return GoldenCommand.run(rest)
    case "mutants": return MutantsCommand.run(rest)
    case "help", "--help", "-h": return showHelp()
    case nil: usage(nil)
    case "all": return await run(order, "all", rest)
    case let command? where order.contains(command): return await run([command], command, rest)
    case let other?: usage("there is no command «\(other)»")
    }
  }

  private static func showHelp() -> Int32 {
    print(help)
    return 0
  }

  private static func run(_ commands: [String], _ name: String, _ arguments: [String]) async
    -> Int32
  {
    // Commands that mount file systems do so in a namespace of their own, which ends with the process.
    if commands.contains(where: { ["power", "full"].contains($0) }) { Namespace.enter() }
    var (named, flags) = (LabOptions.named, LabOptions.flags)
    for command in commands {
      named.formUnion(RealOptions.named(of: command))
      flags.formUnion(RealOptions.flags(of: command))
      if command == "fuzz" {
        named.formUnion(FuzzOptions.named)
        flags.formUnion(FuzzOptions.flags)
      }
    }
    var words = Options(arguments, named: named, flags: flags)
    let options = LabOptions(&words)
    let real = RealOptions(&words, options)
    let fuzz = FuzzOptions(&words, options)
    if let problem = words.problem { usage(problem) }
    Interruption.listen()
    options.say("crashlab \(name) --seed \(options.seed)\(options.amount)")
    var report = LabReport(command: name, seed: options.seed)
    for command in commands where !Interruption.isRequested {
      switch command {
      case "kill": report.rows += KillCommand.run(options, real)
      case "power": report.rows += PowerCommand.run(options, real)
      case "full": report.rows += FullCommand.run(options)
      case "hostile": report.rows += HostileCommand.run(options)
      case "fuzz": report.rows += FuzzCommand.run(options, fuzz)
      case "deterministic":
        let deadline = options.minutes.map { ContinuousClock.now + .seconds($0 * 60) }
        // The second half of the goal is the cheaper one.
        report.rows += await SweepCommand.run(command, options, share: 0.75)
        if !Interruption.isRequested {
          report.rows += DigestCommand.compare(options, until: deadline)
        }
      default: report.rows += await SweepCommand.run(command, options)
      }
    }
    report.show(options)
    return report.hasFailed ? 1 : Interruption.exitCode ?? report.exitCode
  }

  static func usage(_ problem: String?) -> Never {
    let lead = problem.map { "crashlab: \($0)\n\n" } ?? ""
    FileHandle.standardError.write(Data((lead + help + "\n").utf8))
    exit(64)
  }
}

extension LabOptions {
  /// As it stood on the command line.
  var amount: String {
    var text = ""
    if let count { text += " --count \(count)" }
    if let minutes { text += " --minutes \(minutes)" }
    return isSoak ? text + " --soak" : text
  }
}
