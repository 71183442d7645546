import Foundation
import Testing

/// `crashlab` as a process of its own, and what it found.
struct LabRun {
  struct Report: Decodable {
    struct Row: Decodable {
      struct Failure: Decodable {
        var problem: String
        var command: String
      }

      var goal: String?
      var what: String
      var unit: String
      var count: Int
      var seconds: Double
      var details: [String: Int]
      var failures: [Failure]
      var notRun: String?
    }

    var seed: UInt64?
    var passed: Bool
    var rows: [Row]
  }

  let report: Report
  let status: Int32

  /// Runs a command, prints a line for each row as the sweeps of the simulations have theirs, and
  /// records what failed. Holds no thread that other tests could use.
  init(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let executable = try Self.executable("crashlab")
    let words = arguments + ["--json"]
    let (status, output, errors) = try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try Self.run(executable, words) })
      }
    }
    self.status = status
    do {
      report = try JSONDecoder().decode(Report.self, from: output)
    } catch {
      Issue.record(
        "crashlab \(words.joined(separator: " ")) ended with \(status): \(errors.suffix(2000))",
        sourceLocation: sourceLocation)
      throw error
    }
    for row in report.rows {
      let name = [row.goal, row.what].compactMap(\.self).joined(separator: ", ")
      if let reason = row.notRun {
        print("\(name): NOT RUN: \(reason)")
      } else {
        let details = row.details.sorted { $0.key < $1.key }.map { ", \($0.value) \($0.key)" }
        print(
          "\(name): \(row.count) \(row.unit)\(details.joined()), \(Int(row.seconds.rounded())) s")
      }
      for failure in row.failures {
        Issue.record(
          "\(name): \(failure.problem)\nagain: \(failure.command)", sourceLocation: sourceLocation)
      }
    }
    #expect(
      report.passed == (status != 1), "\(errors.suffix(2000))", sourceLocation: sourceLocation)
  }

  /// The products are built beside the tests' bundle.
  static func executable(_ name: String) throws -> URL {
    var place = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    // Swift Testing's runner may live in the toolchain; the bundle that it loads does not.
    if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
      place = URL(fileURLWithPath: bundle).deletingLastPathComponent()
    }
    let executable = place.appendingPathComponent(name)
    try #require(
      FileManager.default.isExecutableFile(atPath: executable.path),
      "\(executable.path) is not there: build the package's products first")
    return executable
  }

  /// To its end. What it says beside the result is for a failure's message alone.
  static func run(_ executable: URL, _ arguments: [String]) throws -> (
    status: Int32, output: Data, errors: String
  ) {
    let errors = FileManager.default.temporaryDirectory
      .appendingPathComponent("crashlab-errors-\(UUID().uuidString)")
    try Data().write(to: errors)
    defer { try? FileManager.default.removeItem(at: errors) }
    let process = Process()
    process.executableURL = executable
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    let pipe = Pipe()
    process.standardOutput = pipe
    // A file, since two pipes would have to be read at the same time.
    process.standardError = try FileHandle(forWritingTo: errors)
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (
      process.terminationReason == .exit ? process.terminationStatus : -1, output,
      String(decoding: (try? Data(contentsOf: errors)) ?? Data(), as: UTF8.self)
    )
  }
}
