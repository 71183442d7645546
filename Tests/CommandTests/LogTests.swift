import DendroEngine
import DendroTree
import Foundation
import Testing

@Suite("dendro: what log shows, and how")
struct LogTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func fill() throws {
    try dendro("set", "db", "/users/ada", #"{"name":"Ada","age":36}"#)
    try dendro("set", "db", "/users/bob/name", "\"Bob\"")
    try dendro("update", "db", "/", #"{"posts/p1/title":"About Ada","n":1}"#)
    try dendro("increment", "db", "/n", "5")
    try dendro("set", "db", "/users/bob/.priority", "\"p\"")
    try dendro("remove", "db", "/users/bob/name")
    try dendro("set", "db", "/a*b", "1")
  }

  private func numbers(_ options: String..., db: String = "db") throws -> [Int] {
    try dendro.run(["log", db, "--json"] + options).lines.compactMap { line in
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return object?["lsn"] as? Int
    }
  }

  @Test("a pattern has wildcards for parts of keys and for keys")
  func patterns() throws {
    try fill()
    #expect(try numbers("--path", "/users/*/name") == [1, 2, 5, 6])
    #expect(try numbers("--path", "users/b*/name") == [2, 5, 6])
    #expect(try numbers("--path", "/users/a*a") == [1])
    #expect(try numbers("--path", "/*/p1") == [3, 4, 7])
    #expect(try numbers("--path", "/**/title") == [1, 2, 3, 4, 5, 6, 7])
    #expect(try numbers("--path", "/a*b") == [7])
    #expect(try numbers("--path", #"/a\*b"#) == [7])
    #expect(try numbers("--path", #"/u\*"#) == [])
    #expect(try numbers("-p", "/posts/*") == [3])
    #expect(try dendro("log", "db", "--path", "/a.b").status == 65)
  }

  @Test("--system shows what is kept in the second root, and nothing else does")
  func secondRoot() throws {
    let db = folder.path + "/db"
    let engine = try Engine.open(at: db)
    engine.submit(Draft(.set(try Path(parsing: "a"), Node(.integer(1)))), completion: nil)
    engine.submit(
      EncodedWrite(
        nil, system: EncodedWrite(.set(try Path(parsing: "kept/x"), Node(.bytes([0x12, 0xab])))),
        origin: WriteOrigin(client: [0x63, 0x31], number: 7)), completion: nil)
    engine.submit(
      EncodedWrite(
        EncodedWrite(.set(try Path(parsing: "b"), Node(.integer(2)))),
        system: EncodedWrite(.remove(try Path(parsing: "kept/x")))), completion: nil)
    try engine.close()
    // The first write to the second root comes behind one that changes nothing.
    #expect(try numbers() == [1, 4])
    #expect(try numbers("--system") == [3, 4])
    #expect(try numbers("--system", "--operation", "remove") == [4])
    #expect(try numbers("--system", "--path", "/kept/*") == [3, 4])
    #expect(try numbers("--system", "--path", "/b") == [])
    #expect(try numbers("--system", "--grep", "12ab") == [3])
    let lines = try dendro.run(["log", "db", "--system", "--json"]).lines
    #expect(
      lines.first?.contains(#""root":"system","client":"6331","clientNumber":7,"value":"12ab""#)
        == true)
    #expect(try dendro("log", "db", "--system", "--records").status == 64)
    #expect(try dendro("export", "db").object as? [String: Int] == ["a": 1, "b": 2])
    #expect(try dendro("verify", "db").status == 0)
    for full in [[], ["--full"]] {
      let info = try dendro.run(["info", "db", "--json"] + full).object
      #expect(info["secondRoot"] as? Bool == true)
      #expect(try dendro.run(["info", "db"] + full).output.contains("with the second root"))
    }
    let dump = try dendro("dump", "db", "3", "--json").object
    let write = try #require((dump["writes"] as? [[String: Any]])?.first { $0["lsn"] as? Int == 3 })
    #expect(write["client"] as? String == "6331" && write["clientNumber"] as? Int == 7)
    #expect((write["system"] as? [String: String])?["path"] == "/kept/x")
    #expect(try dendro("dump", "db", "3").output.contains("from client 6331, number 7"))
    #expect(try dendro("history", "db", "/kept").output.contains("kept/x") == false)
    let text = lines.joined(separator: "\n")
    try Data(text.utf8).write(to: URL(fileURLWithPath: folder.path + "/lines"))
    #expect(try dendro("apply", "db", "lines").status == 65)
  }

  @Test("operations and texts choose writes")
  func operationsAndText() throws {
    try fill()
    #expect(try numbers("--operation", "remove") == [6])
    #expect(try numbers("-o", "increment,priority") == [4, 5])
    #expect(try numbers("--grep", "Ada") == [1, 3])
    #expect(try numbers("--grep", "bob") == [2, 5, 6])
    #expect(try numbers("-g", #""age":36"#) == [1])
    #expect(try numbers("-g", "Ada", "-o", "update") == [3])
    let wrong = try dendro("log", "db", "--operation", "sett")
    #expect(wrong.status == 64 && wrong.errors.contains("did you mean 'set'?"))
    let none = try dendro("log", "db", "--grep", "absent")
    #expect(none.status == 1 && none.errors.contains("no such writes"))
  }

  @Test("the newest come first with --reverse, also across segments and checkpoints")
  func reverse() throws {
    for number in 1...30 {
      try dendro("set", "db", "/n\(number % 7)", "\(number)")
      if number % 8 == 0 { try dendro("checkpoint", "db") }
    }
    #expect(try numbers("--reverse") == Array((1...30).reversed()))
    #expect(try numbers("--reverse", "--last", "12") == Array((19...30).reversed()))
    #expect(try numbers("--last", "12") == Array(19...30))
    #expect(try numbers("--last", "3", "--path", "/n3") == [17, 24, 10].sorted())
    #expect(try numbers("--reverse", "--since", "5", "--until", "9") == [9, 8, 7, 6, 5])
    #expect(try numbers("--last", "2", "--until", "9") == [8, 9])
    #expect(try numbers("--last", "100").count == 30)
    for words in [
      ["--reverse", "--follow"], ["--until", "5", "--follow"], ["--stats", "--last", "1"],
      ["--records", "-g", "x"],
    ] {
      let refused = try dendro.run(["log", "db"] + words)
      #expect(refused.status == 64 && refused.errors.contains("cannot be given together"))
    }
  }

  @Test("many writes of one opening are read backwards in parts")
  func reverseParts() throws {
    // Its payloads are not compressible, so that there are several points to begin at.
    var text = "{"
    var state: UInt64 = 1
    for number in 0..<1500 {
      var value = ""
      while value.utf8.count < 2000 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        value += String(state >> 16, radix: 36)
      }
      text += (number > 0 ? "," : "") + "\"k\(number)\":\"\(value)\""
    }
    try dendro("import", "db", "/", "-", "--chunk-size", "1", input: text + "}")
    #expect(try dendro("log", "db", "--records", "--json").lines.count > 100)
    let forward = try numbers()
    #expect(forward.count == 1500)
    #expect(try numbers("--reverse") == forward.reversed())
    #expect(try numbers("--last", "700") == forward.suffix(700))
  }

