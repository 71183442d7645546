import DendroPlatform
import Foundation
import Testing

/// What the status, the figures and the log of `serve` say when something goes wrong.
@Suite("dendro: a server that is watched")
struct WatchedServerTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func failures(_ port: UInt16, _ kind: String) throws -> Int? {
    let name = "dendro_failures_total{kind=\"\(kind)\"} "
    let line = try Tool.request("GET", port, "/.metrics").body.split(separator: "\n").first {
      $0.hasPrefix(name)
    }
    return line.flatMap { Int($0.dropFirst(name.count)) }
  }

  /// The lines of the log about databases, without those of requests.
  private func events(_ server: Tool.Running, _ message: String) -> [[String: Any]] {
    server.log.filter { ($0["message"] as? String)?.contains(message) == true }
  }

  private func wait(_ server: Tool.Running, for message: String) -> [String: Any]? {
    #expect(server.waitForOutput(message, onErrors: true))
    return events(server, message).first
  }

  @Test("a damaged database is in the status, the figures and the log, until it is mended")
  func damaged() throws {
    for number in 0..<4 { try dendro("set", "data/default", "/k\(number)", "\"value \(number)\"") }
    let log = "data/default/00000000000000000001.log"
    let good = folder.bytes(log)
    var bad = good
    // In the first of its writes: behind it are others, so that it is no torn tail.
    let place = try #require(bad.range(of: Data("value 0".utf8))).lowerBound
    bad[place] ^= 0x20
    try folder.write(bad, to: log)
    let (server, port) = try dendro.serve(["data", "--quiet"])
    // Before any request asks for the database.
    let status = try Tool.request("GET", port, "/.status.json")
    #expect(status.status == 503)
    let start =
      #"{"status":"failing","error":"The database is damaged.","databases":{"default":{"error":""#
    #expect(status.body.hasPrefix(start), "\(status.body)")
    #expect(status.body.contains("is damaged at offset"))
    for _ in 0..<3 {
      let answer = try Tool.request("GET", port, "/k0.json")
      #expect(answer.status == 500 && answer.body.contains("The database is damaged."))
    }
    #expect(try Tool.request("GET", port, "/k0.json?ns=other").status == 200)
    #expect(try failures(port, "opening") == 1)
    #expect(events(server, "cannot be opened").count == 1)
    let event = try #require(wait(server, for: "cannot be opened"))
    #expect(event["namespace"] as? String == "default" && event["level"] as? String == "error")
    try folder.write(good, to: log)
    #expect(try Tool.request("GET", port, "/.status.json").status == 200)
    #expect(try Tool.request("GET", port, "/k0.json").body == "\"value 0\"")
    server.send(SIGTERM)
    _ = try server.wait()
  }

  @Test("those who may inspect the server get the reason with its file, others the kind of it")
  func strangers() throws {
    try folder.write("a secret of some length\n", to: "secret")
    try dendro("set", "data/default", "/a", "1")
    let (holder, _) = try dendro.serve(["data/default"])
    let (server, port) = try dendro.serve(["data", "--secret-file", "secret"])
    let status = try Tool.request("GET", port, "/.status.json")
    #expect(
      status.body
        == #"{"status":"failing","error":"The database is open in another process.","databases":{}}"#
    )
    let whole = try Tool.request(
      "GET", port, "/.status.json", header: "Authorization: bearer a secret of some length\r\n")
    #expect(whole.status == 503 && whole.body.contains("pid \(holder.process.processIdentifier)"))
    for running in [holder, server] {
      running.send(SIGTERM)
      _ = try running.wait()
    }
  }

  @Test("a file in the served folder is no database")
  func plainFile() throws {
    try dendro("set", "data/default", "/a", "1")
    try folder.write("text", to: "data/plain")
    let (server, port) = try dendro.serve(["data"])
    for (method, target) in [("GET", "/a.json?ns=plain"), ("PUT", "/a.json?ns=plain")] {
      let answer = try Tool.request(method, port, target, method == "PUT" ? "1" : "")
      #expect(answer.status == 404)
      #expect(answer.body.contains("plain is a file in the served directory, and no database."))
    }
    let names = try Tool.request("GET", port, "/.viewer/namespaces.json").body
    #expect(names == #"{"names":["default"]}"#)
    #expect(try Tool.request("GET", port, "/.status.json").status == 200)
    #expect(try failures(port, "opening") == 0)
    #expect(folder.read("data/plain") == "text")
    server.send(SIGTERM)
    _ = try server.wait()
  }

  @Test("what an opening has replayed, cut and passed over is said and counted")
  func recovery() throws {
    for number in 0..<3 { try dendro("set", "data/torn", "/k\(number)", "\(number)") }
    let log = "data/torn/00000000000000000001.log"
    try folder.write(folder.bytes(log).dropLast(3), to: log)
    for number in 0..<3 {
      try dendro("set", "data/old", "/k", "\(number)")
      try dendro("checkpoint", "data/old")
    }
    let checkpoints = try folder.names(in: "data/old").filter { $0.hasSuffix(".checkpoint") }
    let newest = "data/old/\(try #require(checkpoints.max()))"
    try folder.write(folder.bytes(newest).dropLast(8), to: newest)
    let (server, port) = try dendro.serve(["data", "--quiet"])
    for name in ["torn", "old"] {
      #expect(try Tool.request("GET", port, "/k0.json?ns=\(name)").status == 200)
    }
    let torn = try #require(wait(server, for: "the torn end of the log was cut off"))
    #expect(torn["namespace"] as? String == "torn" && torn["level"] as? String == "warning")
    #expect(torn["time"] is Int)
    let details = try #require(torn["details"] as? [String: String])
    #expect(details["file"]?.contains(".torn-") == true && details["bytes"] != nil)
    let old = try #require(wait(server, for: "a checkpoint cannot be read"))
    #expect(old["namespace"] as? String == "old")
    let open = try #require(
      events(server, "the database is open").first { $0["namespace"] as? String == "torn" })
    #expect((open["details"] as? [String: String])?["replayedWrites"] != nil)
    #expect(try failures(port, "torn_tail") == 1)
    #expect(try failures(port, "unreadable_checkpoint") == 1)
    #expect(try failures(port, "disk_full") == 0)
    server.send(SIGTERM)
    _ = try server.wait()
  }

  @Test("a lock that was lost is called so")
  func lostLock() throws {
    let (server, port) = try dendro.serve(["data", "--quiet"])
    #expect(try Tool.request("PUT", port, "/a.json", "1").status == 200)
    let manager = FileManager.default
    try manager.moveItem(atPath: folder.path + "/data/default", toPath: folder.path + "/moved")
    try dendro("set", "data/default", "/other", "1")
    let answer = try Tool.request("PUT", port, "/a.json", "2")
    let text =
      "The server has lost its lock of the database: no write until the database is opened again."
    #expect(answer.status == 503 && answer.body.contains(text), "\(answer.body)")
    let status = try Tool.request("GET", port, "/.status.json")
    #expect(status.status == 503 && status.body.contains(text))
    #expect(status.body.contains("is no longer ours"))
    let event = try #require(wait(server, for: "the lock is lost"))
    #expect(event["level"] as? String == "error" && event["namespace"] as? String == "default")
    #expect(try failures(port, "ownership_lost") == 1)
    #expect(try failures(port, "disk") == 0)
    #expect(try Tool.request("GET", port, "/a.json").body == "1")
    server.send(SIGTERM)
    _ = try server.wait()
  }

  @Test("a line of the log has time, client, namespace and duration, as text and as JSON")
  func requests() throws {
    let (server, port) = try dendro.serve(["--memory"])
    for (number, target) in ["/a.json?ns=app&auth=x", "/a.json", "/.status.json"].enumerated() {
      _ = try Tool.request("GET", port, target)
      // A client may have its answer before the line of the request is written.
      let isLogged = { server.log.count { $0["status"] != nil } > number }
      let deadline = ContinuousClock.now + .seconds(60)
      while !isLogged(), .now < deadline { usleep(1000) }
    }
    server.send(SIGTERM)
    _ = try server.wait()
    let lines = server.log.filter { $0["status"] != nil }
    #expect(
      lines.allSatisfy {
        Set($0.keys)
          == ["time", "client", "namespace", "method", "target", "status", "milliseconds"]
      })
    #expect(lines.map { $0["namespace"] as? String } == ["app", "default", nil])
    #expect(lines.map { $0["target"] as? String }.first == "/a.json?ns=app&auth=…")
    #expect(lines.allSatisfy { ($0["client"] as? String)?.hasPrefix("127.0.0.1:") == true })
    #expect(lines.allSatisfy { $0["time"] is Int && $0["milliseconds"] is Double })

    let text = try dendro.start(["serve", "--memory", "--port", "0"])
    #expect(text.waitForOutput("(Ctrl-C ends)"))
    let place = text.text(text.output).split(separator: " ").first { $0.hasPrefix("http") }
    let other = try #require(place.flatMap { UInt16($0.split(separator: ":").last ?? "") })
    _ = try Tool.request("GET", other, "/a.json?ns=app")
    text.send(SIGTERM)
    let errors = try text.wait().errors
    let pattern =
      /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 127\.0\.0\.1:\d+ app 200 GET \/a\.json\?ns=app \d+\.\d ms/
    #expect(
      errors.split(separator: "\n").contains { $0.wholeMatch(of: pattern) != nil }, "\(errors)")
  }
}
