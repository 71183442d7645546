import Foundation
import Testing

@Suite("dendro: reading and writing")
struct VerbTests {
  private let dendro: Tool
  init() throws { dendro = Tool(folder: try Folder()) }

  private func export(_ path: String = "/") throws -> String {
    try dendro("export", "db", path).output.trimmingCharacters(in: .newlines)
  }

  @Test("set and get")
  func setAndGet() throws {
    let first = try dendro("set", "db", "/users/ada", #"{"name":"Ada","age":36}"#)
    #expect(first.status == 0)
    #expect(first.output.isEmpty)
    #expect(first.errors.hasSuffix("\nwrite 1\n"))
    #expect(
      try dendro("get", "db", "/users").output == """
        {
          "ada": {
            "age": 36,
            "name": "Ada"
          }
        }

        """)
    #expect(try dendro("get", "db", "/users/ada/name").output == "\"Ada\"\n")
    #expect(try dendro("get", "db", "/users/ada/name", "--raw").output == "Ada\n")
    #expect(try dendro("get", "db", "users", "--shallow", "-c").output == "{\"ada\":true}\n")

    let missing = try dendro("get", "db", "/missing")
    #expect(missing.status == 1)
    #expect(missing.output == "null\n")
    #expect(missing.errors.isEmpty)

    let object = try dendro("get", "db", "/users/ada/age", "--json").object
    #expect(object["lsn"] as? Int == 1)
    #expect(object["path"] as? String == "/users/ada/age")
    #expect(object["exists"] as? Bool == true)
    #expect(object["value"] as? Int == 36)

    let same = try dendro("set", "db", "/users/ada/age", "36.0", "--json")
    #expect(same.output == #"{"lsn":null,"changed":false}"# + "\n")
    #expect(try dendro("set", "db", "/users", "null").status == 0)
    #expect(try dendro("get", "db").status == 1)
  }

  @Test("priorities")
  func priorities() throws {
    try dendro("set", "db", "/a", #"{"b":{".value":1,".priority":"p"}}"#)
    #expect(try dendro("get", "db", "/a/b/.priority").output == "\"p\"\n")
    #expect(try dendro("get", "db", "/a", "-c").output == "{\"b\":1}\n")
    #expect(
      try dendro("get", "db", "/a", "-c", "-e").output == #"{"b":{".value":1,".priority":"p"}}"#
        + "\n")
    #expect(try dendro("set", "db", "/a/.priority", "7").status == 0)
    #expect(try export() == #"{"a":{"b":{".value":1,".priority":"p"},".priority":7}}"#)
    #expect(try dendro("remove", "db", "/a/b/.priority").status == 0)
    #expect(try export() == #"{"a":{"b":1,".priority":7}}"#)
    #expect(try dendro("set", "db", "/none/.priority", "7").status == 1)
  }

  @Test("a value from standard input")
  func standardInput() throws {
    #expect(try dendro("set", "db", "/a", "-", input: "[1, 2,\n 3]\n").status == 0)
    #expect(try export() == #"{"a":[1,2,3]}"#)
    let bad = try dendro("set", "db", "/a", "-", input: "[1,\n x]")
    #expect(bad.status == 65)
    #expect(bad.errors.contains("line 2, column 2 (byte 5)"))
  }

