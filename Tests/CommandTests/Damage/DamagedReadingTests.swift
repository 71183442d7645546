import Foundation
import Testing

/// A database that cannot be opened because it is damaged, of which most can be read nevertheless.
@Suite("dendro: reading a damaged database")
struct DamagedReadingTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// A backup without its footer and with a damaged chunk.
  ///
  /// - Returns: the keys below /users that it has lost.
  private func makeDamaged(_ name: String) throws -> (first: String, end: String) {
    let users = (0..<4000).map { #""u\#(10000 + $0)":{"n":\#($0),"text":"\#(UUID().uuidString)"}"# }
    let seed = #"{"few":{"a":1,"b":2},"users":{\#(users.joined(separator: ","))}}"#
    try folder.write(seed, to: "seed.json")
    try dendro("import", "source", "/", "seed.json")
    try dendro("backup", "source", name)
    let checkpoint = try folder.names(in: name).first { $0.hasSuffix(".checkpoint") }
    let file = "\(name)/" + (try #require(checkpoint))
    var bytes = folder.bytes(file).dropLast(8)
    bytes[bytes.count / 2] ^= 1
    try folder.write(Data(bytes), to: file)
    let holes = try dendro("repair", name, "spare", "--json").object["holes"] as? [[String: Any]]
    let bounds = holes?.compactMap { hole -> (String, String)? in
      guard let first = hole["first"] as? String, let end = hole["end"] as? String else {
        return nil
      }
      return (first, end)
    }
    // One may begin where another one ends.
    let (first, last) = (try #require(bounds?.first), try #require(bounds?.last))
    return (first.0, last.1)
  }

  @Test("the shell reads what is whole, and names what is lost of the rest")
  func shell() throws {
    let (first, _) = try makeDamaged("db")
    let whole = try dendro("shell", "db", input: "ls few\ncd few\nget a\ntree\nget /users/u10000/n")
    #expect(whole.status == 0, "\(whole.errors)")
    #expect(whole.output == "a  1\nb  2\n1\n/few\n├── a  1\n└── b  2\n0\n")
    #expect(whole.errors.contains("the database is damaged; /few is whole, as of write "))
    for line in ["ls users", "get users/\(first)", "get /", "export users"] {
      let outcome = try dendro("shell", "db", input: line)
      #expect(outcome.status == 2 && outcome.output.isEmpty, "\(line)")
      #expect(
        outcome.errors.contains("it has lost ") && outcome.errors.contains(" of /users, from '"),
        "\(outcome.errors)")
    }
    let write = try dendro("shell", "db", input: "set few/a 2")
    #expect(write.status == 2)
    #expect(try dendro("get", "db", "/few/a").output == "1\n")
  }

  @Test(
    "serve answers what is whole with 200, the rest with 500, and writes with 503; then it is repaired"
  )
  func serve() throws {
    let (first, end) = try makeDamaged("data/default")
    let damaged = try folder.names(in: "data/default").sorted()
    for directory in ["data", "data/default"] {
      let (server, port) = try dendro.serve([directory, "--quiet"])
      func get(_ target: String) throws -> (status: Int, body: String) {
        try Tool.request("GET", port, target)
      }
      for _ in 0..<2 {
        #expect(try get("/few.json") == (200, #"{"a":1,"b":2}"#))
        #expect(try get("/users/u10000/n.json") == (200, "0"))
        #expect(try get("/users/\(end)/n.json").status == 200)
        #expect(try get("/few.json?orderBy=%22$key%22&limitToFirst=1") == (200, #"{"a":1}"#))
      }
      for target in ["/.json", "/users.json?shallow=true", "/users/\(first).json"] {
        let answer = try get(target)
        #expect(answer.status == 500, "\(target)")
        #expect(
          answer.body.contains("The database is damaged. It has lost ")
            && answer.body.contains(" of /users, from '"), "\(answer.body)")
      }
      for (method, target) in [
        ("PUT", "/few/a.json"), ("PATCH", "/few.json"), ("POST", "/few.json"),
        ("DELETE", "/few.json"),
      ] {
        let answer = try Tool.request(method, port, target, method == "PATCH" ? #"{"a":2}"# : "2")
        #expect(answer.status == 503, "\(method)")
        #expect(
          answer.body.contains(
            "The database is damaged. It takes no writes until it is repaired."), "\(answer.body)")
      }
      #expect(try get("/few/a.json") == (200, "1"))
      let status = try get("/.status.json")
      #expect(status.status == 503 && status.body.contains("is damaged at offset"))
      #expect(try get("/few.json?ns=default").status == 200)
      #expect(try folder.names(in: "data/default").sorted() == damaged)
      if directory == "data" {
        // A repaired directory in its place is served without a restart.
        #expect(try dendro("repair", "data/default", "new").status == 1)
        let manager = FileManager.default
        try manager.moveItem(
          atPath: "\(folder.path)/data/default", toPath: "\(folder.path)/damaged")
        try manager.moveItem(atPath: "\(folder.path)/new", toPath: "\(folder.path)/data/default")
        #expect(try Tool.request("PUT", port, "/few/a.json", "2").status == 200)
        #expect(try get("/few/a.json") == (200, "2"))
        #expect(try get("/users/\(first).json") == (200, "null"))
      }
      server.send(SIGTERM)
      _ = try server.wait()
      guard directory == "data" else { break }
      try? FileManager.default.removeItem(atPath: "\(folder.path)/data/default")
      try FileManager.default.moveItem(
        atPath: "\(folder.path)/damaged", toPath: "\(folder.path)/data/default")
    }
  }

  @Test("behind a gap in the log, serve reads nothing of the present, and writes get 503")
  func gap() throws {
    for number in 0..<4 { try dendro("set", "db", "/k\(number)", "\"value \(number)\"") }
    let log = "db/00000000000000000001.log"
    var bytes = folder.bytes(log)
    bytes[try #require(bytes.range(of: Data("value 0".utf8))).lowerBound] ^= 0x20
    try folder.write(bytes, to: log)
    let (server, port) = try dendro.serve(["db", "--quiet"])
    let answer = try Tool.request("GET", port, "/k3.json")
    #expect(answer.status == 500 && answer.body.contains("The database is damaged."))
    #expect(try Tool.request("PUT", port, "/k3.json", "1").status == 503)
    #expect(server.log.contains { ($0["message"] as? String)?.contains("damaged") ?? false })
    server.send(SIGTERM)
    _ = try server.wait()
  }
}
