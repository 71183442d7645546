import Foundation
import Testing

@Suite("dendro: where a database is made")
struct CreationTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws {
    dendro = Tool(folder: try Folder())
    try folder.write(#"{"n":1}"#, to: "in.json")
  }

  /// The verbs that make a database, each with what follows the directory.
  static let verbs: [[String]] = [
    ["set", "/a", "1"], ["update", "/", #"{"a":1}"#], ["push", "/list", "1"], ["increment", "/n"],
    ["import", "/", "in.json"],
  ]

  private func run(_ words: [String], in directory: String, _ options: String...) throws
    -> Tool.Outcome
  {
    try dendro.run([words[0], directory] + words.dropFirst() + options)
  }

  @Test("a new database is announced, an old one is not", arguments: verbs)
  func announced(words: [String]) throws {
    let first = try run(words, in: "db")
    #expect(first.status == 0)
    #expect(
      first.errors.contains("dendro: made a new database in \(folder.path)/db\n"),
      "\(first.errors)")
    #expect(!first.output.contains("new database"))
    let second = try dendro("set", "db", "/second", "2")
    #expect(!second.errors.contains("new database"))
  }

  @Test("--no-create makes none", arguments: verbs)
  func noCreate(words: [String]) throws {
    let refused = try run(words, in: "typo", "--no-create")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("there is no database at \(folder.path)/typo"))
    #expect(refused.output.isEmpty)
    #expect(try !folder.names(in: ".").contains("typo"))
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/empty", withIntermediateDirectories: false)
    #expect(try run(words, in: "empty", "--no-create").status == 1)
    #expect(try folder.names(in: "empty").isEmpty)
    try dendro("set", "db", "/old", "1")
    #expect(try run(words.map { $0 == "/" ? "/new" : $0 }, in: "db", "--no-create").status == 0)
  }

  @Test("none is made among other files", arguments: verbs)
  func foreignFiles(words: [String]) throws {
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/photos", withIntermediateDirectories: false)
    try folder.write("x", to: "photos/cat.jpeg")
    let refused = try run(words, in: "photos")
    #expect(refused.status == 65)
    #expect(refused.errors.contains("cat.jpeg"), "\(refused.errors)")
    #expect(try folder.names(in: "photos") == ["cat.jpeg"])
    // A database that has a foreign file beside it is one nevertheless.
    try dendro("set", "db", "/old", "1")
    try folder.write("x", to: "db/notes.txt")
    #expect(try run(words.map { $0 == "/" ? "/new" : $0 }, in: "db").status == 0)
  }

  @Test("nor where a log was, whose remains say so")
  func remains() throws {
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/db", withIntermediateDirectories: false)
    try folder.write("x", to: "db/00000000000000000001.log.torn-64")
    let refused = try dendro("set", "db", "/a", "1")
    #expect(refused.status == 65)
    #expect(refused.errors.contains("torn-64"), "\(refused.errors)")
    #expect(try folder.names(in: "db") == ["00000000000000000001.log.torn-64"])
  }

  @Test("a priority needs something that has it: no database is made for one")
  func priority() throws {
    #expect(try dendro("set", "typo", "/a/.priority", "1").status == 1)
    #expect(try !folder.names(in: ".").contains("typo"))
  }

  @Test(
    "a relative path without a working directory is an error",
    arguments: [
      "set db /a 1", "get db", "info db", "verify db", "log db", "watch db", "backup /x db",
    ]
  )
  func noWorkingDirectory(words: String) throws {
    let outcome = try dendro.run(
      ["-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \(words)", Tool.path],
      executable: "/bin/sh")
    #expect(outcome.status == 74)
    #expect(outcome.errors.contains("working directory"), "\(outcome.errors)")
  }

  @Test(
    "a URL is no directory",
    arguments: ["https://example.com/db", "file:///tmp/db", "dendro+x://h"])
  func url(directory: String) throws {
    for words in [
      ["set", directory, "/a", "1"], ["info", directory], ["backup", directory, "copy"],
    ] {
      let outcome = try dendro.run(words)
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains("URL"), "\(outcome.errors)")
    }
    try dendro("set", "db", "/a", "1")
    #expect(try dendro("backup", "db", directory).status == 64)
    #expect(try folder.names(in: ".").filter { !$0.hasPrefix(".") } == ["db", "in.json"])
  }
}
