import Foundation
import Testing

/// `info` says what it has read, and no more.
@Suite("dendro info: of damaged directories")
struct InfoTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// Segments that begin with 1, 6 and 11, and checkpoints at 5 and 10; 15 writes.
  private func fill(_ name: String = "db") throws {
    for number in 1...15 {
      try dendro("set", name, "/k\(number)", "\(number)")
      if number == 5 || number == 10 { try dendro("checkpoint", name) }
    }
  }

  private static func log(_ number: Int, in name: String = "db") -> String {
    "\(name)/" + String(repeating: "0", count: 20 - "\(number)".count) + "\(number).log"
  }

  private func flip(_ file: String, _ offset: Int) throws {
    var bytes = folder.bytes(file)
    bytes[offset] ^= 0x10
    try folder.write(bytes, to: file)
  }

  /// Where the record of a write begins, or its payload.
  private func offset(of write: Int, behindHeader: Bool = false) throws -> Int {
    for line in try dendro("log", "db", "--records", "--json").lines {
      let record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      guard record?["firstLSN"] as? Int == write, record?["kind"] as? String == "writes" else {
        continue
      }
      let header = behindHeader ? record?["headerBytes"] as? Int ?? 0 : 0
      return (record?["offset"] as? Int ?? 0) + header
    }
    throw CocoaError(.fileNoSuchFile)
  }

  private struct Said {
    let status: Int32
    let text: String
    let object: [String: Any]

    func integer(_ name: String) -> Int? { object[name] as? Int }
    var segments: [[String: Any]] { object["segments"] as? [[String: Any]] ?? [] }
  }

  private func info(_ words: [String]) throws -> Said {
    let text = try dendro.run(["info"] + words)
    let json = try dendro.run(["info", "--json"] + words)
    #expect(text.status == json.status)
    return Said(status: text.status, text: text.output, object: json.object)
  }

  @Test("both ways of reading a good database agree")
  func good() throws {
    try fill()
    let (short, full) = (try info(["db"]), try info(["db", "--full"]))
    #expect(short.status == 0 && full.status == 0)
    for name in ["lastLSN", "durableUpTo", "writesInLog"] {
      #expect(short.integer(name) == 15 && full.integer(name) == 15, "\(name)")
    }
    #expect(short.text.contains("5 writes, to LSN 5, by the names of the files\n"))
    #expect(!full.text.contains("by the names"))
  }

  @Test("an empty file says nothing by its name", arguments: ["log", "checkpoint"])
  func emptyFile(kind: String) throws {
    try fill()
    try folder.write(Data(), to: Self.log(300).replacing(".log", with: ".\(kind)"))
    for words in [["db"], ["db", "--full"]] {
      let said = try info(words)
      #expect(said.status == 2)
      #expect(said.integer("lastLSN") == 15 && said.integer("durableUpTo") == 15, "\(said.text)")
      #expect(said.integer("writesInLog") == 15)
    }
  }

  @Test("an unfinished record is none")
  func torn() throws {
    try fill()
    let file = Self.log(11)
    let end = try offset(of: 15, behindHeader: true)
    try folder.write(folder.bytes(file).prefix(end + 1), to: file)
    for words in [["db"], ["db", "--full"]] {
      let said = try info(words)
      #expect(said.status == 0)
      #expect(said.integer("lastLSN") == 14 && said.integer("writesInLog") == 14, "\(said.text)")
      #expect(said.text.contains("unfinished end: "))
    }
  }

  @Test("a damaged payload of the last segment is found, and what depends on it is one line")
  func payload() throws {
    try fill()
    try flip(Self.log(11), try offset(of: 13, behindHeader: true))
    for words in [["db"], ["db", "--full"]] {
      let said = try info(words)
      #expect(said.status == 2)
      let unreadable = try #require(said.segments.last?["unreadableRecords"] as? Int)
      #expect(unreadable >= 1)
      #expect(said.integer("writesInLog") == 15 - unreadable)
      #expect(said.text.components(separatedBy: "damage: ").count == 2, "\(said.text)")
      #expect(said.text.contains("of a damaged log, as far as it can be read"))
    }
  }

  @Test("a segment with a damaged header, or of another database, cannot be read")
  func header() throws {
    try fill()
    let (first, last) = (folder.bytes(Self.log(1)), folder.bytes(Self.log(11)))
    try flip(Self.log(11), 50)
    for words in [["db"], ["db", "--full"]] {
      let said = try info(words)
      #expect(said.status == 2 && said.integer("lastLSN") == 10, "\(said.text)")
      #expect(said.segments.map { $0["good"] as? Bool } == [true, true, false])
    }
    try folder.write(last, to: Self.log(11))
    try fill("other")
    for (file, bytes) in [
      (Self.log(1), folder.bytes(Self.log(1, in: "other"))),
      (Self.log(6), folder.bytes(Self.log(11))),
    ] {
      let good = folder.bytes(file)
      try folder.write(bytes, to: file)
      let said = try info(["db"])
      #expect(said.status == 2)
      #expect(said.segments.filter { $0["good"] as? Bool == false }.count == 1, "\(said.text)")
      #expect(said.text.contains("cannot be read\n"))
      try folder.write(good, to: file)
    }
    // Most of the files say which database it is, not the first one.
    for name in try folder.names(in: "db") where name.hasSuffix(".checkpoint") {
      try FileManager.default.removeItem(atPath: folder.path + "/db/\(name)")
    }
    try folder.write(folder.bytes(Self.log(1, in: "other")), to: Self.log(1))
    #expect(try info(["db"]).segments.map { $0["good"] as? Bool } == [false, true, true])
    try folder.write(first, to: Self.log(1))
    #expect(try info(["db"]).status == 0)
  }

  @Test("a backup without its checkpoint cannot be opened; without its log, it has no more writes")
  func backup() throws {
    try fill()
    try dendro("backup", "db", "copy", "--parity")
    let names = try folder.names(in: "copy")
    let checkpoint = try #require(names.first { $0.hasSuffix(".checkpoint") })
    let bytes = folder.bytes("copy/\(checkpoint)")
    try FileManager.default.removeItem(atPath: folder.path + "/copy/\(checkpoint)")
    let headless = try info(["copy"])
    #expect(headless.status == 2)
    #expect(headless.text.contains("opening         fails\n"), "\(headless.text)")
    #expect(headless.text.contains("no file to      \(checkpoint).parity\n"), "\(headless.text)")
    #expect(headless.text.contains("no checkpoint that can be read has writes 1 to 15"))
    try folder.write(bytes, to: "copy/\(checkpoint)")
    for name in names where name.hasSuffix(".log") {
      try FileManager.default.removeItem(atPath: folder.path + "/copy/\(name)")
    }
    for words in [["copy"], ["copy", "--full"]] {
      let said = try info(words)
      #expect(said.status == 2)
      #expect(said.integer("lastLSN") == 15 && said.integer("durableUpTo") == 15, "\(said.text)")
    }
  }

  @Test("dump ends with exit code 2 where the payload, or the header on the way, is damaged")
  func dump() throws {
    try fill()
    #expect(try dendro("dump", "db", "13").status == 0)
    try flip(Self.log(11), try offset(of: 13, behindHeader: true))
    let payload = try dendro("dump", "db", "13")
    #expect(payload.status == 2 && payload.output.contains("damage: "), "\(payload.output)")
    try flip(Self.log(11), 50)
    let header = try dendro("dump", "db", "13")
    #expect(header.status == 2 && header.errors.contains("the log is damaged"))
    #expect(try dendro("dump", "db", "400").status == 2)
  }

  @Test("a write that never was is not called one that is not kept")
  func never() throws {
    try fill()
    try dendro("checkpoint", "db", "--history", "none")
    let never = try dendro("get", "db", "/k1", "--at", "5000")
    #expect(
      never.errors.contains(
        "there is no write 5000 yet; the only state that can be read is that after write 15"))
    let lost = try dendro("get", "db", "/k1", "--at", "5")
    #expect(lost.errors.contains("is not kept") && lost.status == 1)
  }
}
