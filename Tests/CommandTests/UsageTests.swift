import Foundation
import Testing

@Suite("dendro: the command line")
struct UsageTests {
  private let dendro: Tool
  init() throws { dendro = Tool(folder: try Folder()) }

  @Test("without words, the overview is printed to standard error")
  func noWords() throws {
    let outcome = try dendro()
    #expect(outcome.status == 64)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.contains("Usage: dendro VERB DIRECTORY [PATH]"))
  }

  @Test("help at each level")
  func help() throws {
    let overview = try dendro("--help")
    #expect(overview.status == 0)
    #expect(overview.errors.isEmpty)
    for verb in Self.verbs {
      #expect(overview.output.contains("\n  \(verb) "), "\(verb)")
      for words in [[verb, "--help"], [verb, "-h"], ["help", verb]] {
        let page = try dendro.run(words)
        #expect(page.status == 0)
        #expect(page.output.contains("Usage: dendro \(verb)"))
        #expect(page.output.contains("Examples:"))
        #expect(page.errors.isEmpty)
      }
    }
    #expect(!overview.output.contains("demo-writer"))
    #expect(try dendro("--version").output.hasPrefix("dendro "))
  }

  static let verbs = [
    "import", "export", "get", "set", "update", "push", "remove", "increment", "watch", "serve",
    "log", "info", "verify", "checkpoint", "backup", "demo", "repair", "apply", "history", "blame",
    "diff", "compare", "hash", "dump", "purge", "pending", "completion", "manual", "shell",
    "archive", "restore", "cluster",
  ]

  static let misuses: [([String], String)] = [
    (["imprt", "db"], "did you mean 'import'?"),
    (["chekpoint", "db"], "did you mean 'checkpoint'?"),
    (["xyzzy"], "dendro --help lists them"),
    (["--json"], "the verb comes first"),
    (["get"], "DIRECTORY is missing"),
    (["set", "db", "/a"], "VALUE is missing"),
    (["get", "db", "/", "more"], "one word too many: 'more'"),
    (["get", "db", "--shalow"], "did you mean --shallow?"),
    (["get", "db", "-z"], "no option '-z'"),
    (["get", "db", "-sz"], "no option '-z'"),
    (["get", "db", "-s=1"], "--shallow takes no value"),
    (["get", "db", "-s-"], "no option '--'"),
    (["get", "db", "-sxyz"], "no option '-x'"),
    (["increment", "db", "/n", "-r5"], "no option '-5'"),
    (["set", "db", "/a", "-s5"], "no option '-5'"),
    (["get", "db", "--json=1"], "--json takes no value"),
    (["log", "db", "--last"], "--last needs a value"),
    (["log", "db", "--last", "many"], "--last takes a whole number from 1"),
    (["log", "db", "--last", "0"], "--last takes a whole number from 1"),
    (["log", "db", "--since", "yesterday"], "takes an LSN or a time"),
    (["log", "db", "--since", "5", "--until", "3"], "--since is later than --until"),
    (["set", "db", "/a", "1", "--durability", "perhaps"], "every-commit, none or interval:MS"),
    (["set", "db", "/a", "1", "--durability", "interval:0"], "every-commit, none or interval:MS"),
    (["get", "db", "--color", "green"], "auto, always or never"),
    (["log", "db", "--since", "2026-02-30"], "not '2026-02-30'"),
    (["log", "db", "--until", "2026-02-29T12:00"], "takes an LSN or a time"),
    (["log", "db", "--since", "1900-02-29"], "takes an LSN or a time"),
    (["log", "db", "--since", "2026-04-31"], "takes an LSN or a time"),
    (["log", "db", "--since", "2026-13-01"], "takes an LSN or a time"),
    (["log", "db", "--since", "2026-01-00"], "takes an LSN or a time"),
  ]

  @Test("misuse is an error, with exit code 64", arguments: misuses)
  func misuse(words: [String], message: String) throws {
    try dendro("set", "db", "/x", "1")
    let outcome = try dendro.run(words)
    #expect(outcome.status == 64)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.contains(message), "\(outcome.errors)")
  }

  /// What `"$UNSET"` and `"/users/$UNSET/name"` are to a verb that writes.
  static let emptyPaths = ["", "//", "/users//name", "/users/", "//name", "/users//.priority"]

