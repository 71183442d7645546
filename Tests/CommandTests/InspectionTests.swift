import DendroEngine
import DendroPlatform
import Foundation
import Testing

@Suite("dendro: log, info, verify, watch")
struct InspectionTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func fill() throws {
    try dendro("set", "db", "/users/ada", #"{"name":"Ada","age":36}"#)
    try dendro("update", "db", "/", #"{"users/bob":"Bob","n":null,"users/ada/.priority":5}"#)
    try dendro("increment", "db", "/n", "5")
    try dendro("set", "db", "/users/bob/.priority", "\"p\"")
    try dendro("remove", "db", "/users/ada")
  }

  @Test("log shows every write")
  func log() throws {
    try fill()
    let outcome = try dendro("log", "db")
    #expect(outcome.status == 0)
    // Without times and offsets, which differ.
    let lines = outcome.lines.map { line in
      line.replacing(/\d{4}-\d\d-\d\dT[\d:.]+Z/, with: "TIME")
        .replacing(/\b1:\d+/, with: "1:N")
        .split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
    let file = "1:N"
    #expect(
      lines == [
        "LSN TIME OPERATION BYTES SEGMENT:OFFSET PATH VALUE",
        #"1 TIME set 31 \#(file) /users/ada {"age":36,"name":"Ada"}"#,
        #"2 TIME update \#(bytes(outcome, 2)) \#(file) / users/bob: "Bob", n: null, users/ada/.priority: 5"#,
        "3 TIME increment 8 \(file) /n + 5",
        #"4 TIME priority \#(bytes(outcome, 4)) \#(file) /users/bob "p""#,
        "5 TIME remove \(bytes(outcome, 5)) \(file) /users/ada",
      ])
  }

  /// The fourth column of a line.
  private func bytes(_ outcome: Tool.Outcome, _ line: Int) -> Substring {
    let columns = outcome.lines[line].split(separator: " ")
    return columns.count > 3 ? columns[3] : ""
  }

  @Test("log chooses by number, time, path and count")
  func logFilters() throws {
    try fill()
    func numbers(_ options: String...) throws -> [Int] {
      try dendro.run(["log", "db", "--json"] + options).lines.map { line in
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return object?["lsn"] as? Int ?? 0
      }
    }
    #expect(try numbers() == [1, 2, 3, 4, 5])
    #expect(try numbers("--last", "2") == [4, 5])
    #expect(try numbers("--since", "2", "--until", "3") == [2, 3])
    #expect(try numbers("--path", "/n") == [2, 3])
    #expect(try numbers("--path", "/users/ada/age") == [1, 2, 5])
    #expect(try numbers("--path", "/users/bob") == [2, 4])
    #expect(try numbers("--since", "2000-01-01") == [1, 2, 3, 4, 5])
    #expect(try numbers("--until", "2000-01-01T12:00") == [])
    #expect(try dendro("log", "db", "--since", "6").status == 1)
    #expect(try dendro("log", "db", "--records").output.contains("idle"))
    let first = try dendro("log", "db", "--json", "--until", "1").object
    #expect(first["operation"] as? String == "set")
    #expect(first["path"] as? String == "/users/ada")
    #expect(first["offset"] as? Int == 64)
    #expect((first["value"] as? [String: Any])?["age"] as? Int == 36)
  }

  @Test("info and verify of a good database")
  func good() throws {
    try fill()
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/more", "[1,2,3]")
    let info = try dendro("info", "db", "--full", "--json")
    #expect(info.status == 0)
    #expect(info.object["good"] as? Bool == true)
    #expect(info.object["lastLSN"] as? Int == 6)
    #expect(info.object["durableUpTo"] as? Int == 6)
    #expect(info.object["leaves"] as? Int == 5)
    #expect((info.object["checkpoints"] as? [Any])?.count == 1)
    let headers = try dendro("info", "db", "--json").object
    #expect(headers["good"] is NSNull, "not all was read")
    let text = try dendro("info", "db").output
    for word in [
      "directory", "database id", "last write", "known durable", "segment", "checkpoint",
    ] {
      #expect(text.contains("\n\(word)") || text.hasPrefix(word) || text.contains("  \(word)"))
    }
    let verify = try dendro("verify", "db", "--json").object
    #expect(verify["good"] as? Bool == true)
    #expect(verify["comparedCheckpoints"] as? Int == 1)
    #expect(verify["writes"] as? Int == 6)
    #expect((verify["hash"] as? String)?.count == 16)
    #expect(try dendro("verify", "db").output.hasSuffix("good\n"))
  }

  @Test("info fits the terminal, and its columns stand below one another")
  func columns() throws {
    try fill()
    try dendro("checkpoint", "db")
    for number in 0..<10 { try dendro("set", "db", "/n\(number)", "\(number)") }
    try dendro("checkpoint", "db")
    let wide = try dendro("info", "db", environment: ["COLUMNS": "200"]).lines
    let rows = wide.filter { $0.hasPrefix("checkpoint ") }
    #expect(rows.count == 2 && rows.allSatisfy { $0.contains("B  ") && $0.contains("1 chunk,") })
    let starts = rows.map { $0.components(separatedBy: " B  ")[0].count }
    #expect(starts[0] == starts[1], "\(rows)")
    for columns in [80, 70] {
      let lines = try dendro("info", "db", environment: ["COLUMNS": "\(columns)"]).lines
        .filter { !$0.hasPrefix("directory") }
      #expect(lines.count > wide.count && lines.allSatisfy { $0.count <= columns }, "\(lines)")
      // Nothing is lost.
      let text = lines.joined(separator: " ").split(separator: " ")
      #expect(text == wide.dropFirst().joined(separator: " ").split(separator: " "))
    }
    // What is no terminal gets a row on one line.
    #expect(try dendro("info", "db").lines.count == wide.count)
  }

  @Test("a damaged byte is found, whichever it is; nothing traps or changes the files")
  func damagedBytes() throws {
    try fill()
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/more", #"{"some":"more data that stands behind the checkpoint"}"#)
    let good = try dendro("export", "db", "/").output
    let files = try folder.names(in: "db").filter {
      $0.hasSuffix(".log") || $0.hasSuffix(".checkpoint")
    }
    #expect(files.count >= 3)
    for file in files {
      let bytes = folder.bytes("db/\(file)")
      for offset in stride(from: 0, to: bytes.count, by: 11) {
        var damaged = bytes
        damaged[offset] ^= 0x10
        try folder.write(damaged, to: "db/\(file)")
        let verify = try dendro("verify", "db")
        #expect([0, 2, 69].contains(verify.status) && !verify.wasSignalled, "\(file) \(offset)")
        // A flipped bit in zeros behind the end, or in the last batch, may be a crash's doing.
        if verify.status == 0 {
          #expect(verify.output.contains("unfinished") || verify.output.hasSuffix("good\n"))
        }
        if verify.status == 2 {
          #expect((verify.output + verify.errors).contains(file), "\(verify.output)")
        }
        if offset % 3 == 0 {
          for verb in ["log", "info", "get"] {
            let outcome = try dendro.run([verb, "db"])
            #expect([0, 1, 2, 69].contains(outcome.status) && !outcome.wasSignalled)
          }
          let export = try dendro("export", "db", "/")
          #expect(
            export.status == 2 || export.output == good || verify.status == 0 || export.status == 69
          )
        }
        #expect(folder.bytes("db/\(file)") == damaged)
      }
      for count in stride(from: 0, to: bytes.count, by: 17) {
        try folder.write(bytes.prefix(count), to: "db/\(file)")
        for verb in ["verify", "log", "info"] {
          let outcome = try dendro.run([verb, "db"])
          #expect([0, 1, 2, 69].contains(outcome.status) && !outcome.wasSignalled)
        }
      }
      try folder.write(bytes, to: "db/\(file)")
    }
    #expect(try dendro("verify", "db").status == 0)
    #expect(try dendro("export", "db", "/").output == good)
  }

