import Foundation
import DendroFuzzTargets

/// libFuzzer on one target, in a process that is watched.
struct FuzzRun {
  static let targetVariable = "DENDRO_FUZZ_TARGET"
  /// Before the sentence of a target that found something.
  static let mark = "dendro-fuzz: "

  let target: FuzzTarget
  /// Where new inputs are kept for the next run.
  let inputs: URL
  /// Where inputs go that broke something.
  let findings: URL

  init(_ target: FuzzTarget) throws {
    self.target = target
    let root = URL(fileURLWithPath: ChildProcess.ownExecutable).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    inputs = root.appendingPathComponent("inputs/\(target.name)")
    findings = root.appendingPathComponent("findings/\(target.name)")
    for place in [inputs, findings] {
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    }
  }

  struct Result {
    var executionCount = 0
    var newCount = 0
    /// Of the whole process, the fuzzer's own included.
    var peakMegabytes = 0
    var failures: [LabReport.Failure] = []
  }

  /// Looks for new inputs.
  ///
  /// - Parameters:
  ///   - count: executions; nil without a limit.
  ///   - seconds: of the clock; nil without a limit.
  func search(
    count: Int?, seconds: Int?, seed: UInt64, watch: (Int) -> Void
  ) throws -> Result {
    for (index, seed) in try target.seeds().enumerated() {
      try Data(seed).write(to: inputs.appendingPathComponent("seed-\(index)"))
    }
    let corpus = Corpus(of: target)
    try FileManager.default.createDirectory(
      atPath: corpus.path, withIntermediateDirectories: true)
    let before = Set(try FileManager.default.contentsOfDirectory(atPath: findings.path))
    var words =
      options + [
        "-seed=\(UInt32(truncatingIfNeeded: seed) | 1)", "-print_final_stats=1",
        "-artifact_prefix=\(findings.path)/",
      ]
    if let count { words.append("-runs=\(count)") }
    if let seconds { words.append("-max_total_time=\(max(1, seconds))") }
    let child = try start(words + [inputs.path, corpus.path])
    while !child.isComplete {
      usleep(100_000)
      if Interruption.isRequested { child.kill() }
      watch(Self.lastCount(child.said))
    }
    let (end, said) = child.wait()
    let text = String(decoding: said, as: UTF8.self)
    var result = Result(executionCount: Self.lastCount(said))
    for line in text.split(separator: "\n") where line.hasPrefix("stat::") {
      let words = line.split(separator: " ", omittingEmptySubsequences: true)
      guard let value = words.last.flatMap({ Int($0) }) else { continue }
      switch words.first {
      case "stat::number_of_executed_units:": result.executionCount = value
      case "stat::new_units_added:": result.newCount = value
      case "stat::peak_rss_mb:": result.peakMegabytes = value
      default: break
      }
    }
    if end != .exit(0), !Interruption.isRequested {
      result.failures = try failures(besides: before, said: text, end: "\(end)")
    }
    return result
  }

  /// A single input may take a quarter of a gibibyte at once and the process as much again as the
  /// sanitizer needs; a second of processor time is for the target to watch, since others work here too.
  private var options: [String] {
    [
      "-max_len=\(target.byteLimit)", "-timeout=30", "-malloc_limit_mb=256",
      "-rss_limit_mb=768", "-detect_leaks=0",
    ]
  }

  private func start(_ words: [String]) throws -> ChildProcess {
    setenv(Self.targetVariable, target.name, 1)
    setenv("SWIFT_BACKTRACE", "enable=no", 1)
    setenv("ASAN_OPTIONS", "detect_leaks=1", 1)
    defer { unsetenv(Self.targetVariable) }
    return try ChildProcess(ChildProcess.ownExecutable, words)
  }

  /// The number at the beginning of the last line that has one: `#65536 pulse …`.
  private static func lastCount(_ said: [UInt8]) -> Int {
    let tail = String(decoding: said.suffix(4096), as: UTF8.self)
    for line in tail.split(separator: "\n").reversed() where line.hasPrefix("#") {
      if let count = Int(line.dropFirst().prefix { $0.isNumber }) { return count }
    }
    return 0
  }

  // MARK: Findings

  /// Leaks are reported at the end, without an input.
  ///
  /// A failing input is added to the kept inputs immediately, and the suite replays it until it passes.
  private func failures(besides before: Set<String>, said: String, end: String) throws
    -> [LabReport.Failure]
  {
    let problem =
      said.split(separator: "\n").first { $0.hasPrefix(Self.mark) || $0.contains("ERROR: ") }
      .map { String($0.prefix(600)) } ?? "it ended with \(end): \(said.suffix(600))"
    let names = try FileManager.default.contentsOfDirectory(atPath: findings.path)
      .filter { !before.contains($0) && !problem.contains("LeakSanitizer") }
    var failures: [LabReport.Failure] = []
    for name in names {
      let kept = "\(Corpus(of: target).path)/found-\(name.suffix(12))"
      if !FileManager.default.fileExists(atPath: kept) {
        try FileManager.default.copyItem(
          atPath: findings.appendingPathComponent(name).path, toPath: kept)
      }
      failures.append(
        LabReport.Failure(
          problem: "\(target.name): \(problem)",
          command: "swift run crashlab fuzz --target \(target.name) --input \(kept)"))
    }
    if failures.isEmpty {
      failures.append(
        LabReport.Failure(
          problem: "\(target.name): \(problem)", command: "tools/fuzz \(target.name)"))
    }
    return failures
  }

  // MARK: Keeping

  /// Replaces the kept inputs, but for the findings, by the fewest of all known ones that reach as much.
  func minimize() throws {
    let manager = FileManager.default
    let corpus = Corpus(of: target)
    let merged = findings.deletingLastPathComponent().appendingPathComponent(
      "merged-\(target.name)")
    try? manager.removeItem(at: merged)
    try manager.createDirectory(at: merged, withIntermediateDirectories: true)
    let child = try start(
      options + ["-set_cover_merge=1", "-use_counters=0", merged.path, corpus.path, inputs.path])
    let (end, said) = child.wait()
    guard end == .exit(0) else {
      throw MergeError(
        description:
          "merging ended with \(end): \(String(decoding: said.suffix(400), as: UTF8.self))")
    }
    for name in try corpus.names() where !name.hasPrefix("found-") {
      try manager.removeItem(atPath: "\(corpus.path)/\(name)")
    }
    for name in try manager.contentsOfDirectory(atPath: merged.path) {
      try manager.copyItem(
        atPath: merged.appendingPathComponent(name).path,
        toPath: "\(corpus.path)/\(name.prefix(16))")
    }
    try manager.removeItem(at: merged)
  }

  struct MergeError: Error, CustomStringConvertible {
    let description: String
  }
}
