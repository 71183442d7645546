import Dendro
import DendroPlatform
import DendroRules
import DendroServer
import DendroTestSupport
import Foundation
import Synchronization
import Testing

/// Where rules come from, and what is left of them after a restart.
@Suite("serving: rules in files and in the database")
struct RulesFileTests {
  private static let owner = ["Authorization": "Bearer owner"]
  private static let open = "{\"rules\":{\".read\":true}}"
  private static let closed = "{\"rules\":{}}"

  /// Waits until a request has a status.
  private func expect(_ status: Int, of http: HTTPClient, _ target: String) async throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while try http("GET", target).status != status {
      guard ContinuousClock.now < deadline else {
        Issue.record("\(target) has never the status \(status)")
        return
      }
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test(
    "a file of rules is read again when it changes, and while it is broken the rules before hold")
  func reloaded() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("rules.json", Self.closed)
    let lines = Mutex<[String]>([])
    try await serving({
      $0.rulesFile = file
      $0.errorLog = { line in lines.withLock { $0.append(line) } }
    }) { served in
      let http = try served.client()
      #expect(try http("GET", "/a.json").status == 401)
      _ = try folder.write("rules.json", Self.open)
      try await expect(200, of: http, "/a.json")
      _ = try folder.write("rules.json", "{\"rules\":{\n\".read\":\"foo\"}}")
      let deadline = ContinuousClock.now + .seconds(30)
      while lines.withLock({ $0.isEmpty }), ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(20))
      }
      #expect(lines.withLock { $0.first?.contains("2:10: Unknown variable 'foo'.") } == true)
      #expect(try http("GET", "/a.json").status == 200)
      _ = try folder.write("rules.json", "{\"rules\":{\".write\":true}}")
      try await expect(401, of: http, "/a.json")
      let refused = try http("PUT", "/.settings/rules.json", Self.open, Self.owner)
      #expect(refused.status == 409)
      #expect(refused.body.contains("rules.json"))
    }
  }

  @Test(
    "a file that is broken or missing at the start locks the server for all but administrators",
    arguments: [
      (Array("{\"rules\"".utf8), "is broken: 1:9"), (nil, "cannot be read."),
      ([0x7B, 0xFF, 0x7D], "is not UTF-8."),
      (Array(repeating: 0x20, count: RuleLimits.textBytes + 1), "has more than 307200 bytes."),
    ] as [([UInt8]?, String)])
  func broken(text: [UInt8]?, reason: String) async throws {
    let folder = try TemporaryFolder()
    let file = folder.path + "/rules.json"
    if let text { try Data(text).write(to: URL(fileURLWithPath: file)) }
    let lines = Mutex<[String]>([])
    try await serving({
      $0.rulesFile = file
      $0.errorLog = { line in lines.withLock { $0.append(line) } }
    }) { served in
      let http = try served.client()
      #expect(lines.withLock { $0.first?.contains("only administrators") } == true)
      #expect(lines.withLock { $0.first?.contains(reason) } == true)
      #expect(try http("GET", "/a.json").status == 401)
      #expect(try http("PUT", "/a.json", "1").status == 401)
      #expect(try http("GET", "/a.json", nil, Self.owner).status == 200)
      _ = try folder.write("rules.json", Self.open)
      try await expect(200, of: http, "/a.json")
    }
  }

  @Test("rules are kept with the database: after a restart and in a backup, and not in an export")
  func kept() async throws {
    let folder = try TemporaryFolder()
    let data = folder.path + "/data"
    let backup = folder.path + "/backup"
    func serving(_ path: String, _ body: (HTTPClient, Database) async throws -> Void) async throws {
      let database = try await Database.open(at: path, options: DatabaseOptions())
      let server = try await DatabaseServer.start(serving: database)
      try await body(try HTTPClient(port: server.port), database)
      await server.stop()
      try await database.close()
    }
    try await serving(data) { http, database in
      #expect(try http("PUT", "/a.json", "1").status == 200)
      #expect(try http("PUT", "/.settings/rules.json", Self.closed, Self.owner).status == 200)
      #expect(try http("GET", "/.json?format=export", nil, Self.owner).body == "{\"a\":1}")
      try await database.backup(to: backup)
    }
    for path in [data, backup] {
      try await serving(path) { http, _ in
        let refused = try http("GET", "/a.json")
        #expect(refused.status == 401)
        let rules = try http("GET", "/.settings/rules.json", nil, Self.owner)
        #expect(rules.body == Self.closed)
      }
    }
  }

  @Test("a reader of the directory decides by its rules")
  func readOnly() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/data"
    let database = try await Database.open(at: path, options: DatabaseOptions())
    let server = try await DatabaseServer.start(serving: database)
    let http = try HTTPClient(port: server.port)
    #expect(try http("PUT", "/.settings/rules.json", Self.closed, Self.owner).status == 200)
    let follower = try await Database.open(following: path)
    let second = try await DatabaseServer.start(serving: follower)
    let reader = try HTTPClient(port: second.port)
    #expect(try reader("GET", "/a.json").status == 401)
    #expect(try http("PUT", "/.settings/rules.json", Self.open, Self.owner).status == 200)
    try await expect(200, of: reader, "/a.json")
    await second.stop()
    await server.stop()
    try await follower.close()
    try await database.close()
  }

  @Test(
    "what a client registers is judged as who has registered it, when it is registered and when it is written"
  )
  func onDisconnect() async throws {
    let rules = """
      {"rules": {"status": {"$uid": {".read": true, ".write": "auth.uid === $uid && root.child('closed').val() !== true"}}, "closed": {".write": true}}}
      """
    try await serving { served in
      let http = try served.client()
      #expect(try http("PUT", "/.settings/rules.json", rules, Self.owner).status == 200)
      let denied = "{\"s\":\"permission_denied\",\"d\":\"Permission denied\"}"
      let ok = "{\"s\":\"ok\",\"d\":\"\"}"
      let watcher = try WebSocketClient(served)
      _ = try watcher("q", "{\"p\":\"/status/ann\",\"h\":\"\"}")
      _ = try watcher("q", "{\"p\":\"/status/bob\",\"h\":\"\"}")
      var client: WebSocketClient? = try WebSocketClient(served)
      #expect(try client?("o", "{\"p\":\"/status/ann\",\"d\":\"off\"}") == [denied])
      _ = try client?("auth", "{\"cred\":\"\(SignedTokens.unsigned("ann"))\"}")
      #expect(try client?("o", "{\"p\":\"/status/ann\",\"d\":\"off\"}") == [ok])
      #expect(try client?("o", "{\"p\":\"/status/bob\",\"d\":\"off\"}") == [denied])
      _ = try client?("auth", "{\"cred\":\"\(SignedTokens.unsigned("bob"))\"}")
      #expect(try client?("o", "{\"p\":\"/status/bob\",\"d\":\"off\"}") == [ok])
      // Signed out, as after the end of a token.
      _ = try client?("unauth", "{}")
      client = nil
      let pushes = try [watcher.push(), watcher.push()].sorted()
      #expect(
        pushes == ["ann", "bob"].map { "\"a\":\"d\",\"b\":{\"p\":\"status/\($0)\",\"d\":\"off\"}" })
      var other: WebSocketClient? = try WebSocketClient(served)
      _ = try other?("auth", "{\"cred\":\"\(SignedTokens.unsigned("ann"))\"}")
      #expect(try other?("o", "{\"p\":\"/status/ann\",\"d\":\"gone\"}") == [ok])
      #expect(try http("PUT", "/closed.json", "true").status == 200)
      other = nil
      let last = try WebSocketClient(served)
      _ = try last("gauth", "{\"cred\":\"owner\"}")
      #expect(try last("p", "{\"p\":\"/status/ann\",\"d\":\"last\"}") == [ok])
      #expect(try watcher.push().hasSuffix("\"last\"}"))
    }
  }

  @Test(
    "a client may leave with many operations: they are judged as one write", .timeLimit(.minutes(5))
  )
  func manyOperations() async throws {
    let rules = """
      {"rules": {".read": true, "$uid": {".write": true, ".validate": "newData.hasChildren(['k0'])",
        "$key": {".validate": "newData.isNumber()"}}, "other": {".write": true}}}
      """
    try await serving { served in
      let http = try served.client()
      #expect(try http("PUT", "/.settings/rules.json", rules, Self.owner).status == 200)
      let count = 60_000
      let members = (0..<count).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
      func leave() throws -> String {
        let client = try WebSocketClient(served)
        #expect(
          try client("om", "{\"p\":\"/ann\",\"d\":{\(members)}}") == ["{\"s\":\"ok\",\"d\":\"\"}"])
        return client.session
      }
      let session = try leave()
      // It is let in once the last write of its session before is made.
      let next = try WebSocketClient(served, "/.ws?v=5&ns=app&ls=\(session)")
      #expect(
        try next("g", "{\"p\":\"/ann/k\(count - 1)\"}") == ["{\"s\":\"ok\",\"d\":\(count - 1)}"])
    }
  }

  @Test("what is registered for the end is judged together, and by itself if that is denied")
  func joint() async throws {
    let rules = """
      {"rules": {"seen": {".read": true, "$uid": {".write": true,
        ".validate": "newData.hasChildren(['online', 'at'])"}}, "kept": {".read": true,
        ".write": "root.child('closed').val() !== true"}, "closed": {".write": true}}}
      """
    try await serving { served in
      let http = try served.client()
      #expect(try http("PUT", "/.settings/rules.json", rules, Self.owner).status == 200)
      let watcher = try WebSocketClient(served)
      _ = try watcher("q", "{\"p\":\"/seen\",\"h\":\"\"}")
      func leaving(
        after registrations: [(String, String)],
        _ then: (_ session: String) throws -> Void = { _ in }
      ) throws {
        let client = try WebSocketClient(served)
        for (action, body) in registrations {
          #expect(try client(action, body) == ["{\"s\":\"ok\",\"d\":\"\"}"])
        }
        try then(client.session)
      }
      // Neither is valid without the other.
      let ann = "{\"p\":\"/seen/ann\",\"d\":{\"online\":false,\"at\":1}}"
      try leaving(after: [("om", ann)])
      _ = try watcher.push()
      #expect(try http("GET", "/seen/ann.json").body == "{\"at\":1,\"online\":false}")
      // What is denied when it runs does not take the rest with it.
      let bob = "{\"p\":\"/seen/bob\",\"d\":{\"online\":false,\"at\":2}}"
      let kept = ("o", "{\"p\":\"/kept\",\"d\":1}")
      try leaving(after: [("o", bob), kept]) { _ in _ = try http("PUT", "/closed.json", "true") }
      _ = try watcher.push()
      #expect(try http("GET", "/seen/bob.json").body == "{\"at\":2,\"online\":false}")
      #expect(try http("GET", "/kept.json").body == "null")
      // Nor does it make the client's next session come before it.
      _ = try http("PUT", "/closed.json", "false")
      let eve = "{\"p\":\"/seen/eve\",\"d\":{\"online\":false,\"at\":3}}"
      try leaving(after: [("o", eve), kept]) { session in
        _ = try http("PUT", "/closed.json", "true")
        let next = try WebSocketClient(served, "/.ws?v=5&ns=app&ls=\(session)")
        #expect(
          try next("g", "{\"p\":\"/seen/eve\"}")
            == ["{\"s\":\"ok\",\"d\":{\"at\":3,\"online\":false}}"])
      }
    }
  }
}
