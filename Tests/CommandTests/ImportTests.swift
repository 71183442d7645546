import DendroTestSupport
import Foundation
import Testing

@Suite("dendro: import and export")
struct ImportTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  static let documents: [(name: String, text: String)] = [
    (
      "scalars",
      #"{"t":true,"f":false,"i":1,"n":-1,"d":0.1,"e":1e308,"s":5e-324,"g":1e21,"x":"","y":"a\"\\\/\b\f\n\r\t\u0000\u001f"}"#
    ),
    (
      "Int64 limits",
      #"[9223372036854775807,-9223372036854775808,9007199254740993,9223372036854775808,18446744073709551615]"#
    ),
    ("unicode", #"{"é":"é","e\u0301":"漢字","😀":"\uD83D\uDE00 \uFFFF \u2028","\uE000":"x"}"#),
    (
      "arrays",
      #"{"a":[1,2,3],"s":[null,null,null,1,1,1],"n":[[[1],[2]],{"x":[]}],"z":{"0":"a","4":"b"}}"#
    ),
    (
      "order",
      #"{"b":1,"10":1,"9":1,"-3":1,"007":1,"7":1,"07":1,"0":1,"-0":1,"2147483648":1,"+1":1," 1":1}"#
    ),
    ("empty", #"{"a":{},"b":[],"c":null,"d":{"e":{"f":[null]}},"g":1}"#),
    (
      "priorities",
      #"{"a":{".value":"t",".priority":1},"b":{"c":true,".priority":"z"},".priority":0.5}"#
    ),
    ("depth", String(repeating: #"{"a":"#, count: 32) + "1" + String(repeating: "}", count: 32)),
    ("leaf", #""only a string""#),
    ("nothing", "null"),
  ]

  /// Exports, imports that and exports again: the same tree by the database's own hash.
  private func expectRoundTrip(_ file: String, options: [String]) throws {
    let first = try dendro.run(["import", "one", "/", file] + options)
    #expect(first.status == 0, "\(first.errors)")
    try dendro("export", "one", "/", "-o", "one.json")
    let second = try dendro.run(["import", "two", "/", "one.json"])
    #expect(second.status == 0, "\(second.errors)")
    try dendro("export", "two", "/", "--pretty", "-o", "two.json")
    let third = try dendro.run(["import", "three", "/", "two.json", "--atomic"])
    #expect(third.status == 0, "\(third.errors)")
    #expect(try dendro("export", "three", "/").output == folder.read("one.json"))
    let hashes = try ["one", "two", "three"].map { name in
      try dendro("verify", name, "--json").object["hash"] as? String
    }
    #expect(hashes[0] != nil)
    #expect(Set(hashes).count == 1)
  }

  @Test("a round trip gives the same tree", arguments: documents)
  func roundTrip(document: (name: String, text: String)) throws {
    try folder.write(document.text, to: "in.json")
    try expectRoundTrip("in.json", options: ["--chunk-size", "20"])
  }

  @Test("exported text is what was imported, in the order of keys")
  func exported() throws {
    let text =
      #"{"a":[1,null,2.5],"b":{".value":"x",".priority":"p"},"é":{"0":{"y":true},".priority":3}}"#
    try folder.write(text, to: "in.json")
    try dendro("import", "db", "/", "in.json")
    #expect(try dendro("export", "db", "/").output == text + "\n")
    #expect(try dendro("export", "db", "/b").output == #"{".value":"x",".priority":"p"}"# + "\n")
    #expect(
      try dendro("export", "db", "/", "--value").output
        == #"{"a":[1,null,2.5],"b":"x","é":[{"y":true}]}"# + "\n")
    let missing = try dendro("export", "db", "/nix")
    #expect(missing.status == 1)
    #expect(missing.output == "null\n")
  }

  @Test("very many children in one node, in chunks")
  func wide() throws {
    let count = Scale.share < 1 ? 5_000 : 100_000
    let members = (0..<count).map { "\"key \($0 * 7919 % count)\":{\"n\":\($0)}" }
    try folder.write("{\"wide\":{\(members.joined(separator: ","))}}", to: "in.json")
    try expectRoundTrip("in.json", options: ["--chunk-size", "\(3 * count)"])
    let object = try dendro("info", "one", "--full", "--json").object
    #expect(object["leaves"] as? Int == count)
    #expect(object["lastLSN"] as? Int ?? 0 > 5)
    #expect(try dendro("verify", "two").status == 0)
  }

  @Test("a key that comes twice holds what came last, also across chunks")
  func repeatedKeys() throws {
    let many = (0..<2000).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
    try folder.write(
      "{\"p\":{\(many)},\"q\":1,\"p\":{\"x\":{\(many)}},\"p\":{\"y\":2}}", to: "in.json")
    for chunk in ["1", "100", "5000", "1000000"] {
      let name = "db\(chunk)"
      #expect(try dendro("import", name, "/", "in.json", "--chunk-size", chunk).status == 0)
      #expect(try dendro("export", name, "/").output == #"{"p":{"y":2},"q":1}"# + "\n")
    }
  }

  @Test("a key that comes thousands of times takes no more writes than its text has chunks")
  func repeatedKeyWrites() throws {
    let values = (0..<20_000).map { "\"same\":\($0)" }.joined(separator: ",")
    try folder.write("{\(values)}", to: "in.json")
    let outcome = try dendro("import", "db", "/", "in.json", "--chunk-size", "100000", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.object["writes"] as? Int ?? 0 < 10)
    #expect(outcome.object["leaves"] as? Int == 1)
    #expect(try dendro("export", "db").output == #"{"same":19999}"# + "\n")
    let dry = try dendro("import", "other", "/", "in.json", "--dry-run", "--json")
    #expect(dry.object["leaves"] as? Int == 1)
  }

  /// Members of two keys in every order, as leaves, branches, deeper ones, nothing, and with priorities.
  @Test("pieces of repeated keys, in chunks of any size, make what one write makes")
  func repeatedKeysInAnyOrder() throws {
    let large = (0..<400).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
    let members = [
      "\"a\":1", "\"a\":{\(large)}", "\"a\":null", "\"a\":{\"k7\":{\(large)},\".priority\":2}",
      "\"a\":{\(large),\".priority\":1}", "\"a\":{\"k7\":null,\"x\":{\(large)},\"x\":3}",
      "\"b\":{\(large)}",
    ]
    var number = 0
    for first in members {
      for second in members {
        let text = "{\"p\":{\(first),\(second)},\"p\":{\(second),\(first),\(second)}}"
        number += 1
        guard number.isMultiple(of: Scale.stride(5)) else { continue }
        try folder.write(text, to: "in.json")
        try dendro("import", "whole\(number)", "/", "in.json", "--atomic")
        let whole = try dendro("export", "whole\(number)").output
        let outcome = try dendro(
          "import", "db\(number)", "/", "in.json", "--json", "--chunk-size", "\(400 << number % 7)")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try dendro("export", "db\(number)").output == whole, "\(first) \(second)")
        let leaves = try dendro("info", "db\(number)", "--full", "--json").object["leaves"] as? Int
        #expect(outcome.object["leaves"] as? Int == leaves)
      }
    }
  }

  static let refused: [(String, String)] = [
    (#"{"a":1,"b":{"x/y":2}}"#, "line 1, column 13 (byte 12), at /b: "),
    ("{\n  \"a\": 1,\n  \"b\": [1, {\"c.d\": 2}]\n}", "line 3, column 13 (byte 24), at /b/1: "),
    (#"{"a":1,}"#, "line 1, column 8 (byte 7): expected a key"),
    (#"{"a":{".sv":"timestamp"}}"#, "at /a: "),
    (#"{"a":1"#, "byte 6"),
    ("{\"a\":\"\u{1}\"}", "U+0001"),
    (String(repeating: "[", count: 33) + "1" + String(repeating: "]", count: 33), "32 levels"),
    ("", "the text ends too early"),
    (#"{"a":1e400}"#, "too large"),
  ]

  @Test(
    "bad data ends with its place in the file, 65, and nothing of its chunk", arguments: refused)
  func refusal(text: String, place: String) throws {
    try folder.write(text, to: "bad.json")
    for options in [[], ["--atomic"], ["--dry-run"]] {
      let outcome = try dendro.run(["import", "db", "/", "bad.json"] + options)
      #expect(outcome.status == 65)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.contains("bad.json: "), "\(outcome.errors)")
      #expect(outcome.errors.contains(place), "\(outcome.errors)")
      #expect(outcome.errors.contains("nothing was written"))
    }
    #expect(try dendro("get", "db").status == 1)
  }

  @Test("earlier chunks stay, and that is said; with --atomic nothing does")
  func earlierChunks() throws {
    let good = (0..<5000).map { "\"k\($0)\":{\"n\":\($0)}" }.joined(separator: ",")
    try folder.write("{\(good),\"last\":{\"bad.key\":1}}", to: "bad.json")
    let outcome = try dendro("import", "db", "/", "bad.json", "--chunk-size", "10000")
    #expect(outcome.status == 65)
    #expect(outcome.errors.contains("in chunks of about"))
    #expect(outcome.errors.contains("nothing of this chunk was written"))
    let leaves = try dendro("info", "db", "--full", "--json").object["leaves"] as? Int ?? 0
    #expect(leaves > 0 && leaves < 5000)
    #expect(outcome.errors.replacing(",", with: "").contains("\(leaves) leaves before it"))
    #expect(try dendro("get", "db", "/last").status == 1)

    let atomic = try dendro("import", "atomic", "/", "bad.json", "--atomic")
    #expect(atomic.status == 65)
    #expect(atomic.errors.contains("nothing was written"))
    #expect(try dendro("get", "atomic").status == 1)
  }

  @Test("existing data is replaced only with --replace")
  func existing() throws {
    try folder.write(#"{"n":1}"#, to: "one.json")
    try folder.write(#"{"m":{"bad.key":1}}"#, to: "bad.json")
    #expect(try dendro("import", "db", "/a", "one.json").status == 0)
    let refused = try dendro("import", "db", "/a", "one.json")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("--replace"))
    // Not a terminal: no answer is no.
    #expect(try dendro("import", "db", "/a", "one.json", "--replace").status == 64)
    // The file is checked before anything is removed.
    #expect(try dendro("import", "db", "/a", "bad.json", "--replace", "--force").status == 65)
    #expect(try dendro("export", "db", "/a").output == #"{"n":1}"# + "\n")
    try folder.write(#"{"o":2}"#, to: "two.json")
    for (options, text) in [([], "two.json"), (["--atomic"], "one.json")] {
      #expect(
        try dendro.run(["import", "db", "/a", text, "--replace", "--force"] + options).status == 0)
      #expect(try dendro("export", "db", "/a").output == folder.read(text) + "\n")
    }
  }

  static let leaves = [
    (#""text""#, #"the string "text""#, ""), ("7", "7", ""),
    (#"{".value":true,".priority":1}"#, "true", #",".priority":1"#),
  ]

  @Test("a leaf above the place of an import is replaced only with --replace", arguments: leaves)
  func leafAbove(value: String, shown: String, kept: String) throws {
    try folder.write(#"{"n":1}"#, to: "one.json")
    try dendro("set", "db", "/k", value)
    for options in [[], ["--atomic"], ["--continue"], ["--dry-run"], ["--replace"]] {
      let refused = try dendro.run(["import", "db", "/k/sub/deep", "one.json"] + options)
      #expect(refused.status == (options == ["--replace"] ? 64 : 1), "\(options)")
      #expect(refused.errors.contains("at /k"), "\(refused.errors)")
      #expect(refused.errors.contains(shown), "\(refused.errors)")
      #expect(try dendro("export", "db", "/k").output == value + "\n")
    }
    let words = ["import", "db", "/k/sub/deep", "one.json", "--replace", "--force"]
    let dry = try dendro.run(words + ["--dry-run"])
    #expect(dry.status == 0 && dry.output.contains(shown), "\(dry.output)")
    #expect(try dendro("export", "db", "/k").output == value + "\n")
    #expect(try dendro.run(words).status == 0)
    #expect(try dendro("export", "db", "/k").output == #"{"sub":{"deep":{"n":1}}\#(kept)}"# + "\n")
  }

  @Test("a dry run is refused where the import is, and changes nothing")
  func dryRun() throws {
    try folder.write(#"{"n":1}"#, to: "one.json")
    try folder.write("other", to: "foreign/file")
    try dendro("set", "db", "/a", "1")
    try dendro("backup", "db", "archive", "--incremental")
    let rows: [(words: [String], status: Int32)] = [
      (["db", "/a", "one.json"], 1), (["db", "/", "one.json"], 1),
      (["db", "/", "one.json", "--replace"], 64), (["archive", "/b", "one.json"], 69),
      (["foreign", "/", "one.json"], 65), (["new", "/", "one.json", "--no-create"], 1),
      (["one.json/new", "/", "one.json"], 74), (["db", "/b", "nowhere.json"], 74),
      (["db", "/b", "one.json", "--durability", "some"], 64),
    ]
    for (words, status) in rows {
      let dry = try dendro.run(["import"] + words + ["--dry-run"])
      let real = try dendro.run(["import"] + words)
      #expect(dry.status == status, "\(words): \(dry.errors)")
      #expect(real.status == status, "\(words): \(real.errors)")
      // Of a chunk, only the import says what was written.
      #expect(
        dry.errors.split(separator: "\n").first == real.errors.split(separator: "\n").first)
    }
    let held = try dendro.start(["serve", "db", "--port", "0"])
    #expect(held.waitForOutput("\n"))
    #expect(try dendro("import", "db", "/b", "one.json", "--dry-run").status == 75)
    held.send(SIGTERM)
    _ = try held.wait()

    let before = try dendro("verify", "db", "--json").object["hash"] as? String
    let good = try dendro("import", "db", "/b", "one.json", "--dry-run")
    #expect(good.status == 0, "\(good.errors)")
    #expect(good.output == "one.json is good: 1 leaf, 7 B; nothing was written\n")
    let over = try dendro("import", "db", "/", "one.json", "--replace", "--force", "--dry-run")
    #expect(
      over.output == "one.json is good: 1 leaf, 7 B; it would replace 1 leaf at /; "
        + "nothing was written\n")
    #expect(try dendro("verify", "db", "--json").object["hash"] as? String == before)
    #expect(try dendro("import", "new/deep", "/", "one.json", "-n").status == 0)
    #expect(try !folder.names(in: ".").contains("new"))
  }

  @Test("standard input, --json, a file that is not there")
  func sources() throws {
    let outcome = try dendro("import", "db", "/x/y", "-", "--json", input: #"{"a":[1,2]}"#)
    #expect(outcome.status == 0)
    let object = outcome.object
    #expect(object["leaves"] as? Int == 2)
    #expect(object["writes"] as? Int == 1)
    #expect(object["path"] as? String == "/x/y")
    #expect(object["firstLSN"] as? Int == 1)
    #expect(try dendro("import", "db", "/z", "nowhere.json").status == 74)
    #expect(try dendro("import", "db", "/x/.priority", "-", input: "1").status == 65)
    #expect(try dendro("export", "db", "/", "-o", "no/such/folder.json").status == 74)
  }

  @Test("Ctrl-C ends an import in order")
  func interruption() throws {
    // A pipe that stays open: the import waits for more.
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["import", "\(folder.path)/db", "/", "-"]
    let input = Pipe()
    let errors = Pipe()
    process.standardInput = input
    process.standardError = errors
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    input.fileHandleForWriting.write(Data(#"{"a":1,"#.utf8))
    // It listens for the signal by the time it says what it does.
    var said = Data()
    while !String(decoding: said, as: UTF8.self).contains("in chunks") {
      let part = errors.fileHandleForReading.availableData
      if part.isEmpty { break }
      said.append(part)
    }
    process.interrupt()
    process.waitUntilExit()
    #expect(process.terminationStatus == 130)
    #expect(try dendro("verify", "db").status == 0)
  }
}
