import DendroCrashHarness
import Foundation

/// What a run found: a row for each goal or part of one.
struct LabReport {
  struct Row: Codable {
    /// As in the list of goals; nil for what is looked at beside them.
    var goal: String?
    var what: String
    var unit: String
    /// How much was judged.
    var count: Int
    /// How much the goal asks; nil if there is no goal.
    var wanted: Int?
    var seconds: Double
    var details: [String: Int] = [:]
    var failures: [Failure] = []
    /// Why it could not run here.
    var notRun: String?
    /// The directory with what failed.
    var kept: String?

    /// Nothing failed, and as much was judged as the goal asks; nil if there is nothing to meet.
    var isMet: Bool? {
      if !failures.isEmpty { return false }
      if notRun != nil { return nil }
      return wanted.map { count >= $0 }
    }
  }

  struct Failure: Codable, Equatable {
    var problem: String
    /// The command that shows it again.
    var command: String

    /// - `command`: may begin with the name of the tool alone.
    init(problem: String, command: String) {
      self.problem = problem
      self.command = command.hasPrefix("crashlab ") ? "swift run -c release \(command)" : command
    }
  }

  var command: String
  var seed: UInt64?
  var rows: [Row] = []

  var hasFailed: Bool { rows.contains { !$0.failures.isEmpty } }

  /// 0 if nothing failed, 1 if something did, 69 if nothing could run.
  var exitCode: Int32 {
    if hasFailed { return 1 }
    return !rows.isEmpty && rows.allSatisfy { $0.notRun != nil } ? 69 : 0
  }

  // MARK: Telling

  func show(_ options: LabOptions) {
    let text = options.isJSON ? json + "\n" : table
    FileHandle.standardOutput.write(Data(text.utf8))
  }

  private struct Document: Encodable {
    var command: String
    var seed: UInt64?
    var passed: Bool
    var rows: [DocumentRow]
  }

  private struct DocumentRow: Encodable {
    var row: Row

    func encode(to encoder: any Encoder) throws {
      try row.encode(to: encoder)
      var container = encoder.container(keyedBy: Key.self)
      try container.encodeIfPresent(row.isMet, forKey: .met)
    }

    enum Key: String, CodingKey { case met }
  }

  private var json: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let document = Document(
      command: command, seed: seed, passed: !hasFailed, rows: rows.map { DocumentRow(row: $0) })
    guard let data = try? encoder.encode(document) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  private var table: String {
    var lines = [["goal", "what", "judged", "wanted", "a second", "time", "result"]]
    for row in rows {
      let rate = row.seconds > 0.05 ? grouped(Int(Double(row.count) / row.seconds)) : ""
      lines.append([
        row.goal ?? "–", row.what, "\(grouped(row.count)) \(row.unit)",
        row.wanted.map(grouped) ?? "–", rate, Self.time(row.seconds), Self.result(row),
      ])
    }
    let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    var text = lines.map { line in
      line.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return (2...5).contains(column) ? space + cell : cell + space
      }.joined(separator: "  ").trimmingCharacters(in: .whitespaces) + "\n"
    }.joined()
    for row in rows {
      for (index, failure) in row.failures.enumerated() {
        text += index == 0 ? "\n\(row.goal ?? row.what) FAILED: " : "  also: "
        text += "\(failure.problem)\n  again: \(failure.command)\n"
      }
      if let kept = row.kept {
        text +=
          "  The seed does not decide when a process is killed: it may take some runs. What this one left"
          + "\n  behind is kept in \(kept)\n"
      }
    }
    if rows.contains(where: { $0.failures.contains { $0.command.contains("crashlab replay ") } }) {
      text += "\nOnce mended, what follows «replay» belongs into Tests/Fixtures/PastSeeds.txt.\n"
    }
    return text
  }

  private static func result(_ row: Row) -> String {
    if !row.failures.isEmpty { return "FAILED" }
    if let reason = row.notRun { return "not run: \(reason)" }
    switch row.isMet {
    case true?: return "met"
    case false?: return "holds, fewer than wanted"
    case nil: return "holds"
    }
  }

  private static func time(_ seconds: Double) -> String {
    if seconds < 10 { return String(format: "%.1f s", seconds) }
    if seconds < 600 { return "\(Int(seconds.rounded())) s" }
    return "\(Int((seconds / 60).rounded())) min"
  }
}
