import DendroPlatform
import Foundation
import Testing

/// Files of every database, that a server begins with and writes at its end.
@Suite("dendro: serve, the files of every database")
struct ServedFilesTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func request(
    _ method: String, _ port: UInt16, _ target: String, _ body: String = ""
  ) throws -> String {
    try Tool.request(method, port, target, body).body
  }

  @Test(
    "a server imports a file for each database, and exports one for each",
    arguments: [["--memory"], ["data"]])
  func directory(words: [String]) throws {
    try folder.write(#"{"a":{".value":1,".priority":2}}"#, to: "seeds/default.json")
    try folder.write(#"{"b":[1,2]}"#, to: "seeds/app.json")
    try folder.write("not read", to: "seeds/README")
    let (server, port) = try dendro.serve(
      words + ["--import", "seeds", "--export-on-exit", "ends/"])
    #expect(try request("GET", port, "/a/.priority.json") == "2")
    #expect(try request("GET", port, "/b/1.json?ns=app") == "2")
    #expect(try request("PUT", port, "/c.json?ns=new", "3") == "3")
    #expect(try request("PUT", port, "/c.json?ns=app", "4") == "4")
    #expect(try folder.names(in: "ends").isEmpty)
    server.send(SIGTERM)
    let end = try server.wait()
    #expect(end.status == 0, "\(end.errors)")
    #expect(try folder.names(in: "ends") == ["app.json", "default.json", "new.json"])
    #expect(folder.read("ends/default.json") == #"{"a":{".value":1,".priority":2}}"# + "\n")
    #expect(folder.read("ends/app.json") == #"{"b":[1,2],"c":4}"# + "\n")
    #expect(folder.read("ends/new.json") == #"{"c":3}"# + "\n")
    // What was written is what the next one begins with.
    let (again, next) = try dendro.serve(["--memory", "--import", "ends"])
    #expect(try request("GET", next, "/c.json?ns=new") == "3")
    #expect(try request("GET", next, "/c.json?ns=app") == "4")
    again.send(SIGTERM)
    #expect(try again.wait().status == 0)
  }

  @Test("a server imports the files that an export of Firebase's emulators names")
  func emulator() throws {
    try folder.write(
      #"{"version":"13.0.0","database":{"version":"4.11.2","path":"database_export"}}"#,
      to: "seeds/firebase-export-metadata.json")
    try folder.write(#"{"x":1}"#, to: "seeds/database_export/demo-app.json")
    let (server, port) = try dendro.serve(["data", "--import", "seeds"])
    #expect(try request("GET", port, "/x.json?ns=demo-app") == "1")
    server.send(SIGTERM)
    #expect(try server.wait().status == 0)
  }

  @Test(
    "a server does not start if its next start would not find its export, or take it for a database"
  )
  func refusedTargets() throws {
    try folder.write("{}", to: "seeds/firebase-export-metadata.json")
    for (target, error) in [
      ("seeds", "has files of Firebase's emulators"),
      ("data/end/", "would be taken for a database"),
    ] {
      let outcome = try dendro("serve", "data", "--port", "0", "--export-on-exit", target)
      #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome.errors)")
      #expect(outcome.errors.contains(error), "\(outcome.errors)")
    }
    #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/data"))
  }

  @Test("a server exports the other databases if one is damaged, and its exit code says so")
  func damaged() throws {
    try dendro("set", "data/good", "/a", "1")
    try dendro("set", "data/bad", "/a", "1")
    let log = try #require(try folder.names(in: "data/bad").first { $0.hasSuffix(".log") })
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/data/other", withIntermediateDirectories: false)
    var bytes = folder.bytes("data/bad/\(log)")
    bytes[70] ^= 1
    try folder.write(bytes, to: "data/bad/\(log)")
    let (server, _) = try dendro.serve(["data", "--export-on-exit", "ends/"])
    server.send(SIGTERM)
    let end = try server.wait()
    #expect(end.status == 2, "\(end.errors)")
    #expect(folder.read("ends/good.json") == "{\"a\":1}\n")
    #expect(try folder.names(in: "ends") == ["good.json"])
    // One that is served by itself.
    let (only, _) = try dendro.serve(["data/bad", "--export-on-exit", "ends/"])
    only.send(SIGTERM)
    #expect(try only.wait().status != 0)
    #expect(try folder.names(in: "ends") == ["good.json"])
  }

  /// Each with what the error says.
  static let refusals: [(files: [String: String], words: [String], status: Int32, error: String)] =
    [
      (["seeds/a b.json": "1"], ["--memory"], 65, "no database can have the name"),
      (["seeds/app.json": "{bad"], ["--memory"], 65, "seeds/app.json"),
      (
        ["seeds/firebase-export-metadata.json": #"{"firestore":{"path":"x"}}"#], ["--memory"], 65,
        "names no files of the Realtime Database"
      ),
      (
        ["seeds/firebase-export-metadata.json": #"{"database":{"path":"none"}}"#], ["--memory"], 74,
        "cannot list seeds/none"
      ),
      (["seeds/app.json": "1"], ["one"], 64, "DIRECTORY is one database"),
    ]

  @Test(
    "a server does not start if it cannot import the directory", arguments: 0..<refusals.count)
  func refused(index: Int) throws {
    let (files, words, status, error) = Self.refusals[index]
    for (name, text) in files { try folder.write(text, to: name) }
    try dendro("set", "one", "/a", "1")
    let outcome = try dendro.run(["serve", "--port", "0", "--import", "seeds"] + words)
    #expect(outcome.status == status && outcome.output.isEmpty, "\(outcome.errors)")
    #expect(outcome.errors.contains(error), "\(outcome.errors)")
  }
}