  @Test("what is in front of the last segment is read neither by log --last nor by info")
  func lastSegmentOnly() throws {
    for number in 1...20 {
      try dendro("set", "db", "/n", "\(number)")
      if number == 8 || number == 12 { try dendro("checkpoint", "db") }
    }
    func outputs() throws -> [String] {
      try [
        ["log", "db", "--last", "5"], ["log", "db", "--reverse", "--last", "8"],
        ["log", "db", "--since", "13"], ["info", "db"], ["info", "db", "--json"],
      ].map { words in
        let outcome = try dendro.run(words)
        #expect(outcome.status == 0, "\(words) \(outcome.output)")
        return outcome.output
      }
    }
    let before = try outputs()
    // All but the headers of the other segments is overwritten.
    for name in try folder.names(in: "db").filter({ $0.hasSuffix(".log") }).dropLast() {
      let bytes = folder.bytes("db/\(name)")
      try folder.write(
        bytes.prefix(64) + Data(repeating: 0x55, count: bytes.count - 64), to: "db/\(name)")
    }
    #expect(try dendro("verify", "db").status == 2)
    #expect(try outputs() == before)
    #expect(try dendro("info", "db", "--full").status == 2)
  }

  @Test("statistics by operation and by the first key")
  func statistics() throws {
    try fill()
    let json = try dendro("log", "db", "--stats", "--json").object
    #expect(json["writes"] as? Int == 7 && json["lastLSN"] as? Int == 7)
    let operations = json["operations"] as? [[String: Any]] ?? []
    let counts = Dictionary(
      uniqueKeysWithValues: operations.map {
        ($0["operation"] as? String ?? "", $0["writes"] as? Int ?? 0)
      })
    #expect(counts == ["set": 3, "update": 1, "increment": 1, "priority": 1, "remove": 1])
    let paths = json["paths"] as? [[String: Any]] ?? []
    let byPath = Dictionary(
      uniqueKeysWithValues: paths.map { ($0["path"] as? String ?? "", $0["writes"] as? Int ?? 0) })
    #expect(byPath == ["/users": 4, "/": 1, "/n": 1, "/a*b": 1])
    for list in [operations, paths] {
      #expect(list.reduce(0) { $0 + ($1["rawBytes"] as? Int ?? 0) } == json["rawBytes"] as? Int)
    }
    #expect((json["storedBytes"] as? Int ?? 0) > (json["rawBytes"] as? Int ?? 0))
    let text = try dendro("log", "db", "--stats").output
    let rows = text.split(separator: "\n").map { line in
      line.split(separator: " ", omittingEmptySubsequences: true).prefix(2).joined(separator: " ")
    }
    #expect(rows[0].hasPrefix("writes 1"))
    #expect(rows.contains("OPERATION WRITES") && rows.contains("PATH WRITES"))
    #expect(rows.contains("/users 4") && rows.contains("total 7"))
    #expect(try dendro("log", "db", "--stats", "--path", "/nowhere").status == 1)
  }

