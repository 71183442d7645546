import DendroCrashHarness
import Foundation

/// Runs the same seed in two processes, which hash differently. No write, event or call may depend on
/// the order of a hash table.
enum DigestCommand {
  static let subcommand = "digests"
  /// As many as `--count` takes.
  private static let countMax = 1_000_000_000_000

  /// The child: a line for each seed.
  static func run(_ arguments: [String]) -> Int32 {
    var options = Options(arguments, named: ["--from", "--count"])
    let first = options.number("--from", in: 0...UInt64.max >> 1, default: 0)
    let count = options.number("--count", in: 1...UInt64(countMax), default: 1)
    guard options.problem == nil else { return 64 }
    for seed in first..<first + count { print(line(seed)) }
    return 0
  }

  private static func line(_ seed: UInt64) -> String {
    "\(seed) \(Determinism.digest(of: seed).map { String($0, radix: 16) } ?? "failed")"
  }

  /// - `deadline`: when it ends at the latest; nil for so many seeds as are wanted.
  static func compare(_ options: LabOptions, until deadline: ContinuousClock.Instant?)
    -> [LabReport.Row]
  {
    let progress = LabProgress("G13, two processes", unit: "seeds", total: nil)
    // One process is enough to see a difference; a quarter of the goal keeps it cheap.
    let count = UInt64(
      options.count ?? (deadline == nil ? options.wanted(.determinism) / 4 : countMax))
    var row = LabReport.Row(
      goal: nil, what: "the same seed in two processes", unit: "seeds", count: 0, seconds: 0)
    func isOver() -> Bool {
      Interruption.isRequested || deadline.map { ContinuousClock.now >= $0 } ?? false
    }
    do {
      let child = try ChildProcess(
        ChildProcess.ownExecutable,
        [subcommand, "--from", "\(options.seed)", "--count", "\(count)"])
      var lines = Lines(of: child)
      var hasEnded = false
      for seed in options.seed..<options.seed + count where row.failures.count < 3 {
        guard let theirs = lines.next(until: isOver) else {
          hasEnded = !isOver()
          break
        }
        row.count += 1
        if line(seed) != theirs {
          row.failures.append(
            LabReport.Failure(
              problem: "seed \(seed) gives something else in another process",
              command: "crashlab deterministic --seed \(seed) --count 1"))
        }
        progress.update(row.count)
      }
      if !hasEnded { child.kill() }
      let end = child.wait().end
      if hasEnded {
        row.failures.append(
          LabReport.Failure(
            problem: "the other process ended with \(end) after \(row.count) seeds",
            command:
              "crashlab deterministic --seed \(options.seed + UInt64(row.count)) --count 1"))
      }
    } catch {
      row.notRun = "\(error)"
    }
    progress.clear()
    row.seconds = progress.seconds
    return [row]
  }

  /// What a child says, line by line.
  private struct Lines {
    private let child: ChildProcess
    private var heard: [UInt8] = []
    private var place = 0

    init(of child: ChildProcess) { self.child = child }

    /// - Returns: nil if the child has ended, or `isOver` returns true.
    mutating func next(until isOver: () -> Bool) -> String? {
      while !isOver() {
        if let end = heard[place...].firstIndex(of: UInt8(ascii: "\n")) {
          defer { place = end + 1 }
          return String(decoding: heard[place..<end], as: UTF8.self)
        }
        let isComplete = child.isComplete
        let said = child.said
        if said.count == heard.count {
          if isComplete { return nil }
          usleep(1000)
        }
        heard = said
      }
      return nil
    }
  }
}
