import Foundation
import Testing

@Suite("dendro: get with a query")
struct GetQueryTests {
  private let dendro: Tool
  init() throws {
    dendro = Tool(folder: try Folder())
    try dendro(
      "set", "db", "/posts",
      #"{"a":{"stars":5},"b":{"stars":1},"c":{"stars":9,"title":"T"},"d":{"title":"U"}}"#)
    try dendro(
      "set", "db", "/list", #"{"1":"x","2":true,"10":3,"a":{".value":2,".priority":7},"b":{"c":1}}"#
    )
  }

  @Test(
    "picks children and prints them in order",
    arguments: [
      (
        "/posts --order-by child:stars --limit-to-last 2 -c",
        #"{"a":{"stars":5},"c":{"stars":9,"title":"T"}}"#
      ),
      ("/posts --order-by child:stars --limit-to-first 2 -s -c", #"{"d":true,"b":true}"#),
      ("/posts --order-by child:stars --start-at 1 --end-before 9 -s -c", #"{"b":true,"a":true}"#),
      ("/posts --order-by child:stars --start-after 1 --end-at 9 -s -c", #"{"a":true,"c":true}"#),
      ("/posts --order-by child:title --equal-to \"T\" -s -c", #"{"c":true}"#),
      ("/posts --order-by child:stars --equal-to null -c", #"{"d":{"title":"U"}}"#),
      ("/list --order-by value -c", #"{"2":true,"a":2,"10":3,"1":"x","b":{"c":1}}"#),
      ("/list --order-by value --equal-to true -c", #"{"2":true}"#),
      ("/list --order-by key --start-at 2 --end-at a -s -c", #"{"2":true,"10":true,"a":true}"#),
      ("/list --order-by key --start-after 10 -s -c", #"{"a":true,"b":true}"#),
      ("/list --order-by=key --limit-to-last=1 -c", #"{"b":{"c":1}}"#),
      ("/list --limit-to-last 1 -c -e", #"{"a":{".value":2,".priority":7}}"#),
      ("/list --order-by priority --start-at 7 -c", #"{"a":2}"#),
      ("/list --start-after null -s -c", #"{"a":true}"#),
      ("/list/a/.priority --order-by key -c", "7"),
      ("/list/a --order-by key -c", "2"),
    ])
  func picks(_ line: String, _ output: String) throws {
    let outcome = try dendro.run(["get", "db"] + line.split(separator: " ").map(String.init))
    #expect(outcome.output == output + "\n")
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
  }

  @Test("one member a line, deeper ones indented")
  func pretty() throws {
    #expect(
      try dendro("get", "db", "/posts", "--order-by", "child:stars", "--limit-to-last", "1").output
        == """
        {
          "c": {
            "stars": 9,
            "title": "T"
          }
        }

        """)
    #expect(
      try dendro("get", "db", "/posts", "--order-by", "key", "-s", "--limit-to-first", "2").output
        == "{\n  \"a\": true,\n  \"b\": true\n}\n")
    #expect(
      try dendro("get", "db", "/posts", "--order-by", "key", "-sc", "--limit-to-first", "2").output
        == "{\"a\":true,\"b\":true}\n")
    let object = try dendro(
      "get", "db", "/posts", "--order-by", "child:stars", "--limit-to-first", "1", "--json"
    ).object
    #expect(object["exists"] as? Bool == true)
    #expect((object["value"] as? [String: Any])?.keys.first == "d")
  }

  @Test("nothing found")
  func nothing() throws {
    let outcome = try dendro("get", "db", "/list", "--order-by", "key", "--equal-to", "none")
    #expect(outcome.status == 1 && outcome.output == "null\n")
    #expect(try dendro("get", "db", "/list/a", "--limit-to-first", "1").status == 1)
    #expect(
      try dendro("get", "db", "/list", "--equal-to", "5", "--json").object["exists"] as? Bool
        == false)
  }

  @Test(
    "contradicting options are an error",
    arguments: [
      ("--order-by stars", "child:stars"),
      ("--order-by child:", "--order-by"),
      ("--order-by child:a.b", "--order-by"),
      ("--order-by child:$key", "a call of its own"),
      ("--start-at 1 --start-after 2", "one start at most"),
      ("--end-at 1 --equal-to 2", "one end at most"),
      ("--limit-to-first 0", "from 1 to 2147483647"),
      ("--limit-to-last 2147483648", "from 1 to 2147483647"),
      ("--limit-to-first 1 --limit-to-last 1", "another limit"),
      ("--start-at text", "strings have their quotes"),
      ("--start-at {}x", "strings have their quotes"),
      ("--equal-to [1]", "takes null, a boolean, a number or a string"),
      ("--equal-to true", "by priority"),
    ])
  func refused(_ line: String, _ message: String) throws {
    let outcome = try dendro.run(
      ["get", "db", "/posts"] + line.split(separator: " ").map(String.init))
    #expect(outcome.status == 64)
    #expect(outcome.errors.contains(message), "\(outcome.errors)")
    #expect(outcome.output.isEmpty)
  }
}
