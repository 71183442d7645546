import Foundation
import Testing

/// Holds the article about the command line against what the verbs print.
@Suite("dendro: JSON as the article has it")
struct DocumentedOutputTests {
  private let dendro: Tool
  init() throws { dendro = Tool(folder: try Folder()) }

  /// The words in code voice of each row of the article's tables, by its first cell.
  private static let rows: [String: Set<String>] = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let article = root.appendingPathComponent("Sources/Dendro/Dendro.docc/CommandLine.md")
    let text = (try? String(contentsOf: article, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").reduce(into: [:]) { rows, line in
      let cells = line.split(separator: "|", maxSplits: 1)
      guard line.hasPrefix("| `"), cells.count == 2 else { return }
      let words = Set(cells[1].matches(of: /`([A-Za-z]+)`/).map { String($0.1) })
      for verb in cells[0].matches(of: /`([^`]+)`/) { rows[String(verb.1)] = words }
    }
  }()

  static let calls: [(row: String, words: [String])] = [
    ("get", ["get", "db"]), ("hash", ["hash", "db"]), ("export -o", ["export", "db", "-o", "out"]),
    ("set", ["set", "db", "/x", "1"]), ("update", ["update", "db", "/", #"{"y":1}"#]),
    ("push", ["push", "db", "/list", "1"]), ("increment", ["increment", "db", "/n"]),
    ("import", ["import", "db", "/new", "-"]), ("apply", ["apply", "db", "-"]),
    ("log", ["log", "db"]), ("log --records", ["log", "db", "--records"]),
    ("log --stats", ["log", "db", "--stats"]), ("history", ["history", "db", "/users"]),
    ("blame", ["blame", "db"]), ("diff", ["diff", "db", "--from", "1"]),
    ("compare", ["compare", "db", "db"]), ("watch", ["watch", "db", "--count", "1"]),
    ("info", ["info", "db"]), ("verify", ["verify", "db"]),
    ("verify", ["verify", "db", "--quick"]),
    ("repair", ["repair", "db", "--dry-run"]), ("dump", ["dump", "db", "1"]),
    ("dump checkpoint", ["dump", "db", "checkpoint"]),
    ("dump checkpoint", ["dump", "db", "checkpoint:0"]),
    ("backup", ["backup", "db", "copy"]),
    ("backup --incremental", ["backup", "db", "archived", "--incremental"]),
    ("restore", ["restore", "db", "copy", "--at", "2"]),
  ]

  @Test("every member that a verb prints stands in its row", arguments: calls)
  func members(row: String, words: [String]) throws {
    try dendro("set", "db", "/users/ada", #"{"name":"Ada"}"#)
    try dendro("update", "db", "/", #"{"n":1,"users/ada/.priority":5,"users/bob":1}"#)
    try dendro("increment", "db", "/n", "5")
    try dendro("remove", "db", "/users/bob")
    if row == "dump checkpoint" { try dendro("checkpoint", "db") }
    let documented = try #require(Self.rows[row])
    let input =
      row == "apply" ? #"{"operation":"set","path":"/z","value":1}"# : row == "import" ? "{}" : nil
    let running = try dendro.start(words + ["--json"], input: input.map { Data($0.utf8) })
    if row == "watch" {
      #expect(running.waitForOutput("\n"))
      try dendro("set", "db", "/users/eve", "1")
    }
    let outcome = try running.wait()
    #expect(!outcome.output.isEmpty, "\(outcome.errors)")
    var found: Set<String> = []
    for line in outcome.lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      found.formUnion(try #require(object).keys)
    }
    // The members that only measure the log stand for themselves.
    if row == "info" {
      found.subtract([
        "logRawBytes", "logRecordBytes", "compressionRatio", "firstTime", "lastTime",
      ])
    }
    #expect(found.subtracting(documented).isEmpty, "\(found.subtracting(documented))")
  }
}
