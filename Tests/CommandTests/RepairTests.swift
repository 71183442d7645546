import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Testing

@Suite("dendro: repair, and reading a damaged database")
struct RepairTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private static let log = "00000000000000000001.log"

  /// Twelve writes; the third is damaged afterwards.
  private func fill(_ db: String = "db") throws {
    for number in 1...11 { try dendro("set", db, "/users/u\(number)", #"{"n":\#(number)}"#) }
    try dendro("increment", db, "/users/u2/n", "5")
  }

  /// Flips a bit in the payload of a write.
  private func damage(_ lsn: Int, of db: String = "db") throws {
    let file = "\(db)/\(Self.log)"
    let lines = try dendro("log", db, "--records", "--json").lines
    for line in lines {
      let record =
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
      guard let first = record["firstLSN"] as? Int, let last = record["lastLSN"] as? Int,
        first <= lsn, lsn <= last
      else { continue }
      var bytes = folder.bytes(file)
      let offset = record["offset"] as? Int ?? 0
      let header = record["headerBytes"] as? Int ?? 0
      bytes[offset + header + (record["storedBytes"] as? Int ?? 2) / 2] ^= 1
      try folder.write(bytes, to: file)
    }
  }

  private func files(_ db: String) throws -> [String: Data] {
    try folder.names(in: db).reduce(into: [:]) { $0[$1] = folder.bytes("\(db)/\($1)") }
  }

  @Test(
    "a record with a damaged header is lost alone, though later ones were compressed with it as history"
  )
  func damagedHeader() throws {
    let posts = (0..<40).map { number in
      "\"post-\(number)\":{\"author\":\"the same author\",\"title\":\"number \(number) of some\"}"
    }
    try folder.write("{\(posts.joined(separator: ","))}", to: "posts.json")
    try dendro("import", "db", "/posts", "posts.json", "--chunk-size", "5")
    let good = folder.bytes("db/\(Self.log)")
    let records = try dendro("log", "db", "--records", "--json").lines.compactMap { line in
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    }.filter { $0["kind"] as? String == "writes" }
    #expect(records.count > 3)
    // Nothing proves that the last one was durable.
    for (number, record) in records.dropLast().enumerated() {
      let end = (record["offset"] as? Int ?? 0) + (record["headerBytes"] as? Int ?? 0)
      // In the header's own checksum, in that of the payload, and in the previous one.
      let place = [end - 1, end - 6, end - 14][number % 3]
      var bytes = good
      bytes[place] ^= 1
      try folder.write(bytes, to: "db/\(Self.log)")
      let report = try dendro("repair", "db", "new-\(place)", "--json").object
      let lost = (report["lost"] as? [[String: Any]])?.compactMap { $0["first"] as? Int } ?? []
      #expect(lost == [record["firstLSN"] as? Int ?? 0], "\(place): \(report)")
    }
  }

  @Test("repair saves what can be read, says what is lost and in doubt, and changes nothing")
  func repair() throws {
    try fill()
    try damage(3)
    let before = try files("db")
    let outcome = try dendro("repair", "db", "new")
    #expect(outcome.status == 1 && outcome.errors.isEmpty, "\(outcome.errors)")
    let lines = outcome.lines.map(String.init)
    #expect(lines.first?.hasPrefix("damage: ") ?? false)
    #expect(
      Array(lines.dropFirst()) == [
        "saved         writes 1 to 2 and 4 to 12", "lost          write 3",
        "tree          10 leaves as of write 12, without the lost writes",
        "history       from write 4 on, without what is lost", "in doubt      /users/u1  1 leaf",
        "in doubt      /users/u2  1 leaf",
        "              (not set behind write 3: a lost write may have changed or removed them, "
          + "and what a lost write added is missing)",
        "written       to new; read back and good",
      ])
    #expect(try files("db") == before)
    #expect(try dendro("verify", "new").status == 0)
    #expect(try dendro("get", "new", "/users/u2/n").output == "7\n")
    #expect(try dendro("get", "new", "/users/u3").status == 1)
    #expect(
      try dendro("get", "new", "/users", "--at", "4", "--shallow", "--compact").output
        == #"{"u1":true,"u2":true,"u4":true}"# + "\n")
    // The next write takes the next number.
    #expect(try dendro("set", "new", "/more", "1").errors.contains("write 13"))

    let json = try dendro("repair", "db", "again", "--json").object
    #expect(json["whole"] as? Bool == false && json["lastLSN"] as? Int == 12)
    #expect((json["lost"] as? [[String: Int]]) == [["first": 3, "last": 3]])
    #expect(
      (json["saved"] as? [[String: Int]]) == [["first": 1, "last": 2], ["first": 4, "last": 12]])
    #expect((json["doubts"] as? [[String: Any]])?.count == 2)
    #expect((json["damage"] as? [[String: Any]])?.count == 1)
    #expect(json["target"] as? String == "again")
    #expect(
      json["hash"] as? String == (try dendro("verify", "again", "--json").object["hash"] as? String)
    )
  }

  @Test("behind a damaged payload, only what refers to its bytes is lost")
  func compressedBehind() throws {
    var random = SeededGenerator(seed: 1)
    func text(_ count: Int) -> String {
      String((0..<count).map { _ in Character(UnicodeScalar(UInt8(97 + random.below(26)))) })
    }
    // All but the second are compressed against what the first one has.
    let common = text(300)
    let path = "\(folder.path)/db"
    let directory = try DatabaseDirectory.open(
      path, environment: .system, mode: .readWrite(create: true))
    let log = try LogWriter.create(directory, databaseID: LoggedDirectory.id, time: 0)
    for number in 1...20 {
      let write = Write.set(
        Path(keys: [try Key("k\(number)")]),
        Node(.string(number == 2 ? text(300) : common + text(20))))
      let payload = PayloadBuffer()
      WriteCoding.encodeHead(of: write, timeDelta: 0, previousPath: .root, into: payload)
      WriteCoding.encodeBody(of: write, into: payload)
      try payload.withBytes { bytes in
        try log.stage(bytes, firstLSN: log.nextLSN, count: 1, baseTime: 0)
      }
      try log.write()
      try log.synchronize()
    }
    try log.close()
    directory.close()
    try damage(2)
    let json = try dendro("repair", "db", "new", "--json").object
    #expect(json["lost"] as? [[String: Int]] == [["first": 2, "last": 2]], "\(json)")
  }

  @Test("a checkpoint behind the damage has what was lost; only the history lacks it")
  func checkpointBehind() throws {
    try fill()
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/more", "1")
    try damage(3)
    let good = try dendro("export", "db").output
    let outcome = try dendro("repair", "db", "new")
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("saved         writes 1 to 13\n"), "\(outcome.output)")
    #expect(outcome.output.contains("lost history  write 3, which a checkpoint contains\n"))
    #expect(outcome.output.contains("history       from write 12 on\n"))
    #expect(try dendro("export", "new").output == good)
    #expect(try dendro("verify", "new").status == 0)
  }

  @Test("a dry run writes nothing; without damage there is nothing to do")
  func dryRun() throws {
    try fill()
    let nothing = try dendro("repair", "db", "new")
    #expect(nothing.status == 0)
    #expect(nothing.output.hasPrefix("nothing is damaged, and nothing was written\n"))
    #expect(nothing.output.contains("write 12 is proven durable"), "\(nothing.output)")
    #expect(try dendro("repair", "db", "new", "--json").object["damaged"] as? Bool == false)
    try damage(3)
    let outcome = try dendro("repair", "db", "--dry-run")
    #expect(outcome.status == 1)
    #expect(outcome.output.contains("lost          write 3\n"))
    #expect(!outcome.output.contains("written"))
    #expect(try dendro("repair", "db", "new", "--dry-run", "--json").object["target"] is NSNull)
    #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/new"))
  }

  @Test("a target that is missing, exists, or lies in the damaged directory is refused")
  func targets() throws {
    try fill()
    try damage(3)
    let missing = try dendro("repair", "db")
    #expect(missing.status == 64 && missing.errors.contains("--dry-run"))
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/there", withIntermediateDirectories: false)
    #expect(try dendro("repair", "db", "there").status == 1)
    #expect(try dendro("repair", "db", "db/new").status == 64)
    #expect(try dendro("repair", "nowhere", "new").status == 1)
    #expect(try dendro("repair", "db", "there/../db/new").status == 64)
    #expect(try dendro("repair", "db", "db/../new").status == 1)
    #expect(try folder.names(in: "new").contains("dendro.lock"))
  }

  @Test("on a terminal it says what would be saved, and asks")
  func asking() throws {
    try fill()
    try damage(3)
    let no = try PseudoTerminal(columns: 80).run(dendro, ["repair", "db", "new"], typing: "n\n")
    #expect(no.status == 1 && no.errors.contains("Continue?"), "\(no.errors)")
    #expect(no.output.contains("lost          write 3\n"))
    #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/new"))
    let yes = try PseudoTerminal(columns: 80).run(dendro, ["repair", "db", "new"], typing: "y\n")
    #expect(yes.status == 1 && yes.output.hasSuffix("written       to new; read back and good\n"))
    let force = try PseudoTerminal(columns: 80).run(dendro, ["repair", "db", "third", "--force"])
    #expect(force.status == 1 && !force.errors.contains("Continue?"))
  }

  @Test("if nothing can be saved, that is said")
  func nothing() throws {
    try fill()
    try folder.write(folder.bytes("db/\(Self.log)").prefix(40), to: "db/\(Self.log)")
    let outcome = try dendro("repair", "db", "new")
    #expect(outcome.status == 2)
    #expect(outcome.output.hasSuffix("nothing can be saved\n"))
    #expect(try dendro("repair", "db", "new", "--json").object["lastLSN"] is NSNull)
    #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/new"))
    let get = try dendro("get", "db", "--salvage")
    #expect(get.status == 2 && get.errors.contains("no state is proven"))
  }

  @Test("get and export read the last proven state of a damaged database, and earlier ones")
  func salvage() throws {
    try fill()
    let good = try dendro("get", "db", "--at", "2").output
    try damage(3)
    for verb in ["get", "export", "set"] {
      let words = verb == "set" ? [verb, "it's", "/x", "1"] : [verb, "it's"]
      try? FileManager.default.removeItem(atPath: "\(folder.path)/it's")
      try FileManager.default.copyItem(
        atPath: "\(folder.path)/db", toPath: "\(folder.path)/it's")
      let refused = try dendro.run(words)
      #expect(refused.status == 2 && refused.output.isEmpty)
      #expect(refused.errors.contains(#"'dendro repair 'it'\''s' NEW' saves"#), "\(refused.errors)")
    }
    // Advice names the one that is damaged.
    try fill("good")
    for words in [["compare", "good", "db"], ["diff", "good", "--with", "db"]] {
      #expect(try dendro.run(words).errors.contains("'dendro repair db NEW' saves"), "\(words)")
    }
    // A state that is restored keeps its time.
    let restored = try dendro("restore", "db", "restored", "--at", "2", "--json").object
    let time = try #require(restored["time"] as? Int)
    #expect(time > 1_700_000_000_000)
    let salvage = try dendro("get", "db", "--salvage")
    #expect(salvage.status == 0 && salvage.output == good)
    #expect(salvage.errors.contains("its state after write 2, which is proven, of 12"))
    #expect(try dendro("get", "db", "/users/u1/n", "--at", "1").output == "1\n")
    #expect(
      try dendro("get", "db", "/users/u1/n", "--salvage", "--json").object["lsn"] as? Int == 2)
    let late = try dendro("get", "db", "--at", "5")
    #expect(late.status == 2 && late.errors.contains("those after the writes 0 to 2"))
    #expect(try dendro("get", "db", "--at", "2000-01-01").output == "null\n")
    #expect(try dendro("get", "db", "--at", "2100-01-01").status == 2)
    let export = try dendro("export", "db", "/users", "--salvage", "--at", "1")
    #expect(export.output == #"{"u1":{"n":1}}"# + "\n")
    #expect(
      try dendro("export", "db", "-o", "out", "--salvage", "--json").object["lsn"] as? Int == 2)
    // Of a good database it is the head.
    try fill("other")
    #expect(try dendro("get", "other", "--salvage", "--json").object["lsn"] as? Int == 12)
    #expect(try dendro("export", "other", "/users/u1", "--at", "3").output == #"{"n":1}"# + "\n")
  }

  @Test("of very many places the first are printed; --json has all")
  func manyPlaces() throws {
    for number in 1...40 { try dendro("set", "db", "/n\(number)", "\(number)") }
    for lsn in stride(from: 2, to: 40, by: 2) { try damage(lsn) }
    let text = try dendro("repair", "db", "--dry-run").output
    #expect(text.split(separator: "\n").filter { $0.hasPrefix("damage: ") }.count == 11)
    #expect(text.contains("damage: and 9 places more (--json lists all)\n"), "\(text)")
    #expect(
      text.contains(
        "lost          writes 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 8 ranges more\n"))
    let json = try dendro("repair", "db", "--dry-run", "--json").object
    #expect((json["damage"] as? [Any])?.count == 19 && (json["lost"] as? [Any])?.count == 19)
    let verify = try dendro("verify", "db")
    #expect(verify.status == 2 && !verify.output.contains("more (--json"))
  }

  @Test("names of files may say anything: nothing traps")
  func hostileNames() throws {
    try fill()
    for name in [
      "00000000000000000000.log", "18446744073709551615.log", "00000000000000000000.checkpoint",
      "18446744073709551615.checkpoint", "09223372036854775807.log",
    ] {
      try folder.write(folder.bytes("db/\(Self.log)"), to: "db/\(name)")
      for words in [
        ["repair", "db", "--dry-run"], ["repair", "db", "--dry-run", "--json"], ["info", "db"],
        ["info", "db", "--full"], ["log", "db"], ["log", "db", "--last", "3"],
        ["log", "db", "--reverse"], ["log", "db", "--stats"], ["get", "db", "--salvage"],
        ["blame", "db"], ["history", "db", "/"], ["dump", "db", "1"], ["dump", "db", "0:64"],
        ["verify", "db"], ["export", "db", "--at", "1"], ["diff", "db", "--from", "1"],
      ] {
        let outcome = try dendro.run(words)
        #expect(!outcome.wasSignalled, "\(name): \(words)")
        #expect([0, 1, 2, 64, 69].contains(outcome.status), "\(name): \(words) \(outcome.errors)")
      }
    }
  }
}