  @Test("log and info continue behind damage")
  func logBehindDamage() throws {
    for index in 0..<20 { try dendro("set", "db", "/k\(index)", "\(index)") }
    let file = "db/00000000000000000001.log"
    var bytes = folder.bytes(file)
    let lines = try dendro("log", "db", "--json").lines
    let tenth = try JSONSerialization.jsonObject(with: Data(lines[9].utf8)) as? [String: Any]
    bytes[(tenth?["offset"] as? Int ?? 0) + 8] ^= 0xFF
    try folder.write(bytes, to: file)
    let outcome = try dendro("log", "db")
    #expect(outcome.status == 2)
    #expect(outcome.output.contains("damage: "))
    for index in [0, 8, 10, 19] { #expect(outcome.output.contains("/k\(index)  ")) }
    #expect(!outcome.output.contains("/k9  "))
    for full in [[], ["--full"]] {
      let info = try dendro.run(["info", "db"] + full)
      #expect(info.status == 2)
      #expect(info.lines.contains { $0.hasPrefix("last write      20, ") })
      #expect(info.output.contains("of a damaged log, as far as it can be read"))
      #expect(try dendro.run(["info", "db", "--json"] + full).object["writesInLog"] as? Int == 19)
    }
    let get = try dendro("get", "db")
    #expect(get.status == 2)
    #expect(get.errors.contains("offset"))
  }

  @Test("a missing last segment is noticed")
  func missingSegment() throws {
    try fill()
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/more", "1")
    let segments = try folder.names(in: "db").filter { $0.hasSuffix(".log") }
    #expect(segments.count >= 2)
    try FileManager.default.removeItem(atPath: "\(folder.path)/db/\(segments.last ?? "")")
    #expect(try dendro("verify", "db").status == 2)
    #expect(try dendro("get", "db").status == 2)
    #expect(try dendro("set", "db", "/x", "1").status == 2)
  }

  /// Takes a checkpoint as an app does that keeps no history: the older one stays.
  private func checkpoint() throws {
    let engine = try Engine.open(at: "\(folder.path)/db")
    try engine.checkpoint()
    try engine.close()
  }

  @Test("a missing segment that only the older checkpoint needs is noticed")
  func missingOlderSegment() throws {
    for index in 1...20 {
      try dendro("set", "db", "/k\(index)", "\(index)")
      if index == 8 || index == 16 { try checkpoint() }
    }
    #expect(
      try folder.names(in: "db").filter { $0.hasSuffix(".log") } == [
        "00000000000000000009.log", "00000000000000000017.log",
      ])
    #expect(try dendro("verify", "db").status == 0)
    try FileManager.default.removeItem(
      atPath: "\(folder.path)/db/00000000000000000009.log")
    let outcome = try dendro("verify", "db")
    #expect(outcome.status == 2)
    #expect(outcome.output.contains("00000000000000000008.checkpoint"), "\(outcome.output)")
    #expect(outcome.output.contains("write 9"), "\(outcome.output)")
    // Until the newest checkpoint is damaged, all else works.
    #expect(try dendro("get", "db", "/k20").output == "20\n")
    #expect(try dendro("set", "db", "/k21", "21").status == 0)
  }

