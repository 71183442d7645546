import Dendro
import DendroEngine
import DendroProtocol
import DendroTestSupport
import DendroTree
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import DendroServer

@Suite("serving: databases that several servers have")
struct PeerTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  private var follower: PeerStatus {
    var status = PeerStatus(.follower)
    (status.epoch, status.lsn, status.sharedLSN) = (3, 40, 42)
    (status.appendCount, status.appendTime, status.undecidedCount) = (7, .milliseconds(1500), 2)
    status.lineCount = 2
    (status.takeoverCount, status.trouble) = (1, "the line is \"cut\"")
    (status.server, status.leader, status.leaderAddress) = ("aa", "bb", "http://b.example:9000")
    return status
  }

  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  // MARK: Who leads

  @Test("/.leader answers 200 where writes are taken, and 503 elsewhere, to everybody")
  func leader() async throws {
    let shared = try SharedDatabase(follower, elsewhere: ["other"])
    try await shared.serving({ options in
      options.authorizer = UsersAuthorizer()
      options.secret = "s3cret"
    }) { _, http in
      let following = try http("GET", "/.leader")
      #expect(following.status == 503)
      #expect(following.headers["cache-control"] == "no-cache")
      #expect(
        following.body
          == "{\"role\":\"follower\",\"takesWrites\":false,\"leader\":\"http://b.example:9000\"}\n")
      // It leads, but its engine takes no writes yet.
      shared.status.withLock { $0 = PeerStatus(.leader) }
      #expect(try http("GET", "/.leader?ns=app").status == 503)
      #expect(try shared.engine().beginLeading())
      let leading = try http("GET", "/.leader?ns=app")
      #expect(leading.status == 200)
      #expect(leading.body == "{\"role\":\"leader\",\"takesWrites\":true,\"leader\":null}\n")
      #expect(try http("HEAD", "/.leader").status == 200)
      shared.status.withLock { $0 = PeerStatus(.stopped) }
      #expect(try http("GET", "/.leader").body.contains("\"role\":\"stopped\""))
      #expect(try http("PUT", "/.leader", "1").status == 405)
      #expect(try http("GET", "/.leader?ns=none").status == 404)
      #expect(try http("GET", "/.leader?ns=other").status == 503)
      #expect(try http("GET", "/.leader?ns=..").status == 403)
      // Balancers ask all the time: that a server follows is no failure.
      #expect(
        try http("GET", "/.metrics", nil, ["Authorization": "Bearer s3cret"]).body.contains(
          "\ndendro_request_failures_total 0\n"))
    }
  }

  @Test("a server without others has no /.leader")
  func alone() async throws {
    try await serving { served async throws in
      #expect(try served.client()("GET", "/.leader").status == 404)
      #expect(try served.client()("GET", "/.metrics").body.contains("dendro_cluster") == false)
      #expect(try served.client()("GET", "/.status.json").body.contains("cluster") == false)
    }
  }

  // MARK: Status and figures

  @Test("the status has the server's part, for those who may see it; following is no failure")
  func status() async throws {
    let shared = try SharedDatabase(follower)
    try await shared.serving({ options in
      options.authorizer = UsersAuthorizer()
      options.secret = "s3cret"
    }) { _, http in
      _ = try shared.engine()
      // It can be read, and so clients may come.
      let trouble = "\"error\":\"This server has no contact with the others.\""
      #expect(
        try http("GET", "/.status.json").body
          == "{\"status\":\"degraded\",\(trouble),\"databases\":{}}")
      let answer = try http("GET", "/.status.json", nil, ["Authorization": "Bearer s3cret"])
      #expect(answer.status == 200)
      let databases = try #require(try object(answer.body)["databases"] as? [String: Any])
      let app = try #require(databases["app"] as? [String: Any])
      let cluster = try #require(app["cluster"] as? [String: Any])
      #expect(cluster["role"] as? String == "follower")
      for (name, value) in [
        "epoch": 3, "lsn": 40, "sharedLsn": 42, "lag": 2, "appends": 7, "appendSeconds": 1.5,
        "undecided": 2, "takeovers": 1, "lines": 2,
      ] {
        #expect(cluster[name] as? Double == value, "\(name)")
      }
      for (name, value) in [
        "trouble": "the line is \"cut\"", "server": "aa", "leader": "bb",
        "leaderAddress": "http://b.example:9000",
      ] {
        #expect(cluster[name] as? String == value, "\(name)")
      }
      #expect(app["error"] as? String == "the line is \"cut\"")
      shared.status.withLock { $0.trouble = nil }
      #expect(try http("GET", "/.status.json").body == "{\"status\":\"ok\",\"databases\":{}}")
      // One that takes no part any more does not do what it is to do.
      shared.status.withLock { $0.role = .stopped }
      #expect(try http("GET", "/.status.json").status == 503)
    }
  }

  @Test("the figures have the server's part in each database")
  func figures() async throws {
    let shared = try SharedDatabase(follower)
    try await shared.serving { _, http in
      _ = try shared.engine()
      let figures = try http("GET", "/.metrics").body
      for (name, value) in [
        ("leader", "0"), ("epoch", "3"), ("lag_writes", "2"), ("appends_total", "7"),
        ("append_seconds_total", "1.5"), ("undecided_total", "2"), ("takeovers_total", "1"),
        ("lines", "2"),
        ("trouble", "1"),
      ] {
        #expect(
          figures.contains("\ndendro_cluster_\(name){database=\"app\"} \(value)\n"), "\(name)")
      }
    }
  }

  // MARK: Writes

  @Test("a follower reads, and refuses writes with the leader's address")
  func refuses() async throws {
    let shared = try SharedDatabase(follower)
    let engine = try shared.engine()
    #expect(engine.beginLeading())
    try await shared.serving { server, http in
      #expect(try http("PUT", "/a.json", "1").status == 200)
      let client = try WebSocketClient(port: server.port)
      try engine.endLeading("another server leads")
      let reason = "another server leads: http://b.example:9000"
      for (method, target, body) in [
        ("PUT", "/a.json", "2"), ("PATCH", "/.json", "{\"a\":2}"), ("DELETE", "/a.json", nil),
        ("POST", "/a.json", "2"), ("PUT", "/a.json", "{\".sv\":{\"increment\":1}}"),
        ("PUT", "/.settings/rules.json", "{\"rules\":{}}"),
        ("PUT", "/.settings/defaultWriteSizeLimit.json", "\"small\""),
      ] {
        let answer = try http(
          method, target, body,
          target.hasPrefix("/.settings") ? ["Authorization": "Bearer owner"] : [:])
        #expect(answer.status == 503, "\(method) \(target)")
        #expect(try object(answer.body)["error"] as? String == reason, "\(method) \(target)")
      }
      #expect(try http("GET", "/a.json").body == "1")
      let refusal = "{\"s\":\"unavailable\",\"d\":\"\(reason)\"}"
      #expect(try client("q", "{\"p\":\"/a\",\"h\":\"\"}").last?.hasPrefix("{\"s\":\"ok\"") == true)
      // It has nothing that could be cancelled.
      #expect(try client("oc", "{\"p\":\"/b\",\"d\":null}") == [ok])
      #expect(try client("p", "{\"p\":\"/b\",\"d\":2}") == [refusal])
      #expect(try client("o", "{\"p\":\"/b\",\"d\":2}") == [refusal])
      shared.status.withLock { $0.leaderAddress = nil }
      #expect(try http("PUT", "/a.json", "2").body.contains("\"another server leads\""))
      shared.status.withLock { $0.leader = nil }
      #expect(try http("PUT", "/a.json", "2").body.contains("\"no server leads\""))
      // What follows the first words is not for everybody.
      shared.status.withLock { $0.role = .leader }
      try engine.endLeading("PostgreSQL does not answer: secret.example")
    }
  }

  @Test("the reason of a refusal has no details")
  func reasons() {
    func text(_ error: DatabaseError) -> String { RESTError(error).text }
    #expect(
      text(DatabaseError(EngineError.unavailable("PostgreSQL does not answer: db.example:5432")))
        == "PostgreSQL does not answer")
    #expect(
      text(DatabaseError(.unavailable, "SyncedDirectory", "…"))
        == "The database has the data of another server.")
    #expect(
      text(DatabaseError(.unavailable, "PostgresUnavailable", "…"))
        == "The database is not available now.")
    #expect(RESTError(DatabaseError(EngineError.undecided("…"))).status == 504)
    let unopened: any Error = DatabaseError(.invalidArgument, "OtherCluster", "/secret/place")
    #expect(RESTError(unopened) == RESTError(503, "The database cannot be opened here."))
  }

  @Test("a write whose outcome is not known is answered so")
  func undecided() async throws {
    let shared = try SharedDatabase(PeerStatus(.leader))
    let engine = try shared.engine()
    #expect(engine.beginLeading())
    shared.log.answer(.undecided("no answer"))
    try await shared.serving { server, http in
      #expect(try http("PUT", "/a.json", "1").status == 504)
      #expect(engine.beginLeading())
      let client = try WebSocketClient(port: server.port)
      #expect(try client("p", "{\"p\":\"/b\",\"d\":2}")[0].hasPrefix("{\"s\":\"unavailable\""))
    }
  }

  @Test("a write that PostgreSQL does not answer is answered after 30 seconds, and once")
  func overdue() async throws {
    let shared = try SharedDatabase(PeerStatus(.leader))
    #expect(try shared.engine().beginLeading())
    try await shared.serving { server, http in
      let etag = try http("GET", "/a.json", nil, ["X-Firebase-ETag": "true"]).headers["etag"]
      let session = try WebSocketClient(port: server.port)
      shared.log.stick()
      let begun = ContinuousClock.now
      let requests = try [
        ("PUT", "/a.json", ["If-Match": try #require(etag)], "1"), ("PUT", "/b.json", [:], "2"),
        ("PATCH", "/.json", [:], "{\"c\":3}"),
        ("PUT", "/d.json", [:], "{\".sv\":{\"increment\":1}}"),
        ("PUT", "/.settings/rules.json", ["Authorization": "Bearer owner"], "{\"rules\":{}}"),
      ].map { (method, target, headers: [String: String], body) in
        let client = try HTTPClient(port: server.port)
        try client.send(HTTPClient.request(method, target, body, headers))
        return client
      }
      let number = try session.request("p", "{\"p\":\"/e\",\"d\":5}")
      let namespace = try shared.namespaces.namespace("app", makesNew: false).namespace
      try await eventually("all wait") {
        namespace.unanswered.count == requests.count + 1
      }
      namespace.unanswered.giveUpOverdue(now: begun + .milliseconds(29_999))
      #expect(namespace.unanswered.count == requests.count + 1)
      namespace.unanswered.giveUpOverdue(now: .now + .seconds(31))
      for client in requests {
        let answer = try client.answer()
        #expect(answer.status == 504)
        #expect(answer.body.contains("It is not known whether the write was made."))
      }
      #expect(
        try session.push()
          == "\"r\":\(number),\"b\":{\"s\":\"unavailable\",\"d\":\"It is not known whether the write was made.\"}"
      )
      // Now the outcome comes.
      shared.log.engineCloses()
      try await eventually("the writes have ended") { try !shared.engine().isLeading }
      // There is no second answer.
      #expect(try session("s", "{\"c\":{}}") == [ok])
    }
  }

  // MARK: What sessions leave

  @Test(
    "the last writes of sessions whose server does not lead any more are made by who leads next")
  func lastWrites() async throws {
    let shared = try SharedDatabase(PeerStatus(.leader))
    let engine = try shared.engine()
    #expect(engine.beginLeading())
    try await shared.serving { server, http in
      let present = try WebSocketClient(port: server.port)
      #expect(try present("o", "{\"p\":\"/present\",\"d\":1}") == [ok])
      do {
        let gone = try WebSocketClient(port: server.port)
        #expect(try gone("o", "{\"p\":\"/gone\",\"d\":1}") == [ok])
        try engine.endLeading("another server leads")
      }
      // Its last write is refused.
      while try http("GET", "/.metrics").body.contains("dendro_sessions 2") {}
      #expect(try http("GET", "/gone.json").body == "null")
      #expect(engine.beginLeading())
      while try http("GET", "/gone.json").body == "null" {}
      // That of a session which this server still has waits for its end.
      #expect(try http("GET", "/present.json").body == "null")
    }
    #expect(try engine.head.root.node(at: Path(parsing: "/present")).scalar == .integer(1))
  }

  @Test("rules that another server has put hold")
  func rules() async throws {
    let shared = try SharedDatabase(PeerStatus(.leader))
    let engine = try shared.engine()
    #expect(engine.beginLeading())
    try await shared.serving { server, http in
      let administrator = ["Authorization": "Bearer owner"]
      #expect(
        try http("GET", "/.settings/defaultWriteSizeLimit.json", nil, administrator).body
          == "\"large\"")
      // As a record of the shared log does it.
      let change = try Write.set(
        Path(parsing: "/settings/defaultWriteSizeLimit"), Node(.string("\"small\"")))
      engine.submit(EncodedWrite(nil, system: EncodedWrite(change))) { _ in }
      while try http("GET", "/.settings/defaultWriteSizeLimit.json", nil, administrator).body
        != "\"small\""
      {}
    }
  }

  @Test("a server ends although a write waits for the other servers")
  func ends() async throws {
    let shared = try SharedDatabase(PeerStatus(.leader))
    #expect(try shared.engine().beginLeading())
    shared.log.stick()
    let status = Mutex<Int?>(nil)
    let answered = DispatchSemaphore(value: 0)
    try await shared.serving { server, _ in
      let port = server.port
      DispatchQueue(label: "writer").async {
        let answer = try? HTTPClient(port: port)("PUT", "/a.json", "1")
        status.withLock { $0 = answer?.status }
        answered.signal()
      }
      await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
          shared.log.waits.wait()
          continuation.resume()
        }
      }
    }
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        answered.wait()
        continuation.resume()
      }
    }
    #expect(status.value == 504)
  }
}
