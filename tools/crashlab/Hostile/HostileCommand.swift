import DendroCrashHarness
import Dispatch
import Foundation
import Synchronization

/// `crashlab hostile`: hostile directories are read in processes of their own, which have little memory
/// and are watched for their end.
enum HostileCommand {
  /// KiB of address space, as `ulimit -v` takes them.
  static let memoryLimit = 512 << 10
  /// After so long without a word a reader hangs. A directory takes it a few milliseconds.
  private static let silenceMax = Duration.seconds(60)
  private static let batch: UInt64 = 250

  static func run(_ options: LabOptions) -> [LabReport.Row] {
    // A process that ends by a trap is to end at once.
    setenv("SWIFT_BACKTRACE", "enable=no", 1)
    let wanted = options.wanted(.hostileFiles)
    if isSanitized {
      return [
        LabReport.Row(
          goal: Goal.hostileFiles.id, what: Goal.hostileFiles.what, unit: Goal.hostileFiles.unit,
          count: 0, wanted: wanted, seconds: 0,
          notRun: "a sanitizer's build takes more address space to start")
      ]
    }
    let begun = ContinuousClock.now
    let deadline = options.minutes.map { begun + .seconds($0 * 60 * 0.7) }
    let total = options.count ?? (deadline == nil ? wanted : .max)
    let progress = LabProgress(
      "G15", unit: "directories", total: total == .max ? nil : total, deadline: deadline)
    let board = Mutex(
      (
        next: options.seed,
        row: LabReport.Row(
          goal: Goal.hostileFiles.id, what: Goal.hostileFiles.what,
          unit: Goal.hostileFiles.unit, count: 0, wanted: wanted, seconds: 0)
      ))
    DispatchQueue.concurrentPerform(iterations: ProcessInfo.processInfo.activeProcessorCount) { _ in
      while true {
        let range = board.withLock { board -> Range<UInt64>? in
          let count = Int(board.next - options.seed)
          guard count < total, board.row.failures.count < 5, board.row.notRun == nil,
            !Interruption.isRequested, deadline.map({ ContinuousClock.now < $0 }) ?? true
          else { return nil }
          let end = board.next + min(batch, UInt64(total - count))
          defer { board.next = end }
          return board.next..<end
        }
        guard let range else { return }
        let found = read(range)
        let count = board.withLock { board in
          board.row.count += found.count
          board.row.failures += found.failures
          board.row.notRun = board.row.notRun ?? found.problem
          board.row.details.merge(found.details, uniquingKeysWith: +)
          return board.row.count
        }
        progress.update(count)
      }
    }
    progress.clear()
    var row = board.withLock { $0.row }
    row.seconds = progress.seconds
    if Interruption.isRequested { return [row] }
    return [row]
      + HostileVerbs.run(
        options, directoryCount: max(1, min(total, wanted) / 400),
        until: options.minutes.map { begun + .seconds($0 * 60) })
  }

  /// One directory again.
  static func replay(_ place: Reproduction) -> Int32 {
    setenv("SWIFT_BACKTRACE", "enable=no", 1)
    let found = read(place.job..<place.job + 1)
    if let problem = found.problem {
      print("not run: \(problem)")
      return 69
    }
    print("\(HostileFiles.sweep.name): \(grouped(found.count)) directories")
    for failure in found.failures { print("\(failure.problem)\n  again: \(failure.command)") }
    if found.failures.isEmpty { print("nothing fails") }
    return found.failures.isEmpty ? 0 : 1
  }

  /// Whether this program was built for one that maps terabytes.
  static var isSanitized: Bool {
    dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
  }

  private struct Found {
    var count = 0
    var failures: [LabReport.Failure] = []
    var details: [String: Int] = [:]
    var problem: String?
  }

  private static func read(_ range: Range<UInt64>) -> Found {
    var found = Found()
    var first = range.lowerBound
    while first < range.upperBound, found.failures.count < 3 {
      let child: ChildProcess
      do {
        child = try LimitedProcess.start(
          ChildProcess.ownExecutable,
          [HostileReader.subcommand, "--from", "\(first)", "--to", "\(range.upperBound)"])
      } catch {
        found.problem = "\(error)"
        return found
      }
      var heard = (byteCount: -1, at: ContinuousClock.now)
      var isHung = false
      while !child.isComplete {
        usleep(2000)
        let byteCount = child.said.count
        if byteCount != heard.byteCount { heard = (byteCount, .now) }
        if ContinuousClock.now - heard.at > silenceMax {
          isHung = true
          child.kill()
        }
      }
      let (end, said) = child.wait()
      let isInterrupted = Interruption.explains(end)
      var last = first
      var lastWords = ""
      for line in String(decoding: said, as: UTF8.self).split(separator: "\n") {
        let words = line.split(separator: " ", maxSplits: 2)
        if words[0] == "failed", words.count == 3 {
          found.failures.append(failure(String(words[2]), UInt64(words[1]) ?? 0))
        } else if words[0] == "done", words.count == 3 {
          found.details["opened", default: 0] += Int(words[1]) ?? 0
          found.details["refused", default: 0] += Int(words[2]) ?? 0
        } else if let seed = UInt64(words[0]) {
          last = seed
          found.count += 1
        } else {
          // What it said on standard error.
          lastWords = String(line.prefix(400))
        }
      }
      if end == .exit(0) || isInterrupted { return found }
      let what = isHung ? "it hangs" : "the reader ended with \(end)"
      found.failures.append(
        failure(lastWords.isEmpty ? what : "\(what): \(lastWords)", last))
      first = last + 1
    }
    return found
  }

  private static func failure(_ problem: String, _ seed: UInt64) -> LabReport.Failure {
    LabReport.Failure(
      problem: "directory \(seed): \(problem)",
      command: "\(Reproduction(HostileFiles.sweep.id, seed))")
  }
}

/// Processes with little address space.
enum LimitedProcess {
  static func start(_ executable: String, _ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(
      "/bin/sh",
      ["-c", "ulimit -v \(HostileCommand.memoryLimit) && exec \"$0\" \"$@\"", executable]
        + arguments,
      joinsErrors: true)
  }
}
