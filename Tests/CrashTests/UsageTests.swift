import DendroTestSupport
import Foundation
import Testing

/// What `crashlab` makes of its command line, and of being interrupted.
@Suite struct UsageTests {
  private static func call(_ line: String) throws -> (status: Int32, output: String, errors: String)
  {
    let (status, output, errors) = try LabRun.run(
      LabRun.executable("crashlab"), line.split(separator: " ").map(String.init))
    return (status, String(decoding: output, as: UTF8.self), errors)
  }

  @Test(arguments: [
    ("nonsense", "there is no command «nonsense»"),
    ("states --nonsense 1", "there is no option «--nonsense» here"),
    ("states extra", "there is no option «extra» here"),
    ("states --count", "--count wants a value"),
    ("states --count 0", "--count wants a number from 1 to 1000000000000"),
    ("states --count -1", "--count wants a number"),
    ("states --count 99999999999999999999", "--count wants a number"),
    ("states --seed some", "--seed wants a number from 0 to 9223372036854775807"),
    ("states --minutes 0", "--minutes wants a number above 0, up to 100000"),
    ("states --minutes nan", "--minutes wants a number"),
    ("states --minutes 1e9", "--minutes wants a number"),
    // Each command takes what it knows what to do with.
    ("states --writers 3", "there is no option «--writers» here"),
    ("power --directory here", "there is no option «--directory» here"),
    ("kill --writers 0", "--writers wants a number from 1 to 1024"),
    ("power --file-system zfs", "--file-system wants ext4, xfs or btrfs"),
    ("fuzz --target nothing", "there is no target «nothing»"),
    ("replay G1", "replay wants the words that a failure printed"),
    ("replay nothing 1", "there is no sweep «nothing»"),
    ("replay G2 3108", "G2 has the jobs 0 to 3107"),
    ("replay G1 1 steps=5-2", "replay wants the words"),
    ("replay G1 1 -3 k", "replay wants the words"),
    ("golden", "golden wants a directory"),
  ])
  func whatIsWrongIsSaid(line: String, problem: String) throws {
    let (status, output, errors) = try Self.call(line)
    #expect(status == 64)
    #expect(output == "")
    #expect(errors.prefix { $0 != "\n" }.contains(problem), "\(errors.prefix(200))")
  }

  @Test(arguments: ["help", "--help", "-h", "states --help", "kill --count 3 -h"])
  func help(line: String) throws {
    let (status, output, _) = try Self.call(line)
    #expect(status == 0)
    #expect(output.contains("EXIT CODES"))
  }

  /// Mutants are in the build of `tools/mutants` alone.
  @Test func anOrdinaryBuildHasNoMutants() throws {
    let (status, output, errors) = try Self.call("mutants --only recordChain")
    #expect(status == 69)
    #expect(output == "")
    #expect(errors.contains("Run tools/mutants"))
  }

  @Test func aDirectoryThatCannotBeUsed() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("crashlab-usage-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("file").path
    try Data("not ours".utf8).write(to: URL(fileURLWithPath: file))
    let full = try Self.call("kill --count 1 --directory \(folder.path)")
    #expect(full.status == 69)
    #expect(full.output.contains("not run: no working directory: \(folder.path) is not empty"))
    for line in ["kill --count 1 --directory \(file)/below", "golden \(file)/below"] {
      let (status, output, errors) = try Self.call(line)
      #expect(status == 69, "\(line)")
      #expect((output + errors).contains("\(file)/below"), "\(line)")
      #expect(!(output + errors).contains("Error Domain"), "\(output)\(errors)")
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data("not ours".utf8))
  }

  /// The words of a failure are what shows it again.
  @Test func aFailureIsShownAgain() throws {
    let words = "replay G1 1 99999999 k"
    let (status, output, _) = try Self.call(words)
    #expect(status == 1)
    #expect(output.contains("the workload has no operation 99999999\n"))
    #expect(output.contains("  again: swift run -c release crashlab \(words)\n"))
    let (good, held, _) = try Self.call("replay G1 1")
    #expect(good == 0)
    #expect(held.hasSuffix("nothing fails\n"))
  }

  @Test func theSeedAndTheCountAreTaken() async throws {
    let run = try await LabRun("exhaust", "--seed", "7", "--count", "5")
    #expect(run.status == 0)
    #expect(run.report.seed == 7)
    // Workloads, as the table says, and those that other cores had begun.
    let row = try #require(run.report.rows.first)
    #expect(row.unit == "workloads")
    #expect((5..<100).contains(row.count))
  }

  /// Also if all that there is would take longer. The databases of «bits» take long to be made.
  @Test(arguments: ["exhaust", "deterministic"] + (Scale.share < 1 ? [] : ["bits"]))
  func theMinutesAreKept(command: String) async throws {
    let run = try await LabRun(command, "--soak", "--minutes", "0.02")
    #expect(run.status == 0)
    let row = try #require(run.report.rows.first)
    #expect(row.count < ["exhaust": 3108, "bits": 524_288, "deterministic": 20_000][command] ?? 0)
  }

  /// Ctrl-C, which all processes of the group get: only the results so far are reported.
  @Test func anInterruptedRunTellsWhatItJudged() throws {
    let process = Process()
    process.executableURL = try LabRun.executable("crashlab")
    process.arguments = ["kill", "--minutes", "30", "--verbose", "--json"]
    process.standardInput = FileHandle.nullDevice
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    // A line for each kill.
    var said = Data()
    while !String(decoding: said, as: UTF8.self).contains("database 0, ") {
      let more = errors.fileHandleForReading.availableData
      if more.isEmpty { break }
      said += more
    }
    let pid = process.processIdentifier
    #expect(kill(getpgid(pid) == pid ? -pid : pid, SIGINT) == 0)
    // Beside the other pipe, which would hold up the process once it is full.
    let rest = Thread { _ = errors.fileHandleForReading.readDataToEndOfFile() }
    rest.start()
    let result = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationStatus == 128 + SIGINT)
    let report = try JSONDecoder().decode(LabRun.Report.self, from: result)
    #expect(report.passed)
    let row = try #require(report.rows.first)
    #expect(row.count >= 1)
    #expect(row.failures.isEmpty)
  }
}