  @Test("update changes several places or none")
  func update() throws {
    try dendro("set", "db", "/", #"{"a":{"x":1,"y":2},"b":3}"#)
    #expect(
      try dendro("update", "db", "/a", #"{"x":null,"z/w":[1],"y/.priority":5,"z/.priority":1}"#)
        .status == 0)
    #expect(
      try export() == #"{"a":{"y":{".value":2,".priority":5},"z":{"w":[1],".priority":1}},"b":3}"#)
    #expect(try dendro("update", "db", "/", #"{"b":4,"c":{"d.e":1}}"#).status == 65)
    #expect(try export("/b") == "3")
    #expect(try dendro("update", "db", "/", "{}").errors == "nothing changed\n")
  }

  @Test("push prints keys that ascend")
  func push() throws {
    var keys: [String] = []
    for index in 0..<3 {
      let outcome = try dendro("push", "db", "/list", "\(index)")
      #expect(outcome.status == 0)
      keys.append(String(outcome.lines[0]))
    }
    #expect(keys.allSatisfy { $0.utf8.count == 20 })
    #expect(keys == keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) })
    #expect(try dendro("get", "db", "/list/\(keys[1])").output == "1\n")
    let object = try dendro("push", "db", "/list", "text", "--string", "--json").object
    #expect((object["key"] as? String)?.count == 20)
  }

  @Test("a write whose outcome cannot be printed says that it was made")
  func unprinted() throws {
    let outcome = try dendro.run(
      ["-c", "exec \"$0\" set db /a 1 --json > /dev/full", Tool.path], executable: "/bin/sh")
    #expect(outcome.status == 74)
    #expect(outcome.errors.contains("write 1 was made all the same"), "\(outcome.errors)")
    #expect(try dendro("get", "db", "/a").output == "1\n")
  }

  @Test("no file of a database takes the place of a standard descriptor that is closed")
  func closedDescriptors() throws {
    for (number, closed) in ["2>&-", "0<&- 1>&- 2>&-", "1>&-"].enumerated() {
      let outcome = try dendro.run(
        ["-c", "exec \"$0\" set db /a \(number) \(closed)", Tool.path], executable: "/bin/sh")
      #expect(outcome.status == 0, "\(closed)")
    }
    let outcome = try dendro.run(
      ["-c", "exec \"$0\" get db / 1>&-", Tool.path], executable: "/bin/sh")
    #expect(outcome.status == 74, "\(outcome.errors)")
    #expect(try dendro("verify", "db").status == 0)
  }

  @Test("increment prints the sum")
  func increment() throws {
    #expect(try dendro("increment", "db", "/n").output == "1\n")
    #expect(try dendro("increment", "db", "/n", "41").output == "42\n")
    #expect(try dendro("increment", "db", "/n", "-0.5").output == "41.5\n")
    try dendro("set", "db", "/n", "9223372036854775807")
    #expect(try dendro("increment", "db", "/n").output == "9223372036854775808\n")
    #expect(try dendro("increment", "db", "/m", "1", "--json").object["lsn"] as? Int == 6)
  }

  @Test("set, update, push and the shell take server values, which an imported file cannot hold")
  func serverValues() throws {
    let time = #"{".sv":"timestamp"}"#
    let more = #"{".sv":{"increment":2}}"#
    #expect(try dendro("set", "db", "/time", time).status == 0)
    let now = try #require(Double(try export("/time")))
    #expect(now > 1.6e12, "milliseconds since 1970")
    for _ in 0..<2 { try dendro("set", "db", "/n", more) }
    #expect(try export("/n") == "4")
    #expect(try dendro("log", "db", "--last", "1", "--json").output.contains(#""delta":2"#))
    try dendro("set", "db", "/", #"{"a":{"n":\#(more),"t":\#(time)},"n":\#(more)}"#)
    #expect(try export("/n") == "6" && export("/a/n") == "2")
    #expect(try #require(Double(try export("/a/t"))) >= now)
    #expect(try dendro("set", "db", "/a/.priority", time).status == 0)
    #expect(try #require(Double(try dendro("get", "db", "/a/.priority").lines[0])) >= now)
    let update = try dendro(
      "update", "db", "/", #"{"n":\#(more),"a/n":\#(more),"n/.priority":\#(time)}"#)
    #expect(update.status == 65, "a priority of what is set: \(update.errors)")
    try dendro("update", "db", "/", #"{"n":\#(more),"a/n":\#(more),"a/.priority":\#(more)}"#)
    #expect(try export("/n") == "8" && export("/a/n") == "4")
    let key = try #require(dendro("push", "db", "/list", #"{"at":\#(time)}"#).lines.first)
    #expect(try #require(Double(try export("/list/\(key)/at"))) >= now)
    let shell = try dendro("shell", "db", input: "set n '\(more)'\nget n\n")
    #expect(shell.output == "10\n", "\(shell.errors)")

    for bad in [#"{".sv":"now"}"#, #"{".sv":{"increment":"1"}}"#] {
      let outcome = try dendro("set", "db", "/n", bad)
      #expect(outcome.status == 65 && outcome.errors.contains("a .sv is"), "\(outcome.errors)")
    }
    #expect(try dendro("set", "db", "/n", #"{".sv":"timestamp","a":1}"#).status == 65)
    let file = try dendro("import", "db", "/file", "-", input: time)
    #expect(file.status == 65)
    #expect(file.errors.contains("a file cannot hold server values (.sv)"), "\(file.errors)")
    #expect(try export("/n") == "10" && export("/file") == "null")
  }

  static let notNumbers = [
    (#"{"a":{"b":1},"c":2}"#, "2 leaves"), (#""text""#, #"the string "text""#), ("true", "true"),
  ]

  @Test("increment replaces what is no number only if it is asked to", arguments: notNumbers)
  func incrementReplaces(value: String, shown: String) throws {
    try dendro("set", "db", "/n", value)
    let refused = try dendro("increment", "db", "/n", "5")
    #expect(refused.status == 1)
    #expect(refused.output.isEmpty)
    #expect(refused.errors.contains("not a number"), "\(refused.errors)")
    #expect(refused.errors.contains(shown), "\(refused.errors)")
    #expect(refused.errors.contains("--replace"), "\(refused.errors)")
    #expect(try export() == "{\"n\":\(value)}")

    let words = ["increment", "db", "/n", "5"]
    let no = try PseudoTerminal(columns: 80).run(dendro, words, typing: "n\n")
    #expect(no.status == 1)
    #expect(no.errors.contains(shown) && no.errors.contains("[y/N]"), "\(no.errors)")
    #expect(try export() == "{\"n\":\(value)}")
    #expect(try PseudoTerminal(columns: 80).run(dendro, words, typing: "y\n").output == "5\n")
    try dendro("set", "db", "/n", value)
    #expect(try dendro("increment", "db", "/n", "5", "--replace").output == "5\n")
    #expect(try dendro("increment", "db", "/n").output == "6\n")
  }

  @Test("the whole tree, too, is replaced only if increment is asked to")
  func incrementRoot() throws {
    try dendro("set", "db", "/n", "1")
    #expect(try dendro("increment", "db", "/").status == 1)
    #expect(try export() == #"{"n":1}"#)
  }

  @Test("remove asks before it removes the whole tree")
  func remove() throws {
    try dendro("set", "db", "/", #"{"a":1,"b":2}"#)
    #expect(try dendro("remove", "db", "/a", "--dry-run").output.contains("1 leaf at /a"))
    #expect(try export() == #"{"a":1,"b":2}"#)
    #expect(try dendro("remove", "db", "/a").status == 0)
    #expect(try dendro("remove", "db", "/a").status == 1)
    let refused = try dendro("remove", "db", "/")
    #expect(refused.status == 64)
    #expect(refused.errors.contains("--force"))
    let emptied = try dendro("set", "db", "/", "null")
    #expect(emptied.status == 64 && emptied.errors.contains("--force"))
    #expect(try export() == #"{"b":2}"#)
    #expect(try dendro("remove", "db", "/", "--force").status == 0)
    #expect(try dendro("get", "db").status == 1)
    #expect(try dendro("remove", "nowhere", "/a").status == 1)
  }

  @Test("durability levels are taken", arguments: ["every-commit", "none", "interval:50"])
  func durability(level: String) throws {
    #expect(try dendro("set", "db", "/a", "1", "--durability", level).status == 0)
    #expect(try export() == #"{"a":1}"#)
  }

  @Test("backup is a database of its own, and of one moment")
  func backup() throws {
    try dendro("set", "db", "/a", "[1,2,3]")
    #expect(try dendro("checkpoint", "db").status == 0)
    try dendro("set", "db", "/b", "2")
    let outcome = try dendro("backup", "db", "copy", "--json")
    #expect(outcome.status == 0)
    #expect(outcome.object["leaves"] as? Int == 4)
    #expect(try dendro("export", "copy").output == dendro("export", "db").output)
    #expect(try dendro("verify", "copy").status == 0)
    try dendro("set", "copy", "/c", "3")
    #expect(try dendro("get", "db", "/c").status == 1)
    #expect(try dendro("backup", "db", "copy").status == 1)
  }
}
