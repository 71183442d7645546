import Foundation
import Testing

@Suite("dendro: apply, and waiting for the lock")
struct ApplyTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  @Test("the log of one database makes another one equal")
  func log() throws {
    try dendro("set", "db", "/users/ada", #"{"name":"Ada","list":[1,2,{"x":null,"y":[]}]}"#)
    try dendro("update", "db", "/", #"{"n":1,"users/bob":{".value":"Bob",".priority":2}}"#)
    try dendro("update", "db", "/users", #"{"ada/.priority":"p","bob":null,"c/d":1.5}"#)
    try dendro("increment", "db", "/n", "5")
    try dendro("remove", "db", "/users/c")
    try dendro("set", "db", "/n/.priority", "1")
    let log = try dendro("log", "db", "--json").output
    let outcome = try dendro("apply", "copy", "-", input: log)
    #expect(outcome.status == 0 && outcome.output == "applied 6 lines (6 writes, LSN 1 to 6)\n")
    #expect(outcome.errors.contains("made a new database"))
    #expect(try dendro("export", "copy").output == dendro("export", "db").output)
    let operations = try dendro("log", "copy", "--json").lines.map { line in
      (try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["operation"]
        as? String
    }
    #expect(operations == ["set", "update", "update", "increment", "remove", "priority"])
    try folder.write(log, to: "log.jsonl")
    for options in [["--atomic"], ["--chunk-size", "2"], ["--chunk-size", "100"]] {
      try? FileManager.default.removeItem(atPath: "\(folder.path)/copy")
      let json = try dendro.run(["apply", "copy", "log.jsonl", "--json"] + options).object
      #expect(json["lines"] as? Int == 6)
      #expect(json["writes"] as? Int == (options == ["--chunk-size", "2"] ? 3 : 1), "\(json)")
      #expect(try dendro("export", "copy").output == dendro("export", "db").output)
    }
  }

  static let badLines: [(String, Int32, String)] = [
    ("nonsense", 65, "this is no JSON object"), ("[1]", 65, "this is no JSON object"),
    ("{}", 65, "'operation' is missing"), (#"{"operation":"set"}"#, 65, "'path' is missing"),
    (#"{"operation":"set","path":"/a"}"#, 65, "'value' is missing"),
    (#"{"operation":"sett","path":"/a","value":1}"#, 65, "did you mean 'set'?"),
    (#"{"operation":"set","path":"/a.b","value":1}"#, 65, "the path '/a.b'"),
    (#"{"operation":"set","path":"a//b","value":1}"#, 65, "an empty part"),
    (#"{"operation":"remove","path":""}"#, 65, "PATH is empty"),
    (#"{"operation":"set","path":"/a","value":{"b#":1}}"#, 65, "forbidden"),
    (#"{"operation":"set","path":"/a","value":}"#, 65, "line 2"),
    (#"{"operation":"increment","path":"/a","delta":"x"}"#, 65, "'delta' is no number"),
    (#"{"operation":"update","path":"/a","entries":{}}"#, 65, "'entries' is no array"),
    (#"{"operation":"update","path":"/a","entries":[{"value":1}]}"#, 65, "no 'path'"),
    (
      #"{"operation":"update","path":"/","entries":[{"path":"a","value":1},{"path":"a/b","value":1}]}"#,
      65, "line 2"
    ), (#"{"operation":"set","path":"/a","value":1,"was":2}"#, 1, "not what it was"),
    (#"{"operation":"priority","path":"/first","priority":1,"was":2}"#, 1, "not what it was"),
    (#"{"operation":"priority","path":"/first","priority":true}"#, 65, "line 2"),
  ]

  @Test(
    "a bad line is named; what came before it stays, or nothing is written", arguments: badLines)
  func bad(line: String, status: Int32, message: String) throws {
    let text = #"{"operation":"set","path":"/first","value":1}"# + "\n" + line + "\n"
    let outcome = try dendro("apply", "db", "-", input: text)
    #expect(outcome.status == status, "\(outcome.errors)")
    #expect(outcome.errors.contains("line 2"))
    #expect(outcome.errors.contains(message), "\(outcome.errors)")
    #expect(outcome.errors.contains("before it 1 write, LSN 1"))
    #expect(try dendro("get", "db").output == "{\n  \"first\": 1\n}\n")
    let atomic = try dendro("apply", "other", "-", "--atomic", input: text)
    #expect(atomic.status == status && atomic.errors.contains("nothing was written"))
    #expect(try dendro("get", "other").output == "null\n")
  }

  @Test("was compares, also with nothing, and can be passed over")
  func compareAndSet() throws {
    let add = #"{"operation":"set","path":"/a","value":{"b":1},"was":null}"#
    #expect(try dendro("apply", "db", "-", input: add).status == 0)
    #expect(try dendro("apply", "db", "-", input: add).status == 1)
    #expect(try dendro("apply", "db", "-", "--ignore-was", input: add).status == 0)
    let chain = """
      {"operation":"set","path":"/a/b","value":2,"was":1}

      {"operation":"set","path":"/a/b","value":3,"was":2}
      """
    #expect(try dendro("apply", "db", "-", "--atomic", input: chain).status == 0)
    #expect(try dendro("get", "db", "/a/b").output == "3\n")
    let dry = try dendro("apply", "db", "-", "--dry-run", input: chain)
    #expect(dry.status == 1 && dry.errors.contains("line 1"))
    let fine = try dendro("apply", "new", "-", "--dry-run", input: add)
    #expect(fine.status == 0 && fine.output == "1 line can be done; nothing was written\n")
    #expect(try !folder.names(in: ".").contains("new"))
    #expect(try dendro("apply", "db", "-", "--atomic", "--chunk-size", "2").status == 64)
    #expect(try dendro("apply", "db", "missing.jsonl").status == 74)
  }

  @Test("--wait waits for another process")
  func waiting() throws {
    let writer = try WaitingImport(oneOfTwoLeavesWith: dendro)
    let refused = try dendro("set", "db", "/x", "1", "--wait", "0.05")
    #expect(refused.status == 75 && refused.errors.contains("--wait SECONDS"))
    #expect(try dendro("set", "db", "/x", "1", "--wait", "long").status == 64)
    let waiting = try dendro.start(["set", "db", "/x", "1", "--wait", "100"])
    try writer.finish("2}")
    #expect(try waiting.wait().status == 0)
    #expect(try dendro("get", "db", "/x").output == "1\n")
  }
}
