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

    var passed: Bool
    var rows: [Row]
  }

  let report: Report
  let status: Int32

  /// Runs a command, prints a line for each row as the sweeps of the simulations have theirs, and
  /// records what failed.
  init(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) throws {
    let process = Process()
    process.executableURL = try KillTests.executable("crashlab")
    process.arguments = arguments + ["--json"]
    process.standardInput = FileHandle.nullDevice
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    status = process.terminationReason == .exit ? process.terminationStatus : -1
    report = try JSONDecoder().decode(Report.self, from: output)
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
    #expect(report.passed == (status != 1), sourceLocation: sourceLocation)
  }
}
