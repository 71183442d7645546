import Foundation
import Testing

/// What the verbs say of records that do not stand where they were written.
@Suite("displaced records")
struct DisplacedRecordsTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  private let count = 15

  /// A log from which the record of write 8 was cut out, so that all behind it moved.
  init() throws {
    dendro = Tool(folder: try Folder())
    for number in 1...count { try dendro("set", "db", "/k\(number)", "\(number)") }
    let record = try #require(
      try dendro("log", "db", "--records", "--json").lines.compactMap { line in
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      }.first { $0["firstLSN"] as? Int == 8 && $0["kind"] as? String == "writes" })
    let start = try #require(record["offset"] as? Int)
    let length = try #require(record["headerBytes"] as? Int) + (record["storedBytes"] as? Int ?? 0)
    let name = "db/" + (try #require(record["file"] as? String))
    var bytes = folder.bytes(name)
    bytes.removeSubrange(start..<start + length)
    try folder.write(bytes, to: name)
  }

  @Test("log and info count the writes in front of displaced records as durable")
  func durable() throws {
    let text = try dendro("log", "db")
    #expect(text.status == 2)
    #expect(
      text.output.contains(
        "passed over, with displaced records, which prove write \(count) durable\n"),
      "\(text.output)")
    #expect(!(text.output + text.errors).contains("*"), "\(text.output)")
    for words in [["db"], ["db", "--full"]] {
      let info = try dendro.run(["info", "--json"] + words).object
      #expect(info["durableUpTo"] as? Int == count)
      #expect(info["lastLSN"] as? Int == 7)
    }
    #expect(try dendro("get", "db").errors.contains("a durable record is damaged; from LSN 8 on"))
  }

  @Test("repair saves displaced records, and its history begins behind the lost write")
  func saved() throws {
    let repair = try dendro("repair", "db", "new")
    #expect(repair.status == 1)
    #expect(repair.output.contains("saved         writes 1 to 7 and 9 to \(count)\n"))
    #expect(
      repair.output.contains("history       from write 9 on, without what is lost\n"),
      "\(repair.output)")
    #expect(try dendro("verify", "new").status == 0)
  }

  @Test("restore takes the states of a damaged database that are proven, and no other")
  func restored() throws {
    let outcome = try dendro("restore", "db", "old", "--at", "5")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(
      outcome.errors.contains(
        "the database is damaged; this is its state after write 5, which is proven"))
    #expect(try dendro("get", "old").output == dendro("get", "db", "--at", "5").output)
    #expect(try dendro("verify", "old").status == 0)
    for words in [["restore", "db", "new", "--at", "9"], ["restore", "db", "new"]] {
      #expect(try dendro.run(words).status == 2)
      #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/new"))
    }
  }
}
