import DendroEngine
import DendroStorage
import DendroTestSupport
import Foundation
import Testing

@Suite("dendro: what proves itself is saved, and what is said of it is true")
struct SalvageTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private static let log = "00000000000000000001.log"

  /// Sixty commits of one write each.
  private func fill() throws {
    let lines = (1...60).map { #"set /users/u\#($0) '{"n":\#($0)}'"# }
    let outcome = try dendro.run(["shell", "db"], input: lines.joined(separator: "\n") + "\n")
    #expect(outcome.status == 0, "\(outcome.errors)")
  }

  private func damage(_ file: String, _ body: (inout DamagedFile) -> Void) throws {
    var damaged = DamagedFile(file, Array(folder.bytes(file)))
    body(&damaged)
    try folder.write(Data(damaged.bytes), to: file)
  }

  private func ranges(_ object: [String: Any], _ name: String) -> [ClosedRange<Int>] {
    (object[name] as? [[String: Int]] ?? []).map { ($0["first"] ?? 0)...($0["last"] ?? 0) }
  }

  @Test(
    "bytes that were removed or inserted cost only the writes that they hit",
    arguments: [true, false])
  func displaced(isRemoved: Bool) throws {
    try fill()
    try damage("db/\(Self.log)") { file in
      if isRemoved { file.remove(1000..<1200) } else { file.insert([1, 2, 3, 4, 5], at: 1000) }
    }
    #expect(try dendro("verify", "db").status == 2)
    let outcome = try dendro("repair", "db", "new", "--json")
    let report = outcome.object
    #expect(report["lastLSN"] as? Int == 60 && report["provenUpTo"] as? Int == 60)
    let lost = ranges(report, "lost").flatMap { Array($0) }
    // Bytes between two records cost nothing.
    #expect(lost.count <= (isRemoved ? 6 : 1) && (!lost.isEmpty || !isRemoved), "\(lost)")
    #expect(outcome.status == (lost.isEmpty ? 0 : 1))
    #expect(report["whole"] as? Bool == lost.isEmpty)
    #expect(try dendro("verify", "new").status == 0)
    for number in 1...60 {
      let found = try dendro("get", "new", "/users/u\(number)/n").output
      #expect(found == (lost.contains(number) ? "null\n" : "\(number)\n"))
    }
  }

  @Test(
    "a segment's header is found again by its checksum or by its records", arguments: [0, 1, 2])
  func header(kind: Int) throws {
    try fill()
    let good = try dendro("export", "db").output
    try damage("db/\(Self.log)") { file in
      switch kind {
      case 0: file.change(33..<34) { $0 ^ 4 }
      case 1: file.change(0..<64) { _ in 0 }
      default: file.change(8..<64) { _ in 0x55 }
      }
    }
    #expect(try dendro("verify", "db").status == 2)
    let outcome = try dendro("repair", "db", "new")
    #expect(outcome.status == 0, "\(outcome.output)")
    #expect(outcome.output.contains("as far as the files say: write 60 is proven durable"))
    #expect(try dendro("export", "new").output == good)
    #expect(try dendro("verify", "new").status == 0)
  }

  @Test("if the log behind a checkpoint is gone, nothing is called whole")
  func logGone() throws {
    try fill()
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/more", "1")
    for name in try folder.names(in: "db") where name.hasSuffix(".log") {
      try FileManager.default.removeItem(atPath: "\(folder.path)/db/\(name)")
    }
    let outcome = try dendro("repair", "db", "new", "--json")
    #expect(outcome.status == 1)
    #expect(outcome.object["whole"] as? Bool == false && outcome.object["lostFrom"] as? Int == 61)
    #expect(outcome.object["leaves"] as? Int == 60)
  }

  /// A backup with many chunks.
  private func backUp() throws -> (name: String, size: Int) {
    var random = SeededGenerator(seed: 5)
    let users = (0..<6000).map { number in
      let text = String(
        (0..<80).map { _ in Character(UnicodeScalar(UInt8(97 + random.below(26)))) })
      return #""u\#(10000 + number)":{"n":\#(number),"text":"\#(text)"}"#
    }
    try folder.write(#"{"users":{\#(users.joined(separator: ","))}}"#, to: "seed.json")
    try dendro("import", "source", "/", "seed.json")
    try dendro("backup", "source", "db")
    let name = try #require(try folder.names(in: "db").first { $0.hasSuffix(".checkpoint") })
    return (name, folder.bytes("db/\(name)").count)
  }

  @Test("of a backup with a damaged chunk all other chunks are saved, and what is lost is named")
  func chunk() throws {
    let (name, size) = try backUp()
    try damage("db/\(name)") { $0.change(size / 2..<size / 2 + 1) { $0 ^ 1 } }
    let outcome = try dendro("repair", "db", "new", "--json")
    #expect(outcome.status == 1 && outcome.object["whole"] as? Bool == false)
    let holes = outcome.object["holes"] as? [[String: Any]] ?? []
    #expect(!holes.isEmpty)
    let lost = holes.reduce(0) { $0 + ($1["children"] as? Int ?? 0) }
    #expect(holes.allSatisfy { $0["path"] as? String == "/users" })
    #expect(outcome.object["leaves"] as? Int == 2 * (6000 - lost))
    #expect(lost > 0 && lost < 3000)
    #expect(try dendro("verify", "new").status == 0)
    let first = try #require(holes[0]["first"] as? String)
    for number in 0..<6000 where number % 97 == 0 {
      let key = "u\(10000 + number)"
      let isLost = holes.contains { hole in
        (hole["first"] as? String).map { key >= $0 } ?? true
          && (hole["end"] as? String).map { key < $0 } ?? true
      }
      #expect(
        try dendro("get", "new", "/users/\(key)/n").output == (isLost ? "null\n" : "\(number)\n"))
    }
    #expect(try dendro("get", "new", "/users/\(first)").output == "null\n")
  }

  @Test("a checkpoint's header, index and footer have a second way each", arguments: 0...4)
  func secondWay(kind: Int) throws {
    let (name, size) = try backUp()
    let good = try dendro("export", "db").output
    try damage("db/\(name)") { file in
      switch kind {
      case 0: file.change(20..<21) { $0 ^ 1 }
      case 1: file.change(size - 80..<size - 70) { _ in 0 }
      case 2: file.change(size - 64..<size) { _ in 0 }
      case 3: file.change(34..<35) { $0 ^ 0x5A }
      default:
        file.change(0..<8) { _ in 0x58 }
        file.change(40..<48) { _ in 0xFF }
        file.change(50..<51) { $0 ^ 0xFF }
      }
    }
    #expect(try dendro("verify", "db").status == 2)
    #expect(try dendro("repair", "db", "new").status == 0)
    #expect(try dendro("export", "new").output == good)
  }

  @Test("two checkpoints, each with another damaged chunk, prove the state together")
  func together() throws {
    _ = try backUp()
    try dendro("checkpoint", "source")
    try dendro("set", "source", "/extra", "1")
    try dendro("checkpoint", "source")
    try dendro("set", "source", "/extra", "2")
    let good = try dendro("export", "source").output
    let names = try folder.names(in: "source").sorted()
    let checkpoints = names.filter { $0.hasSuffix(".checkpoint") }
    #expect(checkpoints.count == 2)
    // The import's own writes are not needed.
    let log = try #require(names.first { $0.hasSuffix(".log") })
    try FileManager.default.removeItem(atPath: "\(folder.path)/source/\(log)")
    for (name, share) in zip(checkpoints, [4, 2]) {
      let place = folder.bytes("source/\(name)").count / share
      try damage("source/\(name)") { $0.change(place..<place + 1) { $0 ^ 1 } }
    }
    let outcome = try dendro("repair", "source", "new", "--json")
    #expect(outcome.status == 0 && outcome.object["whole"] as? Bool == true, "\(outcome.output)")
    let last = try #require(outcome.object["lastLSN"] as? Int)
    #expect(ranges(outcome.object, "proven").contains { $0.contains(last) }, "\(outcome.output)")
    #expect(try dendro("export", "new").output == good)
    #expect(try dendro("export", "source", "--salvage").output == good)
    #expect(try dendro("get", "source", "/extra", "--salvage").output == "2\n")
  }

  @Test("a file without a header is found by the checkpoint in front of it, whatever its name is")
  func headerBehindCheckpoint() throws {
    try fill()
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/extra", "1")
    let good = try dendro("export", "db").output
    let names = try folder.names(in: "db").filter { $0.hasSuffix(".log") }.sorted()
    #expect(names.count == 2)
    try damage("db/\(names[1])") { $0.change(0..<64) { _ in 0 } }
    try FileManager.default.removeItem(atPath: "\(folder.path)/db/\(names[0])")
    try FileManager.default.moveItem(
      atPath: "\(folder.path)/db/\(names[1])", toPath: "\(folder.path)/db/\(names[0])")
    let outcome = try dendro("repair", "db", "new")
    #expect(outcome.status == 0, "\(outcome.output)")
    #expect(outcome.output.contains("its records show what it was\n"), "\(outcome.output)")
    #expect(try dendro("export", "new").output == good)
  }

  @Test("chunks to which nothing leads are saved apart")
  func apart() throws {
    let (name, size) = try backUp()
    try damage("db/\(name)") { $0.remove(size / 2..<size) }
    let outcome = try dendro("repair", "db", "new")
    #expect(outcome.status == 1, "\(outcome.output)")
    #expect(outcome.output.contains("are in new-apart.jsonl"), "\(outcome.output)")
    // How many chunks there were is not known.
    let said = #/; its end is lost, and none of the \d+ chunks before it is lost\n/#
    #expect(outcome.output.contains(said), "\(outcome.output)")
    let lines = String(decoding: folder.bytes("new-apart.jsonl"), as: UTF8.self).split(
      separator: "\n")
    var users = 0
    for line in lines {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      let value = try #require(object["value"] as? [String: [String: Any]])
      #expect(value.keys.min() == object["firstKey"] as? String)
      for (key, user) in value { #expect("u\(10000 + (user["n"] as? Int ?? -1))" == key) }
      users += value.count
    }
    #expect(users > 1000)
    #expect(try dendro("repair", "db", "new").status == 1)
  }

  @Test("of two histories under the same numbers one is saved, and the other is written apart")
  func forks() throws {
    try fill()
    try FileManager.default.copyItem(
      atPath: "\(folder.path)/db", toPath: "\(folder.path)/other")
    for number in 1...5 { try dendro("set", "db", "/late/u\(number)", "1") }
    for number in 1...8 { try dendro("set", "other", "/late/u\(number)", "2") }
    let good = try dendro("export", "db").output
    try folder.write(Data(folder.bytes("other/\(Self.log)")), to: "db/00000000000000000500.log")
    let outcome = try dendro("repair", "db", "new", "--json")
    #expect(outcome.status == 0, "\(outcome.output)")
    #expect(outcome.object["lastLSN"] as? Int == 65 && outcome.object["apartWrites"] as? Int == 8)
    #expect(try dendro("export", "new").output == good)
    let lines = String(decoding: folder.bytes("new-apart.jsonl"), as: UTF8.self).split(
      separator: "\n")
    #expect(lines.count == 8)
    for (index, line) in lines.enumerated() {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      #expect(object["lsn"] as? Int == 61 + index && object["value"] as? Int == 2)
      #expect(object["path"] as? String == "/late/u\(index + 1)")
      #expect((object["file"] as? String)?.hasSuffix("/00000000000000000500.log") == true)
    }
  }

  @Test("a segment of another database counts for nothing, and is named")
  func foreignSegment() throws {
    try fill()
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/more", "1")
    for number in 1...60 { try dendro("set", "other", "/users/u\(number)", #"{"n":-1}"#) }
    let good = try dendro("export", "db").output
    try folder.write(Data(folder.bytes("other/\(Self.log)")), to: "db/\(Self.log)")
    #expect(try dendro("export", "db").output == good)
    let at = try dendro("get", "db", "/users/u5/n", "--at", "20")
    #expect(at.status == 2 && at.output.isEmpty, "\(at.output)")
    #expect(try dendro("hash", "db", "--at", "20").status == 2)
    let verify = try dendro("verify", "db")
    #expect(verify.status == 2 && verify.output.contains("\(Self.log)"), "\(verify.output)")
    let repair = try dendro("repair", "db", "new")
    #expect(repair.status == 0 && repair.output.contains(Self.log), "\(repair.output)")
    #expect(try dendro("export", "new").output == good)
  }

  @Test("a checkpoint of another database is passed over and named")
  func foreignCheckpoint() throws {
    try fill()
    for number in 1...80 { try dendro("set", "other", "/n\(number)", "1") }
    try dendro("checkpoint", "other")
    let good = try dendro("export", "db").output
    let name = "00000000000000000080.checkpoint"
    try folder.write(folder.bytes("other/\(name)"), to: "db/\(name)")
    let export = try dendro("export", "db")
    #expect(export.status == 0 && export.output == good, "\(export.errors)")
    let verify = try dendro("verify", "db")
    #expect(verify.status == 2 && verify.output.contains(name), "\(verify.output)")
    let repair = try dendro("repair", "db", "new", "--json")
    #expect(repair.object["whole"] as? Bool == true, "\(repair.output)")
    #expect(try dendro("export", "new").output == good)
  }

  @Test(
    "a damaged seal and bytes behind a seal are damage, though opening needs neither",
    arguments: [0, 1, 2])
  func seals(kind: Int) throws {
    let directory = try LoggedDirectory(at: "\(folder.path)/db", seed: 4, keepsHistory: true)
    let name = try #require(directory.segmentNames.dropLast(2).first)
    let seal = try #require(directory.records[name]?.last)
    #expect(seal.kind == .seal)
    let good = try dendro("export", "db").output
    try damage("db/\(name)") { file in
      switch kind {
      case 0: file.change(Int(seal.offset) + 5..<Int(seal.offset) + 6) { $0 ^ 1 }
      case 1: file.change(Int(seal.offset)..<Int(seal.endOffset)) { _ in 0 }
      default: file.insert([7, 7, 7], at: Int(seal.endOffset))
      }
    }
    for words in [["verify", "db"], ["verify", "db", "--quick"]] {
      let outcome = try dendro.run(words)
      #expect(outcome.status == 2 && outcome.output.contains(name), "\(outcome.output)")
    }
    #expect(try dendro("export", "db").output == good)
  }

  @Test("a record that only depends on a damaged one does not count as damage")
  func dependents() throws {
    let posts = (0..<200).map {
      #""p\#(1000 + $0)":{"author":"the same author","title":"number \#($0)"}"#
    }
    try folder.write("{\(posts.joined(separator: ","))}", to: "posts.json")
    try dendro("import", "db", "/posts", "posts.json", "--chunk-size", "5")
    // Most later records refer to the texts of the first one.
    let text = try #require(folder.bytes("db/\(Self.log)").range(of: Data("the same".utf8)))
    try damage("db/\(Self.log)") { $0.change(text) { $0 ^ 1 } }
    let found = try dendro("verify", "db").output
    let places = found.split(separator: "\n").filter { $0.hasPrefix("damage: ") }
    #expect(places.count == 1, "\(found)")
    #expect(found.contains("unreadable: "), "\(found)")
  }

  @Test("where nothing is certain that is said in one line, and the last sure state can be had")
  func doubtAndBeforeGap() throws {
    try fill()
    try dendro("checkpoint", "db")
    for number in 61...70 { try dendro("set", "db", "/extra/e\(number)", "\(number)") }
    let good = try dendro("export", "db", "--at", "63").output
    let segment = "00000000000000000061.log"
    let records = try dendro("log", "db", "--records", "--json").lines.compactMap { line in
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    }
    let hit = try #require(records.first { $0["firstLSN"] as? Int == 64 })
    let place = (hit["offset"] as? Int ?? 0) + (hit["headerBytes"] as? Int ?? 0)
    try damage("db/\(segment)") { $0.change(place..<place + 1) { $0 ^ 1 } }
    let outcome = try dendro("repair", "db", "new")
    #expect(outcome.status == 1)
    #expect(outcome.output.contains("in doubt      /users  all 60 leaves"), "\(outcome.output)")
    let before = try dendro("repair", "db", "before", "--before-gap")
    #expect(before.status == 1 && !before.output.contains("in doubt"), "\(before.output)")
    #expect(try dendro("export", "before").output == good)
    #expect(try dendro("verify", "before").status == 0)
  }
}