  @Test("lines fit the terminal", arguments: [50, 80, 100, 130, 200])
  func columns(count: Int) throws {
    try dendro(
      "set", "db", "/users/ada/notes", "\"\(String(repeating: "long text ", count: 60))\"")
    try dendro("set", "db", "/" + String(repeating: "k", count: 300), "1")
    try dendro("set", "db", "/中文", "\"\(String(repeating: "漢字", count: 100))\"")
    try dendro("update", "db", "/", #"{"a/b":"\#(String(repeating: "x", count: 200))","c":2}"#)
    try dendro("set", "db", "/a", "\"\(String(repeating: "✅⭐🚀", count: 100))\"")
    // Paths that leave few columns for the value, or none.
    for length in 30...60 {
      try dendro("increment", "db", "/" + String(repeating: "n", count: length), "1234567")
    }
    for environment in [["COLUMNS": "\(count)"]] {
      let outcome = try dendro("log", "db", environment: environment)
      #expect(outcome.status == 0)
      for line in outcome.output.split(separator: "\n") {
        // The wide characters take two columns.
        let width = line.unicodeScalars.reduce(0) {
          $0 + ($1.value >= 0x2E80 || "✅⭐".unicodeScalars.contains($1) ? 2 : 1)
        }
        #expect(width <= count, "\(line)")
      }
      #expect(outcome.output.contains("SEGMENT:OFFSET") == (count >= 120))
      #expect(outcome.output.contains("TIME") == (count >= 60))
      if count >= 200 { #expect(outcome.output.contains("(2 places)")) }
    }
  }

  @Test("a value is shown in as few columns as there are")
  func narrowValues() throws {
    for length in 33...37 {
      try dendro("increment", "db", "/" + String(repeating: "n", count: length), "1")
    }
    let lines = try dendro("log", "db", environment: ["COLUMNS": "80"]).lines.dropFirst()
    #expect(
      lines.map { $0.split(separator: "n").last ?? "" } == [
        "  + 1", "  + 1", "  + 1", "  +…", "  …",
      ],
      "\(lines)")
  }

  @Test("a terminal's width is found")
  func terminalColumns() throws {
    try dendro("set", "db", "/a", "\"\(String(repeating: "long text ", count: 60))\"")
    let terminal = try PseudoTerminal(columns: 80)
    let outcome = try terminal.run(dendro, ["log", "db", "--color", "never"], withOutput: true)
    #expect(outcome.status == 0)
    for line in outcome.errors.split(separator: "\r\n") { #expect(line.count <= 80, "\(line)") }
    #expect(outcome.errors.contains("…"))
  }

  @Test("writes that are not known to be durable are marked")
  func durability() throws {
    // Its writer is alive and has not synchronized.
    let writer = try WaitingImport(oneOfTwoLeavesWith: dendro, ["--durability", "none"])
    let marked = try dendro("log", "db")
    #expect(marked.lines.last?.hasPrefix("       1* ") ?? false, "\(marked.output)")
    #expect(marked.errors.contains("* is not known to be durable yet"))
    #expect(try dendro("log", "db", "--json").object["durable"] as? Bool == false)
    try writer.finish("2}")
    writer.wait()
    let proven = try dendro("log", "db")
    #expect(proven.lines.last?.hasPrefix("       2  ") ?? false, "\(proven.output)")
    #expect(proven.errors.isEmpty)
  }

  @Test("times may have a space, an offset, be now, or so long ago")
  func times() throws {
    try fill()
    let all = [1, 2, 3, 4, 5, 6, 7]
    for since in [
      "10 minutes ago", "1 hour ago", "3 weeks ago", "2020-01-01 00:00", "2020-01-01T00:00+02:00",
      "2020-01-01 00:00:00.5 -0530", "2020-01-01T00:00Z",
    ] {
      #expect(try numbers("--since", since) == all, "\(since)")
      #expect(try numbers("--until", since) == [], "\(since)")
      #expect(try dendro("get", "db", "/n", "--at", since).output == "null\n", "\(since)")
    }
    #expect(try numbers("--until", "now") == all)
    #expect(try numbers("--since", "now") == [])
    #expect(try dendro("get", "db", "/n", "--at", "now").output == "6\n")
    for wrong in [
      "10 minutes", "ten minutes ago", "-1 days ago", "5 years ago", "2020-01-01 00:00+99:00",
      "2020-01-01 00:00+2", "2020-01-01  00:00", "2020-01-01T25:00", "99999999999 weeks ago",
    ] {
      let outcome = try dendro("log", "db", "--since", wrong)
      #expect(outcome.status == 64, "\(wrong)")
      #expect(outcome.errors.contains("times are UTC"), "\(outcome.errors)")
    }
    // The offset is that of the place: midnight there is before midnight in UTC.
    let east = try dendro("get", "db", "--at", "2100-01-01 00:00+02:00", "--json").object
    #expect(east["lsn"] as? Int == 7)
    for verb in ["log", "get", "export"] {
      #expect(try dendro(verb, "--help").output.contains("UTC"), "\(verb)")
    }
  }
}
