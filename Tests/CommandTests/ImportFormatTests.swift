import DendroCommandLine
import DendroPlatform
import Foundation
import Testing

@Suite("dendro: import of lines and CSV, escaped keys, going on")
struct ImportFormatTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func export(_ path: String = "/") throws -> String {
    try dendro("export", "db", path).output.trimmingCharacters(in: .newlines)
  }

  @Test("lines of JSON become children, by their numbers or by a field")
  func lines() throws {
    try folder.write(
      "{\"id\":\"b\",\"n\":1}\n\n{\"id\":7,\"n\":[2,3]}\r\n{\"id\":\"a\"}", to: "in.jsonl")
    let outcome = try dendro("import", "db", "/list", "in.jsonl", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.object["leaves"] as? Int == 6)
    #expect(try export("/list") == #"[{"id":"b","n":1},{"id":7,"n":[2,3]},{"id":"a"}]"#)
    try dendro(
      "import", "db", "/by", "-", "--format", "lines", "--key", "id", "--atomic",
      input: folder.read("in.jsonl"))
    #expect(try export("/by") == #"{"7":{"id":7,"n":[2,3]},"a":{"id":"a"},"b":{"id":"b","n":1}}"#)
    #expect(try dendro("import", "db", "/new", "in.jsonl", "--dry-run").output.contains("6 leaves"))
  }

  static let tableCases: [(text: String, options: [String], result: String)] = [
    (
      "name,n,ok\nOslo,1,true\nBonn,-2.5e3,false\n", [],
      #"[{"n":1,"name":"Oslo","ok":true},{"n":-2500,"name":"Bonn","ok":false}]"#
    ),
    ("\u{FEFF}a,b\r\n1,\r\n,\"\"\r\n", [], #"[{"a":1},{"b":""}]"#),
    (
      "a,b\n\"x,\"\"y\"\"\nz\",2\n\n007,18446744073709551616", [],
      #"[{"a":"x,\"y\"\nz","b":2},{"a":"007","b":"18446744073709551616"}]"#
    ),
    ("a,b\n1,\"2\"\n", ["--strings"], #"[{"a":"1","b":"2"}]"#),
    ("a,b\n1,\"2\"\n", [], #"[{"a":1,"b":"2"}]"#),
    (
      "a,b\nx,2\ny,3\nz,4\n", ["--key", "a"],
      #"{"x":{"a":"x","b":2},"y":{"a":"y","b":3},"z":{"a":"z","b":4}}"#
    ),
    ("a.b,%\n1,2\n", ["--escape-keys"], #"[{"%25":2,"a%2Eb":1}]"#),
    ("k,v\na/b.c,1\n", ["--key", "k", "--escape-keys"], #"{"a%2Fb%2Ec":{"k":"a/b.c","v":1}}"#),
  ]

  @Test("a table becomes a child for each line", arguments: tableCases)
  func tables(text: String, options: [String], result: String) throws {
    try folder.write(text, to: "in.csv")
    for way in [["in.csv"], ["in.csv", "--atomic"], ["in.csv", "--chunk-size", "1"]] {
      let outcome = try dendro.run(["import", "db", "/t", "--force", "--replace"] + way + options)
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(try export("/t") == result)
    }
  }

  @Test("tabs separate the fields of a .tsv file")
  func tabs() throws {
    try folder.write("a\tb\n1,5\t\"x\"\n", to: "in.tsv")
    try dendro("import", "db", "/", "in.tsv")
    #expect(try export() == #"[{"a":"1,5","b":"x"}]"#)
  }

  static let badCases: [(name: String, text: String, options: [String], problem: String)] = [
    ("in.jsonl", "{\"a\":1}\n{\"a\":\n", [], "in.jsonl, line 2: "),
    ("in.jsonl", "{\"a\":1}\n{\"a.b\":1}\n", [], "in.jsonl, line 2: "),
    ("in.jsonl", "{\"a\":1}\n", ["--key", "id"], "in.jsonl, line 1: 'id' is missing"),
    ("in.jsonl", "{\"id\":1.5}\n", ["--key", "id"], "line 1: 'id' is no key"),
    ("in.jsonl", "{\"id\":\"a/b\"}\n", ["--key", "id"], "line 1: "),
    ("in.csv", "a,b\n1,2\n1,2,3\n", [], "in.csv, line 3: 3 fields, where the first line has 2"),
    ("in.csv", "a,a\n", [], "line 1: the name 'a' comes twice"),
    ("in.csv", "a,\n", [], "line 1: "), ("in.csv", "a,b.c\n", [], "line 1: "),
    ("in.csv", "a\n\"x\n\n", [], "a quotation mark is not closed"),
    ("in.csv", "a\n\"x\"y\n", [], "line 2: a character behind a quotation mark"),
    ("in.csv", "a\n1\n", ["--key", "k"], "line 1: there is no field 'k'"),
    (
      "in.csv", "k,a\nx,1\n\ny,2\nx,3\n", ["--key", "k"],
      "in.csv, line 5: the key 'x' comes twice, first in line 2"
    ),
    (
      "in.csv", "k\n1\n\"1\"\n", ["--key", "k"], "line 3: the key '1' comes twice, first in line 2"
    ),
    (
      "in.jsonl", "{\"id\":1}\n{\"id\":\"1\"}\n", ["--key", "id"],
      "in.jsonl, line 2: the key '1' comes twice, first in line 1"
    ),
  ]

  @Test("what cannot be read is refused with its line", arguments: badCases)
  func bad(name: String, text: String, options: [String], problem: String) throws {
    try folder.write(text, to: name)
    for way in [[], ["--dry-run"], ["--atomic"]] {
      let outcome = try dendro.run(["import", "db", "/", name] + options + way)
      #expect(outcome.status == 65, "\(outcome.errors)")
      #expect(outcome.errors.contains(problem), "\(outcome.errors)")
    }
    let replacing = try dendro.run(["import", "db", "/", name, "--replace"] + options)
    #expect(replacing.errors.contains("nothing was written"), "\(replacing.errors)")
  }

  @Test("of records with the same key the last one stays if that is asked for")
  func lastWins() throws {
    let text = "k,a\nx,1\ny,2\nx,3\n"
    try folder.write(text, to: "in.csv")
    let refused = try dendro("import", "db", "/", "in.csv", "--key", "k")
    #expect(refused.errors.contains("--last-wins"), "\(refused.errors)")
    for chunk in ["1", "1000"] {
      let words = ["--key", "k", "--last-wins", "--chunk-size", chunk]
      #expect(try dendro.run(["import", "db", "/t\(chunk)", "in.csv"] + words).status == 0)
      #expect(try export("/t\(chunk)") == #"{"x":{"a":3,"k":"x"},"y":{"a":2,"k":"y"}}"#)
    }
  }

  @Test("keys of JSON that are not allowed are refused, or escaped")
  func escaped() throws {
    try folder.write(
      #"{"a.b":{"c/d":1,"[x]":{".value":2,".priority":3}},"100%":true}"#, to: "in.json")
    let refused = try dendro("import", "db", "/", "in.json")
    #expect(refused.status == 65 && refused.errors.contains("forbidden"), "\(refused.errors)")
    #expect(try dendro("import", "db", "/", "in.json", "--escape-keys").status == 0)
    #expect(
      try export()
        == #"{"100%25":true,"a%2Eb":{"%5Bx%5D":{".value":2,".priority":3},"c%2Fd":1}}"#)
  }

  @Test(
    "misuse",
    arguments: [
      (["--format", "xml"], "--format takes json, lines, csv, tsv"),
      (["--key", "id"], "--key is for lines of JSON and for CSV"),
      (["--strings"], "--strings is for CSV"),
      (["--last-wins"], "--last-wins needs --key"),
      (["--continue", "--replace"], "cannot be given together"),
      (["--continue", "--atomic"], "cannot be given together"),
    ])
  func misuse(options: [String], problem: String) throws {
    try folder.write("{}", to: "in.json")
    let outcome = try dendro.run(["import", "db", "/", "in.json"] + options)
    #expect(outcome.status == 64 && outcome.errors.contains(problem), "\(outcome.errors)")
  }

  @Test(
    "an import that was killed goes on, and writes each record once",
    arguments: ["lines", "csv", "json"])
  func goesOn(format: String) throws {
    let records = 0..<40
    let text =
      switch format {
      case "csv": "id,text\n" + records.map { "r\($0),text \($0)\n" }.joined()
      case "lines": records.map { "{\"id\":\"r\($0)\",\"text\":\"text \($0)\"}\n" }.joined()
      default:
        "{" + records.map { "\"r\($0)\":{\"text\":\"text \($0)\"}" }.joined(separator: ",") + "}"
      }
    try folder.write(text, to: "whole")
    let options =
      ["--format", format, "--chunk-size", "64"] + (format == "json" ? [] : ["--key", "id"])
    let writer = try WaitingImport(
      dendro, to: "/all", options, start: text.utf8.prefix(text.utf8.count / 2),
      written: "/all/r5")
    writer.end()

    let refused = try dendro.run(["import", "db", "/all", "whole"] + options)
    #expect(refused.status == 1 && refused.errors.contains("--continue"), "\(refused.errors)")
    let outcome = try dendro.run(["import", "db", "/all", "whole", "--continue"] + options)
    #expect(outcome.status == 0, "\(outcome.errors)")
    _ = try dendro.run(["import", "other", "/all", "whole"] + options)
    #expect(
      try export("/all")
        == dendro("export", "other", "/all").output.trimmingCharacters(in: .newlines))
    var places: Set<String> = []
    for line in try dendro("log", "db", "--json").lines {
      let write = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      for entry in write?["entries"] as? [[String: Any]] ?? [] {
        let path = entry["path"] as? String ?? ""
        #expect(places.insert(path).inserted, "\(path) was written twice")
      }
    }
    #expect(places.count >= records.count)
    let again = try dendro.run(["import", "db", "/all", "whole", "--continue", "--json"] + options)
    #expect(again.object["writes"] as? Int == 0)
    // Other data is not passed over.
    try dendro("set", "db", "/all/r3/text", #""other""#)
    let other = try dendro.run(["import", "db", "/all", "whole", "--continue"] + options)
    #expect(other.status == 1)
    #expect(other.errors.contains("other data than whole"), "\(other.errors)")
  }

  @Test("the time left is shown once it can be estimated")
  func timeLeft() {
    #expect(Progress.secondsLeft(50, of: 100, after: 10) == 10)
    #expect(Progress.secondsLeft(50, of: 100, after: 1) == nil)
    #expect(Progress.secondsLeft(0, of: 100, after: 10) == nil)
    #expect(Progress.secondsLeft(1, of: 1000, after: 10) == nil)
    #expect(Progress.secondsLeft(100, of: 100, after: 10) == nil)
    #expect(Progress.secondsLeft(50, of: nil, after: 10) == nil)
    #expect(Progress.text(secondsLeft: 9.2) == "10 s")
    #expect(Progress.text(secondsLeft: 61) == "1 min 1 s")
    #expect(Progress.text(secondsLeft: 7260) == "2 h 1 min")
  }
}
