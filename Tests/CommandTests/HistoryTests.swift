import DendroPlatform
import Foundation
import Testing

@Suite("dendro: history")
struct HistoryTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// Ten writes of their own number, a checkpoint after every third.
  private func fill() throws {
    for number in 1...10 {
      try dendro("set", "db", "/n", "\(number)")
      if number % 3 == 0 { try dendro("checkpoint", "db") }
    }
  }

  private func oldest() throws -> Int? {
    let info = try dendro("info", "db", "--json").object
    return (info["history"] as? [String: Any])?["oldest"] as? Int
  }

  @Test("get reads what was there after a write, and at a time")
  func get() throws {
    try fill()
    for number in 1...10 {
      let outcome = try dendro("get", "db", "/n", "--at", "\(number)")
      #expect(outcome.output == "\(number)\n")
    }
    #expect(try dendro("get", "db", "/n", "--at", "0").status == 1)
    #expect(try dendro("get", "db", "/n", "--at", "2100-01-01").output == "10\n")
    #expect(try dendro("get", "db", "/n", "--at", "2000-01-01").output == "null\n")
    let writes = try dendro("log", "db", "--json").lines.map { line in
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    }
    let time = try #require(writes[4]?["time"] as? Int)
    let milliseconds = String(format: "%03d", time % 1000)
    let date = Date(timeIntervalSince1970: Double(time / 1000)).formatted(.iso8601).dropLast()
    let then = try dendro("get", "db", "/n", "--json", "--at", "\(date).\(milliseconds)").object
    #expect(then["lsn"] as? Int == writes.last { $0?["time"] as? Int == time }??["lsn"] as? Int)
    let late = try dendro("get", "db", "/n", "--at", "11")
    #expect(late.status == 1 && late.errors.contains("0 to 10"))
    #expect(try dendro("get", "db", "/n", "--at", "yesterday").status == 64)
  }

  @Test(
    "writing verbs keep the history; checkpoint removes as much of it as it is asked to, purge all of it"
  )
  func keeping() throws {
    try fill()
    #expect(try oldest() == 0)
    #expect(try dendro("info", "db").output.contains("\nhistory         back to write 0\n"))
    let good = try dendro("verify", "db", "--json").object
    #expect(good["good"] as? Bool == true && good["writes"] as? Int == 10)
    #expect(try dendro("checkpoint", "db", "--history", "something").status == 64)
    #expect(try dendro("checkpoint", "db", "--history", "writes:100").status == 0)
    #expect(try oldest() == 0)
    try dendro("set", "db", "/n", "11")
    #expect(try dendro("checkpoint", "db", "--history", "none").status == 0)
    #expect(try oldest() == 11)
    try dendro("set", "db", "/n", "12")
    #expect(try dendro("purge", "db").status == 64, "without a terminal it needs --force")
    #expect(try oldest() == 11)
    let purged = try dendro("purge", "db", "--force", "--json")
    #expect(purged.status == 0)
    #expect(purged.object["oldestBefore"] as? Int == 11 && purged.object["oldest"] as? Int == 12)
    #expect(try oldest() == 12)
    #expect(try dendro("verify", "db").status == 0)
    #expect(try dendro("get", "db", "/n").output == "12\n")
  }

  private func byteCount() throws -> Int {
    try folder.names(in: "db").reduce(0) { sum, name in
      let attributes = try FileManager.default.attributesOfItem(
        atPath: folder.path + "/db/" + name)
      return sum + (attributes[.size] as? Int ?? 0)
    }
  }

  @Test("checkpoint --history none gives all room back: the last state is all that is there")
  func givesBack() throws {
    for round in 0..<8 {
      let members = (0..<500).map { "\"k\($0)\":\"\(round) and a value \($0)\"" }
      try dendro("set", "db", "/", "-", input: "{\(members.joined(separator: ","))}")
    }
    let text = try dendro("export", "db").output
    try dendro("checkpoint", "db")
    // Nothing was written since: the room is given back all the same.
    let outcome = try dendro("checkpoint", "db", "--history", "none", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let checkpoints = try folder.names(in: "db").filter { $0.hasSuffix(".checkpoint") }
    #expect(checkpoints.count == 1)
    let size =
      try FileManager.default.attributesOfItem(
        atPath: folder.path + "/db/" + (try #require(checkpoints.first)))[.size] as? Int ?? 0
    let whole = try byteCount()
    #expect(whole < size + 1024, "beside the checkpoint only an empty segment: \(whole), \(size)")
    #expect(outcome.object["bytesBefore"] as? Int ?? 0 > whole)
    let after = outcome.object["bytesAfter"] as? Int ?? 0
    #expect((size..<whole).contains(after), "without the files of the locks")
    #expect(try oldest() == 8)
    #expect(try dendro("export", "db").output == text)
    #expect(try dendro("verify", "db").status == 0)
    // The next ones are as small.
    for number in 0..<3 {
      try dendro("set", "db", "/k0", "\(number)")
      #expect(try dendro("checkpoint", "db", "--history", "none").status == 0)
      #expect(try byteCount() < whole + 1024)
    }
  }

  @Test("log --follow prints the log, then each write as it comes")
  func follow() throws {
    try fill()
    let running = try dendro.start(["log", "db", "--last", "2", "--follow", "--json"])
    #expect(running.waitForOutput("\"lsn\":10"))
    try dendro("set", "db", "/n", "11")
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/n", "12")
    #expect(running.waitForOutput("\"lsn\":12"))
    running.send(SIGTERM)
    let outcome = try running.wait()
    #expect(outcome.status == 143)
    let numbers = try outcome.lines.map { line in
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return object?["lsn"] as? Int
    }
    #expect(numbers == [9, 10, 11, 12])
  }
}
