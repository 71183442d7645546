import Foundation
import Testing

/// What is said where a file is not there: its own name, and nothing of those that are.
@Suite("a missing file")
struct MissingFileTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }

  /// Segments that begin with 1, 6, 11 and 16, and checkpoints at 10 and 15; 15 writes.
  init() throws {
    dendro = Tool(folder: try Folder())
    for number in 1...15 {
      try dendro("set", "db", "/k\(number)", "\(number)")
      if number % 5 == 0 { try dendro("checkpoint", "db") }
    }
    let names = try folder.names(in: "db").filter { $0.hasSuffix(".log") }
    #expect(names == [1, 6, 11, 16].map(Self.log))
  }

  private static func log(_ number: Int) -> String {
    String(repeating: "0", count: 20 - "\(number)".count) + "\(number).log"
  }

  private func remove(_ names: [String]) throws {
    for name in names { try FileManager.default.removeItem(atPath: "\(folder.path)/db/\(name)") }
  }

  private var checkpoints: [String] {
    get throws { try folder.names(in: "db").filter { $0.hasSuffix(".checkpoint") } }
  }

  /// Every sentence about damage that the verbs print.
  private func sentences() throws -> [String] {
    var sentences: [String] = []
    for words in [
      ["get", "db", "/k1"], ["get", "db", "/k1", "--at", "8"], ["verify", "db"],
      ["verify", "db", "--quick"], ["log", "db"], ["info", "db"], ["info", "db", "--full"],
      ["repair", "db", "--dry-run"],
    ] {
      let outcome = try dendro.run(words)
      #expect(!outcome.wasSignalled)
      sentences += (outcome.output + outcome.errors).split(separator: "\n").map(String.init)
        .filter { $0.contains("missing") || $0.contains("damaged at") || $0.contains("expected") }
    }
    return sentences
  }

  @Test("every verb names the segment that is missing in the middle of the log, and no other file")
  func middle() throws {
    try remove([Self.log(6)])
    let said = try sentences()
    #expect(said.count >= 5, "\(said)")
    for sentence in said {
      #expect(
        sentence.contains(
          "\(Self.log(6)) is missing from \(folder.path)/db: the seal of \(Self.log(1)) names it, "
            + "and the next segment, \(Self.log(11)), begins with write 11"), "\(sentence)")
    }
    // What of the past is left.
    let info = try dendro("info", "db", "--full")
    #expect(
      info.output.contains(
        "history         the states after the writes 0 to 5 and 10 to 15 are proven\n"),
      "\(info.output)")
    let proven = try dendro("info", "db", "--full", "--json").object["proven"]
    #expect(
      proven as? [[String: Int]] == [["first": 0, "last": 5], ["first": 10, "last": 15]])
  }

  @Test("verify reports a missing segment once, and JSON has its name", arguments: [6, 16])
  func once(number: Int) throws {
    try remove([Self.log(number)])
    for words in [["verify", "db", "--json"], ["verify", "db", "--quick", "--json"]] {
      let outcome = try dendro.run(words)
      #expect(outcome.status == 2)
      let damage = outcome.object["damage"] as? [[String: Any]] ?? []
      #expect(damage.count == 1, "\(outcome.output)")
      #expect(damage.first?["missing"] as? String == Self.log(number))
      #expect(damage.first?["file"] as? String == "\(folder.path)/db")
      #expect(damage.first?["offset"] is NSNull)
    }
    let repair = try dendro("repair", "db", "--dry-run", "--json").object
    let damage = repair["damage"] as? [[String: Any]] ?? []
    #expect(damage.count == 1 && damage.first?["missing"] as? String == Self.log(number))
  }

  @Test(
    "every verb names the last segment if it is missing, and repair calls no write lost that may never have been"
  )
  func end() throws {
    try remove([Self.log(16)])
    let said = try sentences()
    #expect(said.count >= 5, "\(said)")
    for sentence in said where !sentence.hasPrefix("lost") {
      #expect(
        sentence.contains("\(Self.log(16)) is missing from \(folder.path)/db: "), "\(sentence)")
    }
    let repair = try dendro("repair", "db", "--dry-run")
    #expect(repair.status == 1)
    #expect(
      repair.output.contains(
        "lost          the writes from 16 on, if there were any: the log behind write 15 is missing\n"
      ),
      "\(repair.output)")
  }

  @Test("no verb calls an empty segment missing", arguments: [11, 16])
  func empty(number: Int) throws {
    try folder.write(Data(), to: "db/\(Self.log(number))")
    for sentence in try sentences() {
      #expect(!sentence.contains("\(Self.log(number)) is missing"), "\(sentence)")
    }
    #expect(
      try sentences().contains { $0.contains(Self.log(number)) && $0.contains("found nothing") })
  }

  @Test("without its first segment and a checkpoint, the log lacks its beginning")
  func beginning() throws {
    try remove([Self.log(1)] + checkpoints)
    let said = try sentences()
    #expect(said.count >= 4, "\(said)")
    for sentence in said {
      #expect(
        sentence.contains(
          "the log from write 1 on is missing from \(folder.path)/db: its first segment, "
            + "\(Self.log(6)), begins with write 6"), "\(sentence)")
    }
    let repair = try dendro("repair", "db", "new")
    #expect(repair.output.contains("lost          writes 1 to 5\n"))
    #expect(repair.output.contains("history       from write 6 on, without what is lost\n"))
    #expect(try dendro("get", "new", "/", "--at", "6").output == "{\n  \"k6\": 6\n}\n")
  }

  @Test("a directory without any segment lacks its log")
  func wholeLog() throws {
    try remove([1, 6, 11, 16].map(Self.log))
    let outcome = try dendro("get", "db", "/k1")
    #expect(outcome.status == 2)
    #expect(
      outcome.errors.contains(
        "the log from write 16 on is missing from \(folder.path)/db: there is no segment"),
      "\(outcome.errors)")
  }

  @Test("verify names every file that is missing from an archive, also its oldest ones")
  func archive() throws {
    try dendro("backup", "db", "db-archive", "--incremental")
    let names = try folder.names(in: "db-archive").filter {
      $0.hasSuffix(".log") || $0.hasSuffix(".checkpoint")
    }
    #expect(names.count >= 4, "\(names)")
    for name in names {
      let path = "\(folder.path)/db-archive/\(name)"
      try FileManager.default.moveItem(atPath: path, toPath: "\(folder.path)/moved")
      for words in [["verify", "db-archive"], ["verify", "db-archive", "--quick"]] {
        let outcome = try dendro.run(words)
        #expect(outcome.status == 2, "\(name): \(outcome.output)")
        #expect(
          (outcome.output + outcome.errors).contains(
            "\(name) is missing from \(folder.path)/db-archive"),
          "\(outcome.output) \(outcome.errors)")
      }
      try FileManager.default.moveItem(atPath: "\(folder.path)/moved", toPath: path)
    }
    try dendro("verify", "db-archive")
  }

  @Test("repair says that only the name of an empty checkpoint tells of lost writes")
  func laterCheckpoint() throws {
    let name = Self.log(999).replacing(".log", with: ".checkpoint")
    try folder.write(Data(), to: "db/\(name)")
    let get = try dendro("get", "db", "/k1")
    #expect(get.status == 2)
    #expect(get.errors.contains("expected writes up to LSN 999, as a checkpoint says, "))
    let repair = try dendro("repair", "db", "--dry-run")
    #expect(
      repair.output.contains(
        "lost          writes 16 to 999, as the name of the checkpoint at LSN 999 says, which cannot be read\n"
      ), "\(repair.output)")
    let json = try dendro("repair", "db", "--dry-run", "--json").object
    #expect(json["lostByName"] as? Int == 999)
  }
}
