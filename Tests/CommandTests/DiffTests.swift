import Foundation
import Testing

@Suite("dendro: diff, compare, hash, history, blame")
struct DiffTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func fill() throws {
    try dendro("set", "db", "/users/ada", #"{"name":"Ada","age":36}"#)
    try dendro("set", "db", "/users/bob", #"{"name":"Bob"}"#)
    try dendro("update", "db", "/users", #"{"ada/age":37,"bob":null,"eve/name":"Eve"}"#)
    try dendro("set", "db", "/users/ada/.priority", "5")
    try dendro("increment", "db", "/users/ada/age", "1")
  }

  /// The lines without their times.
  private func lines(_ outcome: Tool.Outcome) -> [String] {
    outcome.lines.map { line in
      line.replacing(/\d{4}-\d\d-\d\dT[\d:.]+Z/, with: "TIME")
        .split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
  }

  @Test("diff says what was added, removed and changed")
  func diff() throws {
    try fill()
    let outcome = try dendro("diff", "db", "--from", "2")
    #expect(outcome.status == 1)
    #expect(
      lines(outcome) == [
        "~ /users/ada/.priority → 5".replacing("priority ", with: "priority null "),
        "~ /users/ada/age 36 → 38", #"- /users/bob {"name":"Bob"}"#,
        #"+ /users/eve {"name":"Eve"}"#,
      ])
    #expect(outcome.errors == "dendro: 4 differences between write 2 and write 5\n")
    let below = try dendro("diff", "db", "/users/ada", "--from", "1", "--to", "3")
    #expect(lines(below) == ["~ /users/ada/age 36 → 37"])
    let equal = try dendro("diff", "db", "--from", "5", "--to", "now")
    #expect(
      equal.status == 0 && equal.output.isEmpty && equal.errors.contains("no difference between"))
    let back = try dendro("diff", "db", "/users/eve", "--to", "2")
    #expect(lines(back) == [#"- /users/eve {"name":"Eve"}"#])
    for words in [["diff", "db"], ["diff", "db", "--from", "x"]] {
      #expect(try dendro.run(words).status == 64)
    }
    // No difference, and not the code of one.
    for words in [
      ["diff", "db", "--from", "9"], ["diff", "nowhere", "--from", "1"],
      ["diff", "db", "--with", "nowhere"],
    ] {
      #expect(try dendro.run(words).status == 69, "\(words)")
    }
    #expect(try dendro("diff", "db", "/a/.priority", "--from", "1").status == 65)
    let empty = try dendro("diff", "db", "--from", "0", "--to", "1", "--json")
    #expect(empty.object["was"] is NSNull && empty.object["path"] as? String == "/")
  }

  @Test("diff --json is what apply takes")
  func diffApplies() throws {
    try fill()
    let lines = try dendro("diff", "db", "--from", "2", "--json").output
    let objects = try lines.split(separator: "\n").map { line in
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
    }
    #expect(
      objects.map { "\($0["operation"] ?? "") \($0["path"] ?? "")" } == [
        "set /users/ada/age", "set /users/eve", "remove /users/bob", "priority /users/ada",
      ])
    try dendro("export", "db", "--at", "2", "-o", "two.json")
    for option in [["--atomic"], [], ["--chunk-size", "3"]] {
      try? FileManager.default.removeItem(atPath: "\(folder.path)/two")
      try dendro("import", "two", "/", "two.json")
      let outcome = try dendro.run(["apply", "two", "-", "--json"] + option, input: lines)
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.object["lines"] as? Int == 4)
      let writes = option.isEmpty ? 4 : option.count
      #expect(outcome.object["writes"] as? Int == writes)
      #expect(try dendro("export", "two").output == dendro("export", "db").output)
      // The places are no longer what they were.
      let again = try dendro.run(["apply", "two", "-"] + option, input: lines)
      #expect(again.status == 1 && again.errors.contains("line 1"), "\(again.errors)")
    }
  }

  @Test("two databases are compared by their hashes")
  func compare() throws {
    try fill()
    try dendro("backup", "db", "copy")
    let equal = try dendro("compare", "db", "copy")
    #expect(equal.status == 0 && equal.output.hasSuffix("equal\n"))
    let hash = try dendro("hash", "db").output
    #expect(try hash.count == 17 && dendro("hash", "copy").output == hash)
    #expect(
      try dendro("verify", "db", "--json").object["hash"] as? String == String(hash.dropLast()))
    try dendro("set", "copy", "/users/ada/x/y", "1")
    try dendro("set", "copy", "/users/ada/age", "1")
    try dendro("set", "copy", "/z", "1")
    let different = try dendro("compare", "db", "copy")
    #expect(different.status == 1)
    #expect(
      Array(different.lines.dropFirst(2)) == [
        "/users/ada  2 differences", "/z  1 difference", "different",
      ])
    let json = try dendro("compare", "db", "copy", "/users/eve", "--json").object
    #expect(
      json["equal"] as? Bool == true && json["hash"] as? String == json["otherHash"] as? String)
    let with = try dendro("diff", "db", "/z", "--with", "copy")
    #expect(lines(with) == ["+ /z 1"] && with.errors.contains("write 8 of copy"))
    let nowhere = try dendro("compare", "db", "nowhere")
    #expect(nowhere.status == 69 && nowhere.errors.contains("there is no database at"))
    #expect(try dendro("compare", "nowhere", "db").status == 69)
    #expect(try dendro("compare", "db", "copy", "--at", "99").status == 69)
    #expect(try dendro("hash", "db", "/users", "--at", "1", "--json").object["leaves"] as? Int == 2)
    #expect(try dendro("hash", "db", "--at", "0").output == dendro("hash", "db", "/nothing").output)
  }

  @Test("history shows every value, and says where it begins")
  func history() throws {
    try fill()
    #expect(
      lines(try dendro("history", "db", "/users/ada/age")) == [
        "1 TIME set 36", "3 TIME update 37", "5 TIME increment 38",
      ])
    #expect(
      lines(try dendro("history", "db", "/users/bob")) == [
        #"2 TIME set {"name":"Bob"}"#, "3 TIME update null",
      ])
    #expect(lines(try dendro("history", "db", "/users/ada/.priority")) == ["4 TIME priority 5"])
    #expect(
      lines(try dendro("history", "db", "/users/ada/age", "--since", "2", "--until", "4")) == [
        "3 TIME update 37"
      ])
    let last = try dendro("history", "db", "/users/ada/age", "--last", "1", "--json").object
    #expect(last["lsn"] as? Int == 5 && last["value"] as? Int == 38)
    let nothing = try dendro("history", "db", "/nothing")
    #expect(nothing.status == 1 && nothing.errors.contains("nothing has happened at /nothing"))
    try dendro("purge", "db", "--force")
    try dendro("set", "db", "/users/ada/age", "40")
    let cut = try dendro("history", "db", "/users/ada/age")
    #expect(lines(cut) == ["5 TIME kept 38", "6 TIME set 40"])
    #expect(cut.errors.contains("the history begins at write 5"))
    #expect(try dendro("history", "db", "/users", "--until", "3").status == 1)
  }

  @Test("blame of a place without a value says whether it ever had one")
  func blameOfNothing() throws {
    try fill()
    let never = try dendro("blame", "db", "/users/never")
    #expect(never.status == 1 && never.output.isEmpty)
    #expect(never.errors == "dendro: /users/never has never had a value\n")
    let removed = try dendro("blame", "db", "/users/bob/name")
    #expect(removed.status == 1)
    let pattern =
      /dendro: \/users\/bob\/name has no value: write 3 \(update, .*Z\) has removed it\n/
    #expect(removed.errors.wholeMatch(of: pattern) != nil, "\(removed.errors)")
    #expect(try dendro("blame", "db", "/users/bob/name", "--at", "2").status == 0)
  }

  @Test("blame names the write of each leaf, or says that it is not kept any more")
  func blame() throws {
    try fill()
    #expect(
      lines(try dendro("blame", "db")) == [
        "5 TIME increment /users/ada/age 38", #"1 TIME set /users/ada/name "Ada""#,
        #"3 TIME update /users/eve/name "Eve""#,
      ])
    #expect(
      lines(try dendro("blame", "db", "/users/ada", "--at", "3")) == [
        "3 TIME update /users/ada/age 37", #"1 TIME set /users/ada/name "Ada""#,
      ])
    // A set of the same value is no change of the leaf.
    try dendro("set", "db", "/users/ada", #"{"name":"Ada","age":1}"#)
    let objects = try dendro("blame", "db", "/users/ada", "--json").lines.map { line in
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
    }
    #expect(objects.map { $0["lsn"] as? Int } == [6, 1])
    try dendro("purge", "db", "--force")
    try dendro("set", "db", "/users/ada/age", "2")
    let cut = try dendro("blame", "db", "/users/ada")
    #expect(lines(cut) == ["7 TIME set /users/ada/age 2", #"- /users/ada/name "Ada""#])
    #expect(cut.errors.contains("the history begins at write 6"))
    let never = try dendro("blame", "db", "/nothing")
    #expect(never.status == 1 && never.output.isEmpty)
    #expect(never.errors.hasSuffix("/nothing has had no value since the history begins\n"))
    #expect(try dendro("blame", "db", "/a/.priority").status == 65)
  }
}
