import Foundation
import Testing

@Suite("dendro: an unfinished backup")
struct BackupTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  /// Left by a backup that was killed before its end.
  private static let marker = "copy/backup.unfinished"

  init() throws {
    dendro = Tool(folder: try Folder())
    try dendro("set", "db", "/a", "1")
    try dendro("backup", "db", "copy")
    try folder.write("", to: Self.marker)
  }

  @Test(
    "every verb refuses it, and says what it is",
    arguments: [
      "set copy /b 2", "update copy / {\"b\":2}", "push copy /b 2", "increment copy /b",
      "import copy /b -", "remove copy /a", "get copy", "export copy", "verify copy", "info copy",
      "log copy", "watch copy", "checkpoint copy", "backup copy other",
    ])
  func refused(words: String) throws {
    let before = try folder.names(in: "copy")
    let outcome = try dendro.run(words.split(separator: " ").map(String.init), input: "1")
    #expect(outcome.status == 1, "\(outcome.status)")
    #expect(outcome.errors.contains("the backup in \(folder.path)/copy is not complete"))
    #expect(outcome.output.isEmpty)
    #expect(try folder.names(in: "copy") == before)
    #expect(try !folder.names(in: ".").contains("other"))
  }

  @Test("none is made if the backup had not written more than its marker")
  func markerAlone() throws {
    for name in try folder.names(in: "copy") where !Self.marker.hasSuffix(name) {
      try FileManager.default.removeItem(atPath: "\(folder.path)/copy/\(name)")
    }
    let outcome = try dendro("set", "copy", "/b", "2")
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains("not complete"), "\(outcome.errors)")
    #expect(try folder.names(in: "copy") == ["backup.unfinished"])
  }

  @Test("the next backup into it starts over; into anything else none is made")
  func startsOver() throws {
    try dendro("set", "db", "/b", "2")
    let outcome = try dendro("backup", "db", "copy")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try !folder.names(in: "copy").contains("backup.unfinished"))
    #expect(try dendro("export", "copy").output == #"{"a":1,"b":2}"# + "\n")
    #expect(try dendro("verify", "copy").status == 0)
    // It is a database now.
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/empty", withIntermediateDirectories: false)
    try folder.write("x", to: "file")
    for target in ["copy", "db", "empty", "file"] {
      let refused = try dendro("backup", "db", target)
      #expect(refused.status == 1, "\(target)")
      #expect(refused.errors.contains("\(target) exists already"), "\(refused.errors)")
    }
    #expect(try dendro("verify", "copy").status == 0)
    #expect(try folder.names(in: "empty").isEmpty)
  }

  @Test("help says so")
  func help() throws {
    let text = try dendro("help", "backup").output
    let words = text.split { $0 == " " || $0 == "\n" }.joined(separator: " ")
    #expect(words.contains("the next backup into it starts over"))
  }
}
