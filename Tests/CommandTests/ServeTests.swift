import DendroPlatform
import Foundation
import Testing

@Suite("dendro: serve")
struct ServeTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func serve(_ arguments: String...) throws -> (Tool.Running, port: UInt16) {
    try dendro.serve(arguments)
  }

  private func request(
    _ method: String, _ port: UInt16, _ target: String, _ body: String = "", header: String = ""
  ) throws -> String {
    try Tool.request(method, port, target, body, header: header).body
  }

  @Test("what was acknowledged is there after SIGTERM and after SIGKILL")
  func survives() throws {
    let (first, port) = try serve("data")
    #expect(try request("PUT", port, "/a.json?ns=app", "{\"x\":1}") == "{\"x\":1}")
    #expect(try request("PUT", port, "/a.json", "2") == "2")
    first.send(SIGTERM)
    let end = try first.wait()
    #expect(end.status == 0 && !end.wasSignalled)
    let (second, again) = try serve("data")
    #expect(try request("GET", again, "/a/x.json?ns=app") == "1")
    #expect(try request("GET", again, "/a.json") == "2")
    #expect(try request("PUT", again, "/a/y.json?ns=app", "3") == "3")
    second.send(SIGKILL)
    _ = try second.wait()
    #expect(try dendro("get", "data/app", "/a", "--json").status == 0)
    let (third, last) = try serve("data/app")
    #expect(try request("GET", last, "/a.json?ns=any") == "{\"x\":1,\"y\":3}")
    third.send(SIGINT)
    #expect(try third.wait().status == 0)
  }

  @Test("a database that another process has open is refused, and the log says so once")
  func locked() throws {
    let (first, port) = try serve("data")
    #expect(try request("PUT", port, "/a.json?ns=app", "1") == "1")
    let (second, other) = try serve("data", "--quiet")
    for _ in 0..<3 {
      #expect(
        try request("GET", other, "/a.json?ns=app").contains(
          "The database is open in another process."))
    }
    #expect(try request("GET", other, "/a.json?ns=own") == "null")
    first.send(SIGTERM)
    _ = try first.wait()
    #expect(try request("GET", other, "/a.json?ns=app") == "1")
    second.send(SIGTERM)
    let errors = try second.wait().errors
    #expect(errors.split(separator: "the database cannot be opened").count == 2)
    #expect(errors.contains("data/app"))
  }

  @Test("a file at the beginning and one at the end")
  func files() throws {
    try Data(#"{"a":{".value":1,".priority":2},"b":[1,2]}"#.utf8).write(
      to: URL(fileURLWithPath: folder.path + "/seed.json"))
    let (server, port) = try serve(
      "--memory", "--import", "seed.json", "--export-on-exit", "end.json")
    #expect(try request("GET", port, "/a/.priority.json") == "2")
    #expect(try request("PUT", port, "/c.json", "true") == "true")
    server.send(SIGTERM)
    #expect(try server.wait().status == 0)
    let end = try String(contentsOfFile: folder.path + "/end.json", encoding: .utf8)
    #expect(end == #"{"a":{".value":1,".priority":2},"b":[1,2],"c":true}"# + "\n")
  }

  @Test(
    "the file at the beginning fills an empty database once, and replaces another one only if it is asked to",
    arguments: [false, true])
  func seed(isDatabase: Bool) throws {
    if isDatabase {
      try dendro("set", "data", "/x", "1")
      try dendro("remove", "data", "/", "--force")
    }
    try folder.write(#"{"a":1,"b":2}"#, to: "seed.json")
    func run(_ words: String..., body: (UInt16) throws -> Void) throws -> String {
      let line = ["serve", "data", "--import", "seed.json", "--quiet", "--port", "0", "--json"]
      let server = try dendro.start(line + words)
      #expect(server.waitForOutput("\n"), "\(server.text(server.errors))")
      let object =
        try JSONSerialization.jsonObject(
          with: Data(server.text(server.output).utf8)) as? [String: Any]
      try body(UInt16(try #require(object?["port"] as? Int)))
      server.send(SIGTERM)
      let end = try server.wait()
      #expect(end.status == 0)
      return end.errors
    }
    let first = try run { port in
      let answer = try request("PUT", port, "/c.json", "3")
      #expect(answer == "3")
    }
    #expect(first.contains(#"{"import":"seed.json","done":"imported","leaves":2}"#), "\(first)")
    // As a supervisor does, also if the file is not there any more.
    try folder.write("{bad", to: "seed.json")
    let second = try run { port in
      let root = try request("GET", port, "/.json")
      #expect(root == #"{"a":1,"b":2,"c":3}"#)
    }
    #expect(second.contains(#"{"import":"seed.json","done":"passed over"}"#), "\(second)")
    try FileManager.default.removeItem(atPath: folder.path + "/seed.json")
    let later = try run { _ in }
    #expect(later.contains(#"{"import":"seed.json","done":"passed over"}"#), "\(later)")
    try folder.write("{bad", to: "seed.json")
    let words = ["serve", "data", "--import", "seed.json", "--port", "0"]
    let bad = try dendro.run(words + ["--replace"])
    #expect(bad.status == 65 && bad.errors.contains("seed.json: line 1"), "\(bad.errors)")
    try folder.write(#"{"d":4}"#, to: "seed.json")
    let third = try run("--replace") { port in
      let root = try request("GET", port, "/.json")
      #expect(root == #"{"d":4}"#)
    }
    #expect(
      third.contains(#"{"import":"seed.json","done":"replaced","replaced":3,"leaves":1}"#),
      "\(third)")
  }

  @Test("what is done with the file at the beginning is said in a line")
  func seedLines() throws {
    try folder.write(#"{"a":1,"b":2}"#, to: "seed.json")
    for (options, line) in [
      ([], "dendro: seed.json was imported: 2 leaves\n"),
      (
        [],
        "dendro: there is data already, so seed.json was not imported (--replace puts it in its place)\n"
      ),
      (["--replace"], "dendro: seed.json was imported in place of 2 leaves: 2 leaves\n"),
    ] as [([String], String)] {
      let server = try dendro.start(
        ["serve", "data", "--import", "seed.json", "--port", "0"] + options)
      #expect(server.waitForOutput("\n"))
      server.send(SIGTERM)
      let end = try server.wait()
      #expect(end.status == 0 && end.errors.contains(line), "\(end.errors)")
    }
    #expect(try dendro("serve", "data", "--replace").status == 64)
  }

  static let targets = ["no/such", "file/below", "", "no/such/", "file/", "loop"]

  @Test("where nothing can be exported, no server starts", arguments: targets)
  func exportRefused(target: String) throws {
    try folder.write("old", to: "file")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path + "/loop", withDestinationPath: "loop")
    let server = try dendro.start([
      "serve", "--memory", "--port", "0", "--export-on-exit", target,
    ])
    _ = server.waitForOutput("\n")
    server.send(SIGTERM)
    let outcome = try server.wait()
    #expect(outcome.status == (target.isEmpty ? 64 : 74), "\(outcome.errors)")
    #expect(outcome.output.isEmpty, "it never served")
    #expect(folder.read("file") == "old")
  }

  @Test("an export replaces a file that was there, also behind a link, and only at the end")
  func exportOver() throws {
    try folder.write("old", to: "folder/file")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path + "/link", withDestinationPath: "folder/file")
    let (server, port) = try serve("--memory", "--export-on-exit", "link")
    #expect(folder.read("folder/file") == "old")
    #expect(try folder.names(in: "folder") == ["file"])
    #expect(try request("PUT", port, "/a.json", "1") == "1")
    server.send(SIGTERM)
    #expect(try server.wait().status == 0)
    #expect(folder.read("folder/file") == "{\"a\":1}\n")
  }

  @Test(
    "a disk that is full at the end is said, and that the data is lost if it was in memory only")
  func exportFails() throws {
    for memory in [true, false] {
      let (server, port) = try serve(memory ? "--memory" : "data", "--export-on-exit", "/dev/full")
      #expect(try request("PUT", port, "/a.json", "1") == "1")
      server.send(SIGTERM)
      let end = try server.wait()
      #expect(end.status == 74)
      #expect(
        end.errors.contains("writing /dev/full failed: No space left on device"), "\(end.errors)")
      #expect(end.errors.contains("was in memory only, and is lost") == memory, "\(end.errors)")
    }
    #expect(try dendro("get", "data/default", "/a").output == "1\n")
  }

  @Test("a server goes on without a reader of its log, and ends in order")
  func unreadLog() throws {
    let server = try dendro.start(
      ["-c", "exec \"$0\" serve data --port 0 --json 2> >(:)", Tool.path],
      executable: "/bin/bash")
    #expect(server.waitForOutput("\n"))
    let line = try JSONSerialization.jsonObject(with: Data(server.text(server.output).utf8))
    let port = UInt16(try #require((line as? [String: Any])?["port"] as? Int))
    for number in 0..<3 {
      #expect(try request("PUT", port, "/\(number).json", "1") == "1")
    }
    server.send(SIGTERM)
    #expect(try server.wait().status == 0)
  }

  @Test("a file to import that is not there ends the start, and makes no database")
  func missingImport() throws {
    #expect(try dendro("serve", "data", "--port", "0", "--import", "nowhere.json").status == 74)
    #expect(!FileManager.default.fileExists(atPath: folder.path + "/data"))
    #expect(try dendro("serve", "data", "--port", "0", "--import", "").status == 64)
  }

  @Test("a secret restricts the server to administrators, and shows in no log")
  func secret() throws {
    try Data("long secret\n".utf8).write(to: URL(fileURLWithPath: folder.path + "/secret"))
    let (server, port) = try serve("--memory", "--secret-file", "secret")
    #expect(try request("GET", port, "/a.json").contains("Permission denied"))
    #expect(try request("GET", port, "/a.json?auth=long%20secret&print=pretty") == "null")
    #expect(
      try request("GET", port, "/a.json", header: "Authorization: Bearer long secret\r\n")
        == "null")
    server.send(SIGTERM)
    let end = try server.wait()
    #expect(end.errors.contains("auth=…&print=pretty"))
    #expect(!end.errors.contains("long"))
  }

  @Test(
    "refused command lines",
    arguments: [
      ["serve"], ["serve", "data", "--memory"], ["serve", "data", "--port", "70000"],
      ["serve", "data", "--host", "0.0.0.0"], ["serve", "data", "--namespace", "a/b"],
      ["serve", "data", "--durability", "some"],
    ])
  func usage(arguments: [String]) throws {
    #expect(try dendro.run(arguments).status == 64)
  }

  @Test("options of tokens that do not go together")
  func tokens() throws {
    let file = folder.path + "/short"
    try Data("short\n".utf8).write(to: URL(fileURLWithPath: file))
    let good = folder.path + "/good"
    try Data("a secret of at least thirty-two bytes\n".utf8).write(
      to: URL(fileURLWithPath: good))
    for arguments in [
      ["--users"], ["--viewer", "--no-viewer"], ["--sessions", "0"], ["--rate", "x"],
      ["--token-issuer", "x"], ["--token-audience", "x"],
      ["--token-secret-file", good, "--insecure"], ["--token-keys", good],
      ["--allow-host", "a b"], ["--allow-host", "a:1"], ["--allow-host", "a,,b"],
      ["--allow-origin", "app.example.com"], ["--allow-origin", "https://a/b"],
      ["--secret-file", good, "--allow-host", "a"], ["--tls-key", good],
      ["--tls-certificate", good], ["--trust-proxy", "a b"], ["--per-address", "0"],
      ["--trust-proxy", "Forwarded"],
      ["--host", "127.0.0.1", "--host", "0.0.0.0"],
    ] {
      #expect(try dendro.run(["serve", "--memory"] + arguments).status == 64)
    }
    #expect(try dendro("serve", "--memory", "--token-secret-file", file).status == 65)
    let audience = ["--token-audience", "app"]
    #expect(try dendro.run(["serve", "--memory", "--token-keys", file] + audience).status == 69)
    let url = "http://example.com/keys"
    let refused = try dendro.run(["serve", "--memory", "--token-keys", url] + audience)
    #expect(refused.status == 69 && refused.errors.contains("\(url) is not a URL with https"))
  }

  @Test("addresses and files that cannot be used")
  func unavailable() throws {
    #expect(try dendro("serve", "--memory", "--host", "192.0.2.1", "--insecure").status == 69)
    #expect(try dendro("serve", "--memory", "--import", "missing.json").status != 0)
    let files = ["--tls-certificate", "missing.pem", "--tls-key", "missing.pem"]
    let refused = try dendro.run(["serve", "--memory"] + files)
    #expect(refused.status == 69 && refused.errors.contains("missing.pem cannot be read"))
    let (server, port) = try serve("--memory")
    #expect(try dendro("serve", "--memory", "--port", "\(port)").status == 69)
    server.send(SIGTERM)
    _ = try server.wait()
  }
}
