import DendroTestSupport
import Foundation
import Testing

/// What an operator sees of damages that verbs and a server once judged in different ways.
@Suite("dendro: one judgement of a damage")
struct OperatorTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }

  init() throws { dendro = Tool(folder: try Folder()) }

  private func set(_ range: ClosedRange<Int>, in directory: String = "db") throws {
    let lines = range.map { #"set /k\#($0) '"value \#($0)"'"# }
    #expect(try dendro("shell", directory, input: lines.joined(separator: "\n") + "\n").status == 0)
  }

  private func ranges(_ object: [String: Any], _ name: String) -> [ClosedRange<Int>] {
    (object[name] as? [[String: Any]] ?? []).compactMap { range in
      guard let first = range["first"] as? Int, let last = range["last"] as? Int else { return nil }
      return first...last
    }
  }

  @Test("a log that was cut off cleanly is not whole if its parity knows how long it was")
  func cutBehindParity() throws {
    try set(1...400)
    try dendro("backup", "db", "archive", "--incremental")
    let log = try #require(try folder.names(in: "archive").last { $0.hasSuffix(".log") })
    let records = try dendro("log", "archive", "--json").output.split(separator: "\n")
    #expect(records.count == 400)
    var bytes = folder.bytes("archive/\(log)")
    // At whichever byte: the last records are gone.
    bytes.removeLast(bytes.count / 2)
    try folder.write(bytes, to: "archive/\(log)")
    let outcome = try dendro("repair", "archive", "--dry-run", "--json")
    #expect(outcome.status == 1, "\(outcome.errors)")
    let last = try #require(outcome.object["lastLSN"] as? Int)
    #expect(outcome.object["whole"] as? Bool == false)
    #expect(outcome.object["lostFrom"] as? Int == last + 1)
    let text = try dendro("repair", "archive", "--dry-run")
    #expect(
      text.output.contains(
        "the writes from \(last + 1) on, if there were any: the log behind write \(last) is missing"
      ))
  }

  @Test(
    "what an archive has lost at its end is no torn write: its parity gives it back, or it is damage",
    arguments: [true, false])
  func endOfArchive(isCut: Bool) throws {
    try set(1...400)
    try dendro("backup", "db", "archive", "--incremental")
    let log = try #require(try folder.names(in: "archive").last { $0.hasSuffix(".log") })
    let file = "archive/\(log)"
    let whole = folder.bytes(file)
    var bytes = whole
    if isCut {
      bytes.removeLast(206)
    } else {
      for index in bytes.indices.suffix(206) { bytes[index] = ~bytes[index] }
    }
    try folder.write(bytes, to: file)
    #expect(try dendro("restore", "archive", "new", "--json").object["leaves"] as? Int == 400)
    #expect(try dendro("get", "archive", "/k400").output == "\"value 400\"\n")
    #expect(try dendro("log", "archive", "--json").output.split(separator: "\n").count == 400)
    // More than parity gives back.
    try folder.write(whole.prefix(whole.count / 2), to: file)
    let outcome = try dendro("restore", "archive", "other")
    #expect(outcome.status == 2, "\(outcome.output)")
    #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/other"))
  }

  @Test("a file that is missing beside its parity is named")
  func missingFile() throws {
    try set(1...20)
    try dendro("checkpoint", "db")
    try set(21...40)
    try dendro("backup", "db", "archive", "--incremental")
    #expect(try dendro("verify", "archive").status == 0)
    let parity = try #require(
      try folder.names(in: "archive").last { $0.hasSuffix(".log.parity") })
    let name = String(parity.dropLast(".parity".count))
    try FileManager.default.removeItem(atPath: "\(folder.path)/archive/\(name)")
    for outcome in [
      try dendro("verify", "archive"), try dendro("repair", "archive", "--dry-run"),
    ] {
      let text = outcome.output + outcome.errors
      #expect(text.contains("\(name) is missing from \(folder.path)/archive: "), "\(text)")
    }
  }

  @Test("without its last segment, a checkpoint is not called that of another log")
  func missingSegment() throws {
    try set(1...20)
    try dendro("checkpoint", "db")
    try set(21...40)
    let log = try #require(try folder.names(in: "db").last { $0.hasSuffix(".log") })
    try FileManager.default.removeItem(atPath: "\(folder.path)/db/\(log)")
    for outcome in [try dendro("verify", "db"), try dendro("verify", "db", "--quick")] {
      #expect(outcome.status == 2)
      #expect(!(outcome.output + outcome.errors).contains("of another log"), "\(outcome.output)")
      #expect((outcome.output + outcome.errors).contains(log), "\(outcome.output)\(outcome.errors)")
    }
  }

  @Test("a checkpoint under another name loses no write that never was")
  func misnamedCheckpoint() throws {
    try set(1...20)
    try dendro("checkpoint", "db")
    try set(21...40)
    let checkpoint = try #require(
      try folder.names(in: "db").last { $0.hasSuffix(".checkpoint") })
    try FileManager.default.moveItem(
      atPath: "\(folder.path)/db/\(checkpoint)",
      toPath: "\(folder.path)/db/00000000000000000500.checkpoint")
    let outcome = try dendro("repair", "db", "new", "--json")
    #expect(ranges(outcome.object, "lost").isEmpty && outcome.object["lostFrom"] is NSNull)
    #expect(outcome.object["lastLSN"] as? Int == 40, "\(outcome.output)")
    #expect(try dendro("get", "new", "/k40").output == "\"value 40\"\n")
  }

  @Test("a torn payload at the end is no damage, for verify as for opening")
  func tornPayload() throws {
    let text = String(repeating: "abcdefgh ", count: 300)
    try dendro("set", "db", "/a", "\"first\"")
    try dendro("set", "db", "/b", "\"\(text)\"")
    let name = "db/00000000000000000001.log"
    let whole = folder.bytes(name)
    let end = try #require(whole.lastIndex { $0 != 0 })
    // As a power loss leaves a file: its length stays, and the last bytes are zeros.
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/torn", withIntermediateDirectories: true)
    var judged = 0
    for place in stride(from: end - 60, through: end, by: 3) {
      var bytes = whole
      for index in place..<bytes.count { bytes[index] = 0 }
      bytes.append(Data(count: 4096))
      try folder.write(bytes, to: "torn/00000000000000000001.log")
      let verify = try dendro("verify", "torn", "--json")
      let repair = try dendro("repair", "torn", "--dry-run", "--json")
      let isDamaged = try #require(repair.object["damaged"] as? Bool)
      #expect((verify.status == 2) == isDamaged, "\(place): \(verify.output)")
      judged += 1
    }
    #expect(judged > 10)
  }

  @Test("with --before-gap, what is left out is not called saved")
  func beforeGap() throws {
    for number in 1...6 { try dendro("set", "db", "/k\(number)", "\"value \(number)\"") }
    let log = "db/00000000000000000001.log"
    var bytes = folder.bytes(log)
    bytes[try #require(bytes.range(of: Data("value 3".utf8))).lowerBound] ^= 0x20
    try folder.write(bytes, to: log)
    let outcome = try dendro("repair", "db", "new", "--before-gap", "--json")
    #expect(ranges(outcome.object, "saved") == [1...2])
    #expect(ranges(outcome.object, "lost") == [3...6])
    let text = try dendro("repair", "db", "--before-gap", "--dry-run").output
    #expect(text.contains("saved         writes 1 to 2\n"), "\(text)")
    #expect(text.contains("left out      writes 3 to 6\n"), "\(text)")
  }

  @Test("a part that turns out to be damaged while it is served is in the status and the log")
  func damagedPart() throws {
    let users = (0..<4000).map { #""u\#(10000 + $0)":{"n":\#($0),"text":"\#(UUID().uuidString)"}"# }
    try folder.write(
      #"{"few":{"a":1},"users":{\#(users.joined(separator: ","))}}"#, to: "seed.json")
    try dendro("import", "db", "/", "seed.json")
    try dendro("checkpoint", "db", "--history", "none")
    let name = try #require(try folder.names(in: "db").last { $0.hasSuffix(".checkpoint") })
    var bytes = folder.bytes("db/\(name)")
    bytes[bytes.count / 2] ^= 1
    try folder.write(bytes, to: "db/\(name)")
    let (server, port) = try dendro.serve(["db", "--quiet"])
    #expect(try Tool.request("GET", port, "/few/a.json").body == "1")
    #expect(try Tool.request("GET", port, "/.status.json").status == 200)
    #expect(try Tool.request("GET", port, "/users.json").status == 500)
    let status = try Tool.request("GET", port, "/.status.json")
    #expect(status.status == 503 && status.body.contains(name), "\(status.body)")
    #expect(server.waitForOutput("a part of the data is damaged", onErrors: true))
    #expect(try Tool.request("PUT", port, "/few/a.json", "2").status == 200)
    // Somewhere among the users is what cannot be read.
    var refusals: [Int: Int] = [:]
    for number in stride(from: 0, to: 4000, by: 100) {
      let answer = try Tool.request("PUT", port, "/users/u\(10000 + number)/n.json", "7")
      refusals[answer.status, default: 0] += 1
    }
    #expect(Set(refusals.keys) == [200, 503], "\(refusals)")
    server.send(SIGTERM)
    _ = try server.wait()
  }
}
