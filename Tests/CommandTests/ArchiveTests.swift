import DendroPlatform
import Foundation
import Testing

@Suite("dendro: archives, backup --incremental, restore")
struct ArchiveTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }

  init() throws {
    dendro = Tool(folder: try Folder())
    for number in 1...3 { try dendro("set", "db", "/n\(number)", "\(number)") }
  }

  @Test("an incremental backup copies what is new, and restore gives any state of it")
  func incremental() throws {
    let first = try dendro("backup", "db", "archive", "--incremental", "--json")
    #expect(first.status == 0, "\(first.errors)")
    #expect(first.object["lsn"] as? Int == 3)
    #expect(first.object["target"] as? String == "archive")
    let again = try dendro("backup", "db", "archive", "--incremental")
    #expect(again.output == "nothing new; the archive reaches write 3\n")
    try dendro("remove", "db", "/n1", "--force")
    try dendro("checkpoint", "db")
    try dendro("set", "db", "/n4", "4")
    let second = try dendro("backup", "db", "archive", "-i")
    #expect(second.status == 0)
    #expect(second.output.contains("the archive reaches write 5"), "\(second.output)")

    #expect(try dendro("restore", "archive", "last").status == 0)
    #expect(try dendro("export", "last").output == #"{"n2":2,"n3":3,"n4":4}"# + "\n")
    let past = try dendro("restore", "archive", "past", "--at", "2", "--json")
    #expect(past.object["lsn"] as? Int == 2)
    #expect(past.object["leaves"] as? Int == 2)
    #expect(try dendro("export", "past").output == #"{"n1":1,"n2":2}"# + "\n")
    // A time between two writes: that of the second.
    let time = try #require(past.object["time"] as? Int64)
    let format = ISO8601DateFormatter()
    format.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
    let when = format.string(from: Date(timeIntervalSince1970: (Double(time) + 0.5) / 1000))
    let timed = try dendro("restore", "archive", "timed", "--at", when, "--json")
    #expect(timed.status == 0, "\(timed.errors)")
    #expect(timed.object["lsn"] as? Int == 2)
    // It is a database like any other.
    #expect(try dendro("set", "past", "/more", "1").status == 0)
    #expect(try dendro("verify", "past").status == 0)
    #expect(try dendro("verify", "archive").status == 0)
    #expect(try dendro("get", "archive", "/n1", "--at", "3").output == "1\n")
    #expect(try dendro("log", "archive", "--json").lines.count == 5)
  }

  @Test("an archive is not written by any verb, and a database not made an archive")
  func refused() throws {
    try dendro("backup", "db", "archive", "--incremental")
    let names = try folder.names(in: "archive")
    for words in [
      ["set", "archive", "/a", "1"], ["checkpoint", "archive"], ["purge", "archive", "--force"],
    ] {
      let outcome = try dendro.run(words)
      #expect(outcome.status == 69, "\(words) \(outcome.errors)")
      #expect(outcome.errors.contains("is an archive, which is only read"))
      #expect(outcome.errors.contains("dendro restore"))
    }
    #expect(try folder.names(in: "archive") == names)
    try dendro("set", "other", "/a", "1")
    let over = try dendro("backup", "db", "other", "--incremental")
    #expect(over.status == 1)
    #expect(over.errors.contains("other exists already, and is no archive"))
    let foreign = try dendro("backup", "other", "archive", "--incremental")
    #expect(foreign.status == 1)
    #expect(foreign.errors.contains("cannot be extended"), "\(foreign.errors)")
    #expect(try dendro("verify", "archive").status == 0)
  }

  @Test("restore refuses what is there, and states that are not kept")
  func restoreRefused() throws {
    try dendro("backup", "db", "archive", "--incremental")
    let there = try dendro("restore", "archive", "db")
    #expect(there.status == 1)
    #expect(there.errors.contains("db exists already"))
    let later = try dendro("restore", "archive", "new", "--at", "9")
    #expect(later.status == 1)
    #expect(later.errors.contains("the writes 0 to 3"), "\(later.errors)")
    #expect(try !folder.names(in: ".").contains("new"))
    #expect(try dendro("restore", "none", "new").status == 1)
    #expect(try dendro("restore", "archive", "new", "--at", "soon").status == 64)
    #expect(try dendro("archive", "db").status == 64)
  }

  @Test("archive follows the writer until it is ended, and copies the rest then")
  func follows() throws {
    let archive = try dendro.start([
      "archive", "db", "--to", "archive", "--interval", "0", "--json",
    ])
    defer { archive.send(SIGKILL) }
    #expect(archive.waitForOutput("\"lsn\":3"))
    let locked = try dendro("backup", "db", "archive", "--incremental")
    #expect(locked.status == 75)
    try dendro("set", "db", "/n4", "4")
    // The checkpoint begins a new segment: what was written is sealed.
    try dendro("checkpoint", "db")
    #expect(archive.waitForOutput("\"lsn\":4"))
    try dendro("set", "db", "/n5", "5")
    archive.send(SIGTERM)
    let outcome = try archive.wait()
    #expect(outcome.status == 143, "\(outcome.errors)")
    #expect(outcome.lines.last?.contains("\"lsn\":5") == true, "\(outcome.output)")
    #expect(try dendro("hash", "archive").output == dendro("hash", "db").output)
    #expect(try dendro("verify", "archive").status == 0)
  }

  @Test("a purge beside a running archive waits until the archive has what it removes")
  func purgeBeside() throws {
    let archive = try dendro.start([
      "archive", "db", "--to", "archive", "--interval", "0", "--json",
    ])
    defer { archive.send(SIGKILL) }
    #expect(archive.waitForOutput("\"lsn\":3"))
    for number in 4...6 { try dendro("set", "db", "/n\(number)", "\(number)") }
    let purge = try dendro("purge", "db", "--force", "--wait", "60")
    #expect(purge.status == 0, "\(purge.errors)")
    try dendro("set", "db", "/n7", "7")
    archive.send(SIGTERM)
    let outcome = try archive.wait()
    #expect(outcome.status == 143, "\(outcome.errors)")
    #expect(try dendro("hash", "archive").output == dendro("hash", "db").output)
    #expect(try dendro("verify", "archive").status == 0)
    #expect(try dendro("get", "archive", "/n4", "--at", "4").output == "4\n")
    #expect(try dendro("backup", "db", "archive", "-i").status == 0)
  }

  @Test(
    "removing the past is refused while an archive does not go on, and removes nothing",
    arguments: [["purge", "db", "--force"], ["checkpoint", "db", "--history", "none"]])
  func purgeRefused(words: [String]) throws {
    let archive = try dendro.start([
      "archive", "db", "--to", "archive", "--interval", "0", "--json",
    ])
    defer { archive.send(SIGKILL) }
    #expect(archive.waitForOutput("\"lsn\":3"))
    archive.send(SIGSTOP)
    for number in 4...6 { try dendro("set", "db", "/n\(number)", "\(number)") }
    let refused = try dendro.run(words + ["--wait", "0.05"])
    #expect(refused.status == 75)
    #expect(
      refused.errors.contains("an archive has been copied up to write 3 only"), "\(refused.errors)")
    #expect(try dendro("get", "db", "/n4", "--at", "4").output == "4\n")
    archive.send(SIGCONT)
    let purge = try dendro.run(words + ["--wait", "60"])
    #expect(purge.status == 0, "\(purge.errors)")
    #expect(try dendro("get", "db", "/n4", "--at", "4").status == 1)
    archive.send(SIGTERM)
    #expect(try archive.wait().status == 143)
    #expect(try dendro("hash", "archive").output == dendro("hash", "db").output)
  }
}
