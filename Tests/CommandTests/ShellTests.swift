import Foundation
import Testing

@Suite("dendro: shell")
struct ShellTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func fill() throws {
    try dendro("set", "db", "/users", #"{"ada":{"name":"Ada","age":36},"bob":{"name":"Bob"}}"#)
    try dendro("set", "db", "/users/ada/age", "37")
  }

  @Test("ls and tree say that nothing is there, and take no option")
  func nothing() throws {
    try fill()
    for verb in ["ls", "tree"] {
      let outcome = try dendro("shell", "db", input: "cd users\n\(verb) nothing")
      #expect(outcome.status == 1 && outcome.output == "")
      #expect(outcome.errors.hasSuffix("there is nothing at /users/nothing\n"), "\(outcome.errors)")
      let option = try dendro("shell", "db", input: "\(verb) -l")
      #expect(option.status == 64 && option.errors.contains("takes no option"))
    }
    let help = try dendro("shell", "db", input: "help").output
    let lines = help.components(separatedBy: "\n")
    #expect(
      lines.contains { $0.hasPrefix("Verbs: ") } && lines.suffix(4).allSatisfy { $0.count < 80 })
  }

  @Test("a script moves, lists, reads, writes and travels in time")
  func script() throws {
    try fill()
    let outcome = try dendro(
      "shell", "db",
      input: """
        # comments and empty lines are passed over

        pwd
        ls
        cd users
        ls
        cd ada
        get age
        get ../bob/name --raw
        at 1
        get age
        at
        set age 40
        set "name" '"Ada L."'
        get --compact
        increment /count 2
        ls /count
        cd ..
        pwd
        tree / 2
        hash
        diff --from 2
        quit
        get nothing
        """)
    #expect(outcome.status == 1, "\(outcome.errors)")
    let hash = try dendro("hash", "db", "/users").output
    #expect(
      outcome.output == """
        /
        users/  2 children
        ada/  2 children
        bob/  1 child
        37
        Bob
        36
        {"age":40,"name":"Ada L."}
        2
        /count  2
        /users
        /
        ├── count  2
        └── users/  2 children
            ├── ada/  2 children
            └── bob/  1 child
        \(hash)~ /users/ada/age  37 → 40
        ~ /users/ada/name  "Ada" → "Ada L."

        """, "\(outcome.output)")
    #expect(outcome.errors.contains("as it was after write 1"))
    #expect(try dendro("log", "db", "--json").lines.count == 5)
  }

  @Test("an error ends a script with its code and its line")
  func errors() throws {
    try fill()
    let scripts: [(String, Int32, String)] = [
      ("pwd\nfrobnicate\npwd", 64, "line 2: there is no verb 'frobnicate'"),
      ("gte users", 64, "did you mean 'get'?"), ("get 'users", 64, "is not closed"),
      ("cd a b", 64, "one word too many"), ("cd a.b", 65, "the path"), ("at x", 64, "--at takes"),
      ("at 99", 1, "99"), ("tree / 0", 64, "N is"), ("set users", 64, "VALUE is missing"),
      ("shell", 64, "no verb"), ("get --shalow", 64, "did you mean --shallow?"),
      ("set /a nonsense", 65, "line 1"),
    ]
    for (script, status, message) in scripts {
      let outcome = try dendro("shell", "db", input: script)
      #expect(outcome.status == status, "\(script): \(outcome.errors)")
      #expect(outcome.errors.contains(message), "\(script): \(outcome.errors)")
    }
    #expect(try dendro("shell", "db", input: "get users/ada/age\nget nothing").status == 1)
    #expect(try dendro("shell", "db", input: "get nothing\nget users/ada/age").status == 0)
    let times = try dendro("shell", "db", input: "\\timing\npwd\n\\timing\npwd")
    #expect(times.errors.split(separator: "\n").filter { $0.hasPrefix("time: ") }.count == 1)
    #expect(try dendro("shell", "db", input: "help\nhelp get").output.contains("Usage: dendro get"))
    #expect(try dendro("shell", "nowhere", input: "ls").status == 1)
    #expect(try dendro("shell", "new", input: "set /a 1\nget /a").output == "1\n")
    #expect(try dendro("shell", "db", input: "purge --force\ninfo").status == 0)
  }

  @Test("what another process writes is seen by the next line")
  func refresh() throws {
    try fill()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["shell", "\(folder.path)/db"]
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    func ask(_ line: String) -> String {
      input.fileHandleForWriting.write(Data((line + "\n").utf8))
      var answer = ""
      while !answer.hasSuffix("\n") {
        let part = output.fileHandleForReading.availableData
        if part.isEmpty { break }
        answer += String(decoding: part, as: UTF8.self)
      }
      return answer
    }
    #expect(ask("get users/ada/age") == "37\n")
    try dendro("set", "db", "/users/ada/age", "50")
    #expect(ask("get users/ada/age") == "50\n")
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }

  @Test("in a terminal there are a prompt and completion")
  func terminal() throws {
    try fill()
    let outcome = try PseudoTerminal(columns: 80).run(
      dendro, ["shell", "db", "--color", "never"],
      typing: "cd us\t\nge\tada/na\t\nnonsense\nquit\n", withOutput: true)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.errors.contains("/users> "), "\(outcome.errors)")
    #expect(outcome.errors.contains("\"Ada\""), "\(outcome.errors)")
    #expect(outcome.errors.contains("there is no verb 'nonsense'"))
  }

  @Test("what is typed is UTF-8, also where the locale is another one")
  func characters() throws {
    try dendro("set", "db", "/", #"{"gre":1,"grüße":2}"#)
    let outcome = try PseudoTerminal(columns: 80).converse(
      dendro, ["shell", "db", "--color", "never"],
      [
        ("/> ", "set name \"Jürgen 😀\" --string\r"), ("/> ", "remove grüße\r"),
        ("/> ", "set ключ 1\r"), ("/> ", "get клю\t\r"), ("1\r\n/> ", "quit\r"),
      ])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(
      try dendro("get", "db", "--compact").output == #"{"gre":1,"name":"Jürgen 😀","ключ":1}"# + "\n"
    )
  }

  @Test("completion writes keys so that the shell reads them")
  func quotedCompletion() throws {
    try dendro(
      "set", "db", "/",
      #"{"it's":1,"a b":{"c d":2,"c\\e":3},"q\"r":4,"u=v":5,"twin's":6,"twins":7,"z":{"x y":8}}"#)
    let rows = [
      ("get it\t\r", "1"), ("get \"it\t\r", "1"), ("get 'it\t\r", "1"), ("get a\tc\t d\"\r", "2"),
      ("get 'a b/c \t\r", "2"), ("get q\t\r", "4"), ("get u=\t\r", "5"), ("get z/\t\r", "8"),
      ("get twi\t\\'s\r", "6"), ("get z/x\\ \t\r", "8"), ("get \"a b/c\\\\\t\r", "3"),
    ]
    let outcome = try PseudoTerminal(columns: 80).converse(
      dendro, ["shell", "db", "--color", "never"],
      [("/> ", rows[0].0)]
        + zip(rows, rows.dropFirst()).map { ("\r\n\($0.1)\r\n/> ", $1.0) }
        + [("\r\n3\r\n/> ", "quit\r")])
    #expect(outcome.status == 0, "\(outcome.errors)")
  }

  @Test("Ctrl-D and Ctrl-C answer one question of the shell with no")
  func questions() throws {
    try dendro("set", "db", "/", #"{"a":{"b":1},"c":{"d":1}}"#)
    // Outside of the shell it ends the verb as it ends others.
    let plain = try PseudoTerminal(columns: 80).converse(
      dendro, ["remove", "db", "/"], [("[y/N] ", "\u{3}")])
    #expect(plain.status == 130 && !plain.wasSignalled, "\(plain.errors)")
    let outcome = try PseudoTerminal(columns: 80).converse(
      dendro, ["shell", "db", "--color", "never"],
      [
        ("/> ", "remove /\r"), ("[y/N] ", "\u{4}"), ("/> ", "remove /\r"), ("[y/N] ", "\u{3}"),
        ("/> ", "get a/b\r"), ("1\r\n/> ", "remove /\r"), ("[y/N] ", "y\r"), ("/> ", "quit\r"),
      ])
    #expect(outcome.status == 0 && !outcome.wasSignalled, "\(outcome.errors)")
    #expect(try dendro("get", "db").status == 1)
  }

  @Test("keys that childByAutoId() makes begin with a dash, and are no options")
  func automaticKeys() throws {
    try dendro("set", "db", "/posts/-P74rPLwRIuitNN7jAzc", #"{"title":"Notes"}"#)
    let outcome = try dendro(
      "shell", "db",
      input: """
        cd posts
        get -P74rPLwRIuitNN7jAzc/title
        ls -P74rPLwRIuitNN7jAzc
        set -P74rPLwRIuitNN7jAzc/stars 3
        get --compact -P74rPLwRIuitNN7jAzc
        cd -P74rPLwRIuitNN7jAzc
        pwd
        """)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(
      outcome.lines == [
        #""Notes""#, #"title  "Notes""#, #"{"stars":3,"title":"Notes"}"#,
        "/posts/-P74rPLwRIuitNN7jAzc",
      ])
    let missing = try dendro("shell", "db", input: "cd posts\ncd -missing")
    #expect(missing.status == 64 && missing.errors.contains("./-"), "\(missing.errors)")
    let terminal = try PseudoTerminal(columns: 80).run(
      dendro, ["shell", "db", "--color", "never"],
      typing: "cd posts\nget -P\ttitle\nquit\n", withOutput: true)
    #expect(terminal.errors.contains("\"Notes\""), "\(terminal.errors)")
  }
}
