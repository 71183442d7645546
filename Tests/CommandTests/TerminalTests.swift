import Foundation
import Testing

/// What the tool shows on a terminal.
@Suite("dendro: on a terminal")
struct TerminalTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// The lines without colours, each of those that were drawn over one another by itself.
  private func lines(_ outcome: Tool.Outcome) -> [String] {
    outcome.errors.replacing(/\u{1B}\[[0-9;]*[mK]/, with: "").components(separatedBy: .newlines)
  }

  @Test("help is filled to the width", arguments: [80, 100, 130] as [UInt16])
  func help(columns: UInt16) throws {
    for verb in [nil] + UsageTests.verbs.map(Optional.init) {
      let words = (verb.map { [$0] } ?? []) + ["--help"]
      let outcome = try PseudoTerminal(columns: columns).run(dendro, words, withOutput: true)
      #expect(outcome.status == 0)
      let lines = lines(outcome)
      #expect(lines.allSatisfy { $0.count <= columns }, "\(lines.filter { $0.count > columns })")
    }
    let piped = try dendro("serve", "--help", environment: ["COLUMNS": "\(columns)"])
    #expect(piped.lines.allSatisfy { $0.count <= columns })
    #expect(try dendro("serve", "--help").lines.allSatisfy { $0.count <= 80 })
  }

  @Test("each verb has its exit codes in its help, and those that compare one for no database")
  func exitCodes() throws {
    for verb in UsageTests.verbs {
      let page = try dendro("help", verb).output
      let codes = page.components(separatedBy: "\nExit codes:\n").last ?? ""
      for code in ["0", "64", "74", "130"] { #expect(codes.contains("  \(code) "), "\(verb)") }
      let isAlone = ["completion", "manual"].contains(verb)
      #expect(codes.contains("  1 ") != isAlone, "\(verb)")
    }
    for verb in ["compare", "diff"] {
      let page = try dendro("help", verb).output
      #expect(page.contains("differ") && page.contains("69   unavailable: there is no database"))
    }
  }

  @Test("the lines of reports fit, but for the data")
  func reports() throws {
    for number in 0..<8 {
      try dendro("set", "db", "/users/user\(number)", #"{"name":"a name of some length","n":1}"#)
    }
    try dendro("checkpoint", "db")
    try dendro("update", "db", "/users", #"{"user1/name":"other","user2":null}"#)
    try dendro("backup", "db", "copy")
    try dendro("set", "copy", "/users/user3/name", "1")
    try dendro("backup", "db", "archive", "--incremental")
    let bad = folder.path + "/bad"
    try FileManager.default.createDirectory(atPath: bad, withIntermediateDirectories: false)
    for name in try folder.names(in: "db") {
      try folder.write(folder.bytes("db/\(name)"), to: "bad/\(name)")
    }
    // In the first write of the last segment: another follows, so that it is no torn tail.
    try dendro("set", "bad", "/z", "1")
    let segment =
      "bad/" + (try #require(folder.names(in: "bad").filter { $0.hasSuffix(".log") }.max()))
    var bytes = folder.bytes(segment)
    let place = try #require(bytes.range(of: Data("other".utf8))).lowerBound
    bytes[place] ^= 1
    try folder.write(bytes, to: segment)
    for words in [
      ["info", "db"], ["info", "db", "--full", "--top", "3"], ["info", "bad"], ["verify", "db"],
      ["verify", "bad"], ["log", "db"], ["log", "db", "--stats"], ["log", "db", "--records"],
      ["log", "bad", "--last", "3"], ["history", "db", "/users"], ["blame", "db"],
      ["diff", "db", "--from", "3"], ["compare", "db", "copy"], ["dump", "db", "9"],
      ["dump", "db", "checkpoint"], ["dump", "db", "checkpoint:0"], ["repair", "bad", "--dry-run"],
      ["restore", "archive", "back"], ["get", "bad"], ["checkpoint", "db"], ["get", "nowhere"],
      ["set", "db", "/a", "1", "--durability", "perhaps"],
    ] {
      let outcome = try PseudoTerminal(columns: 80).run(dendro, words, withOutput: true)
      // A path is not broken, and that of the test's folder may be long.
      let long = lines(outcome).map { $0.replacing(folder.path, with: "/folder") }.filter { line in
        line.count > 80 && line.drop { $0 == " " }.contains(" ")
      }
      #expect(long.isEmpty, "\(words): \(long)")
    }
  }

  @Test("Ctrl-C at the shell's prompt drops the line, and the shell goes on")
  func interruptedLine() throws {
    try dendro("set", "db", "/a", "1")
    let outcome = try PseudoTerminal(columns: 80).converse(
      dendro, ["shell", "db"],
      [
        ("/> ", "remove a --for"), ("remove a --for", "\u{3}"), ("/> ", "\u{3}"),
        ("/> ", "get a\r"),
        ("1\u{1B}[0m\r\n/> ", "quit\r"),
      ])
    #expect(outcome.status == 0 && !outcome.wasSignalled, "\(outcome.errors)")
    #expect(try dendro("get", "db", "/a").output == "1\n")
  }
}