  @Test("a PATH with an empty part is refused by every verb that writes", arguments: emptyPaths)
  func emptyPath(path: String) throws {
    try dendro("set", "db", "/users", #"{"name":"Ada"}"#)
    let before = try dendro("export", "db").output
    let verbs = [
      ["set", "db", path, "1"], ["set", "db", path, "-"], ["update", "db", path, #"{"a":1}"#],
      ["push", "db", path, "1"], ["increment", "db", path], ["increment", "db", path, "1"],
      ["remove", "db", path], ["remove", "db", path, "--force"],
      ["remove", "db", path, "--dry-run"],
      ["import", "db", path, "-"], ["import", "db", path, "-", "--replace", "--force"],
      ["import", "db", path, "-", "--dry-run"],
    ]
    for words in verbs {
      let outcome = try dendro.run(words, input: "1")
      #expect(outcome.status == 64, "\(words): \(outcome.errors)")
      #expect(outcome.errors.contains("/ is the root"), "\(words): \(outcome.errors)")
      #expect(outcome.output.isEmpty)
    }
    #expect(try dendro("export", "db").output == before)
    #expect(try dendro("set", "new", path, "1").status == 64)
    #expect(try !dendro.folder.names(in: ".").contains("new"))
  }

  @Test("an empty PATH is refused by the verbs that read too, and in the shell")
  func emptyPathOfReaders() throws {
    try dendro("set", "db", "/users", #"{"name":"Ada"}"#)
    for words in [
      ["get", "db", ""], ["export", "db", ""], ["watch", "db", ""], ["history", "db", ""],
      ["blame", "db", ""], ["diff", "db", "", "--from", "0"], ["compare", "db", "db", ""],
      ["hash", "db", ""], ["log", "db", "--path", ""],
    ] {
      let outcome = try dendro.run(words)
      #expect(outcome.status == 64, "\(words): \(outcome.errors)")
      #expect(
        outcome.errors.contains("PATH is empty") && outcome.errors.contains("/ is the root"),
        "\(words): \(outcome.errors)")
      #expect(outcome.output.isEmpty)
    }
    // What is left out is not empty, and a slash at the end does no harm to a reader.
    #expect(try dendro("get", "db").output == dendro("get", "db", "/").output)
    #expect(try dendro("get", "db", "/users/").status == 0)
  }

  @Test(
    "a line of the shell does not write to a PATH with an empty part",
    arguments: [
      "remove '' --force", "remove users/ --force", "remove /users//name --force", "set '' 1",
      "get ''", "ls ''", "cd ''",
    ])
  func emptyPathInShell(line: String) throws {
    try dendro("set", "db", "/users", #"{"name":"Ada"}"#)
    for lines in [line, "cd /users\n\(line)"] {
      let outcome = try dendro.run(["shell", "db"], input: lines)
      #expect(outcome.status == 64, "\(lines): \(outcome.errors)")
      #expect(outcome.errors.contains("/ is the root"), "\(lines): \(outcome.errors)")
    }
    #expect(try dendro("get", "db", "/users/name", "--raw").output == "Ada\n")
  }

  @Test("nor is one taken for a key of an update")
  func emptyKey() throws {
    try dendro("set", "db", "/users", #"{"name":"Ada"}"#)
    for key in ["", "/", "//"] {
      let outcome = try dendro("update", "db", "/users", "{\"\(key)\":1}")
      #expect(outcome.status == 65, "\(key)")
    }
    #expect(try dendro("update", "db", "/users", #"{".priority":1,"a/b":2}"#).status == 0)
    #expect(try dendro("get", "db", "/users/name", "--raw").output == "Ada\n")
  }

  static let badInputs: [([String], String)] = [
    (["set", "db", "/a", "hello"], "--string"),
    (["set", "db", "/a", "{\"x\":{\"y#\":1}}"], "byte 6"),
    (["set", "db", "/a.b", "1"], "the path '/a.b'"),
    (["set", "db", "/a/.priority", "true"], "a .priority is a number, a string or null"),
    (["set", "db", "/a/.priority", "{\"b\":1}"], "a .priority is a number, a string or null"),
    (["set", "db", String(repeating: "/a", count: 33), "1"], "32 levels"),
    (["set", "db", String(repeating: "/a", count: 31), "[[1]]"], "32 levels"),
    (["update", "db", "/", "[1]"], "an update is an object"),
    (["update", "db", "/", "{\"a\":1,\"a/b\":2}"], "a/b"),
    (["push", "db", "/list", "null"], "null makes no child"),
    (["increment", "db", "/n", "much"], "DELTA is a number"),
    (["increment", "db", "/n/.priority", "1"], "not incremented"),
  ]

  @Test("bad data is an error, with exit code 65, and nothing is written", arguments: badInputs)
  func badInput(words: [String], message: String) throws {
    let outcome = try dendro.run(words)
    #expect(outcome.status == 65)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.contains(message), "\(outcome.errors)")
    #expect(try dendro("get", "db").status == 1)
  }

  @Test("the last days of months are taken", arguments: ["2024-02-29", "2000-02-29", "2026-12-31"])
  func lastDays(date: String) throws {
    try dendro("set", "db", "/x", "1")
    #expect(try dendro("log", "db", "--until", "\(date)T00:00", "--since", date).status == 1)
  }

  /// No address space has room for a thread's stack then.
  static let noThreads = "ulimit -s 214748364800"

  /// Whether the tool starts under it: one that was built for a sanitizer does not.
  static func isTaken(_ limit: String) throws -> Bool {
    try Tool(folder: try Folder())
      .run(["-c", "\(limit) && exec \"$0\" help", Tool.path], executable: "/bin/sh").status == 0
  }

  @Test(
    "if the system makes no thread, opening is an error",
    .enabled("a limit of the stack this high is not taken here") { try isTaken(noThreads) })
  func noThread() throws {
    let outcome = try dendro.run(
      ["-c", "\(Self.noThreads); exec \"$0\" set db /a 1", Tool.path], executable: "/bin/sh")
    #expect(outcome.status == 74 && !outcome.wasSignalled, "\(outcome.status)")
    #expect(outcome.errors.contains("start a thread"), "\(outcome.errors)")
    #expect(try dendro("set", "db", "/a", "1").status == 0)
  }

  /// `#` stands for an enormous word.
  static let enormous: [[String]] = [
    ["#"], ["#", "db"], ["--#"], ["help", "#"], ["get", "db", "--#"], ["get", "db", "-#"],
    ["get", "db", "/", "#"], ["get", "db", "--color", "#"], ["log", "db", "--last", "#"],
    ["log", "db", "--since=#"], ["get", "db", "#"], ["get", "db", "#/a.b"],
    ["set", "db", "/a", "1", "--durability", "#"], ["increment", "db", "/n", "#"],
    ["set", "db", "/a", "#"],
  ]

  @Test("an enormous word is not repeated whole", arguments: enormous)
  func enormousWords(words: [String]) throws {
    try dendro("set", "db", "/x", "1")
    let word = String(repeating: "ä", count: 40_000)
    let outcome = try dendro.run(words.map { $0.replacingOccurrences(of: "#", with: word) })
    #expect(outcome.status == 64 || outcome.status == 65)
    #expect(outcome.errors.count < 500, "\(outcome.errors.prefix(1000))")
    #expect(!outcome.errors.contains(word.prefix(81)))
  }

  @Test("a terminal gets nothing to obey: from names of files, words, keys or values")
  func terminalControls() throws {
    let value = "\u{9B}31mred\u{7F}\u{202E}drow\u{2066}"
    try dendro("set", "db", "/\u{202E}key", value, "--string")
    try dendro.folder.write("", to: "db/evil\u{1B}[31mname")
    let isObeyed: (Character) -> Bool = {
      $0.unicodeScalars.contains { scalar in
        scalar.value < 0x20 && scalar != "\n" && scalar != "\r"
          || "\u{7F}\u{9B}\u{1B}\u{202E}\u{2066}".unicodeScalars.contains(scalar)
      }
    }
    for words in [
      ["info", "db"], ["log", "db"], ["blame", "db"], ["diff", "db", "--from", "0"],
      ["history", "db"], ["dump", "db", "1"], ["get", "db"], ["get", "db", "--compact"],
      ["get", "db", "--order-by", "key"], ["export", "db"], ["get", "db", "/\u{1B}[31mx"],
      ["get", "\u{1B}[31mx"],
    ] {
      let outcome = try PseudoTerminal(columns: 80).run(
        dendro, words + ["--color", "never"], withOutput: true)
      // But for the line of its progress, which it wipes.
      let shown = outcome.errors.replacing("\u{1B}[K", with: "")
      #expect(!shown.contains(where: isObeyed), "\(words): \(shown)")
      #expect(!shown.isEmpty)
    }
    // JSON has the same value, and elsewhere it is as ever.
    let shown = try PseudoTerminal(columns: 80).run(
      dendro, ["get", "db", "/\u{202E}key", "--color", "never"], withOutput: true)
    #expect(shown.errors == #""\u009b31mred\u007f\u202edrow\u2066""# + "\r\n")
    #expect(try dendro("get", "db", "/\u{202E}key").output == "\"\(value)\"\n")
  }

  @Test("what is not UTF-8 is refused, not mended", arguments: ["get db", "get db /", "", "get"])
  func invalidText(before: String) throws {
    try dendro("set", "db", "/\u{FFFD}", "1")
    let outcome = try dendro.run(
      ["-c", "exec \"$0\" \(before) \"$(printf 'a\\377')\"", Tool.path], executable: "/bin/sh")
    #expect(outcome.status == 64)
    #expect(outcome.output.isEmpty)
    let number = before.split(separator: " ").count + 1
    #expect(outcome.errors.contains("argument \(number) is not UTF-8"), "\(outcome.errors)")
  }

  @Test(
    "a database that is not there",
    arguments: [
      "get", "export", "log", "info", "verify", "watch", "checkpoint",
    ])
  func missing(verb: String) throws {
    let outcome = try dendro.run([verb, "nowhere"])
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains("nowhere"))
    #expect(try dendro.folder.names(in: ".").allSatisfy { $0 != "nowhere" })
  }

  @Test("colour only if it is asked for or can be seen")
  func color() throws {
    try dendro("set", "db", "/x", "1")
    let escape = "\u{1B}["
    #expect(try !dendro("log", "db").output.contains(escape))
    #expect(try dendro("log", "db", "--color", "always").output.contains(escape))
    #expect(try !dendro("log", "db", "--color=never").output.contains(escape))
    #expect(
      try dendro("log", "db", "--color=always", environment: ["NO_COLOR": "1"]).output
        .contains(escape))
  }

  @Test("words that look like options")
  func dashes() throws {
    #expect(try dendro("increment", "db", "/n", "-5").output == "-5\n")
    #expect(try dendro("set", "db", "/s", "--string", "--", "--json").status == 0)
    #expect(try dendro("get", "db", "/s", "--raw").output == "--json\n")
  }
}