  @Test("a checkpoint whose bytes are right and whose tree is not what the log gives is found")
  func wrongCheckpoint() throws {
    try fill()
    try FileManager.default.copyItem(
      atPath: "\(folder.path)/db", toPath: "\(folder.path)/fork")
    for (db, value) in [("db", "1"), ("fork", "2")] {
      try dendro("set", db, "/more", value)
      try dendro("checkpoint", db)
    }
    let name = try #require(try folder.names(in: "db").last { $0.hasSuffix(".checkpoint") })
    #expect(try dendro("verify", "db").status == 0)
    try folder.write(folder.bytes("fork/\(name)"), to: "db/\(name)")
    let outcome = try dendro("verify", "db")
    #expect(outcome.status == 2)
    #expect(outcome.output.contains("its checkpoint holds"), "\(outcome.output)")
    #expect(outcome.output.contains("the checkpoint of another log"), "\(outcome.output)")
    #expect(outcome.output.contains(name), "\(outcome.output)")
    #expect(try dendro("get", "db", "/more").output == "1\n")
  }

  @Test("a checkpoint that a crash left of a cleanup is no damage, though its log is gone")
  func leftoverCheckpoint() throws {
    try fill()
    try dendro("checkpoint", "db")
    let name = try #require(try folder.names(in: "db").last { $0.hasSuffix(".checkpoint") })
    let old = folder.bytes("db/\(name)")
    for index in 0..<3 {
      try dendro("set", "db", "/more\(index)", "1")
      try checkpoint()
    }
    #expect(try !folder.names(in: "db").contains(name))
    try folder.write(old, to: "db/\(name)")
    let outcome = try dendro("verify", "db")
    #expect(outcome.status == 0, "\(outcome.output)")
    #expect(outcome.output.contains("checkpoints   3, 1 compared"), "\(outcome.output)")
  }

  @Test("a second writer gets the pid of the first; readers work beside it")
  func secondWriterAndReaders() throws {
    try dendro("set", "db", "/x", "1")
    let writer = try dendro.start(["demo-writer", "\(folder.path)/db", "--writers", "2"])
    defer { writer.send(SIGKILL) }
    #expect(writer.waitForOutput("\na "))
    let refused = try dendro("set", "db", "/y", "1")
    #expect(refused.status == 75)
    #expect(refused.errors.contains("pid \(writer.process.processIdentifier)"))
    for verb in ["get", "log", "info", "verify", "export"] {
      let outcome = try dendro.run([verb, "db"])
      #expect(outcome.status == 0, "\(verb): \(outcome.errors)\(outcome.output.suffix(300))")
    }
    #expect(try dendro("backup", "db", "copy").status == 0)
    let watch = try dendro("watch", "db", "/", "--json", "--count", "50", "--interval", "5")
    #expect(watch.status == 0)
    #expect(watch.lines.count == 51)
    writer.send(SIGKILL)
    #expect(try writer.wait().wasSignalled)
    #expect(try dendro("verify", "db").status == 0)
    #expect(try dendro("set", "db", "/y", "1").status == 0)
  }

  @Test("watch prints the value, then each change")
  func watch() throws {
    try dendro("set", "db", "/a/b", "1")
    let watch = try dendro.start(["watch", "db", "/a", "--json", "--count", "4", "--interval", "2"])
    #expect(watch.waitForOutput("}\n"))
    try dendro("set", "db", "/a/b", "2")
    try dendro("set", "db", "/elsewhere", "2")
    try dendro("update", "db", "/", #"{"a/c":3,"z":1}"#)
    try dendro("set", "db", "/a/b", "2.0")
    try dendro("remove", "db", "/a/b")
    try dendro("set", "db", "/", #"{"a":"leaf"}"#)
    let outcome = try watch.wait()
    #expect(outcome.status == 0)
    let events = try outcome.lines.map { line in
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
      return "\(object["type"] ?? "") \(object["lsn"] ?? "") \(object["path"] ?? "")"
    }
    #expect(
      events == ["value 1 /a", "changed 2 /a/b", "added 4 /a/c", "removed 5 /a/b", "changed 6 /a"])
  }

  static let endings: [(Int32, Int32)] = [(SIGINT, 130), (SIGTERM, 143)]

  @Test("watch ends in order, with 128 and the number of the signal", arguments: endings)
  func watchSignals(signal: Int32, status: Int32) throws {
    try dendro("set", "db", "/a", "1")
    let watch = try dendro.start(["watch", "db"])
    #expect(watch.waitForOutput("value"))
    watch.send(signal)
    #expect(try watch.wait().status == status)
  }
}
