import Dendro
import DendroProtocol
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroSync

/// Who a client is: when it asks for tokens, and what it does if the server does not take one.
@Suite("synced databases: identity")
struct IdentityTests {
  private let server: ScriptedServer
  private let database: Database
  private let client: SyncClient
  private let log: LogLines

  init() throws {
    let log = LogLines()
    self.log = log
    server = try ScriptedServer()
    database = synced(server.port, connects: false) { $0.logging = { log.note($0) } }
    client = try #require(database.remote as? SyncClient)
  }

  /// Gives one token after the other, the last one over and over, and counts.
  private final class Source: Sendable {
    private let tokens: [String]
    private let count = Mutex(0)

    init(_ tokens: String...) { self.tokens = tokens }

    var givenCount: Int { count.value }

    func give() -> DatabaseToken {
      count.withLock { count in
        count += 1
        return .user(tokens[min(count, tokens.count) - 1])
      }
    }
  }

  /// Signs in, and waits until the client has a token. The thread of the source may be the one that a test would block.
  private func signIn(by source: Source) async throws {
    try database.authenticate { source.give() }
    try await hasToken(source, 1)
  }

  private func hasToken(_ source: Source, _ count: Int) async throws {
    try await eventually {
      source.givenCount == count && client.reading(\.identity.hasToken)
    }
  }

  /// The token with which the client signs in next.
  private func takeToken(refusing status: String? = nil) throws -> String? {
    let request = try server.request()
    #expect(request.action == "auth")
    if let status {
      try server.answer(request.number, status, data: #""it is not taken""#)
    } else {
      try server.answer(request.number, data: "{}")
    }
    return request.body.string("cred")
  }

  private func push(_ value: Int) throws { try server.push("d", #"{"p":"n","d":\#(value)}"#) }

  // MARK: Renewal

  @Test(
    "a token that says when it expires is replaced five minutes before by the server's clock, and ten seconds after it came at the earliest"
  )
  func renewal() throws {
    let limits = TokenLimits()
    func pause(_ text: String, at time: Int64 = 0) -> Duration? {
      limits.renewal(of: .user(text), at: time)
    }
    #expect(pause(token("a", #""exp":3600"#)) == .seconds(3300))
    #expect(pause(token("a", #""exp":3600.5"#), at: 1_000_999) == .seconds(2300))
    #expect(pause(token("a", #""exp":3600"#), at: 3_290_000) == .seconds(10))
    #expect(pause(token("a", #""exp":3600"#), at: 9_000_000) == .seconds(10))
    #expect(pause(token("a", #""exp":-1"#)) == .seconds(10))
    // No timer can wait for so long.
    for end in ["1e14", "\(Int64.max)"] {
      let pause = try #require(pause(token("a", #""exp":\#(end)"#), at: -8_640_000_000_000_000))
      #expect(pause > .seconds(1_000_000_000) && pause < .seconds(9_000_000_000))
    }
    #expect(pause(token("a", #""iat":1"#)) == nil)
    #expect(pause(token("a", #""exp":"3600""#)) == nil)
    #expect(pause(token("a", #""exp":3600"#, algorithm: "none")) == nil)
    #expect(pause("no token") == nil)
    #expect(limits.renewal(of: .administrator(token("a", #""exp":3600"#)), at: 0) == nil)
  }

  @Test("a token that is about to expire is replaced over the same connection")
  func renewedToken() async throws {
    client.state.withLock { $0.identity.limits.leastPause = .milliseconds(1) }
    let now = SyncClient.clock() / 1000
    let old = token("ann", #""exp":\#(now + 200)"#)
    let new = token("ann", #""exp":\#(now + 3600)"#)
    let source = Source(old, new)
    let (gate, opener) = AsyncStream.makeStream(of: Never.self)
    try database.authenticate {
      let token = source.give()
      if source.givenCount == 2 { for await _ in gate {} }
      return token
    }
    // The second one is asked for, and does not come yet.
    try await hasToken(source, 2)
    try server.accept(time: SyncClient.clock())
    #expect(try takeToken() == old)
    let viewer = Viewer(database)
    viewer.listen("n", database.reference(withPath: "n"))
    let listen = try server.request()
    try push(1)
    try server.answer(listen.number, data: "{}")
    #expect(try await viewer.take(1) == ["n": [.value(try node("1"))]])
    let number = client.reading(\.identity.number)
    opener.finish()
    // It is taken, and the next asking is for later.
    try await eventually { client.reading(\.identity.number) > number }
    #expect(try takeToken() == new)
    try push(2)
    #expect(try await viewer.take(1) == ["n": [.value(try node("2"))]])
    #expect(source.givenCount == 2)
    #expect(client.reading(\.line) == 1)
    try await database.close()
  }

  // MARK: Revoked tokens

  @Test(
    "if the server revokes a token, the client signs in with a new one, and its listeners go on",
    arguments: ["expired_token", "invalid_token", "permission_denied"])
  func revoked(status: String) async throws {
    let source = Source(token("ann", #""iat":1"#), token("ann", #""iat":2"#))
    try await signIn(by: source)
    let isAuthenticated = Mutex<Bool?>(nil)
    database.reference(withPath: ".info/authenticated").observe(.value) { snapshot in
      isAuthenticated.withLock { $0 = snapshot.value as? Bool }
    }
    let viewer = Viewer(database)
    viewer.listen("n", database.reference(withPath: "n"))
    try server.accept()
    #expect(try takeToken() == token("ann", #""iat":1"#))
    let listen = try server.request()
    #expect(listen.body.string("h") == "")
    try push(10)
    try server.answer(listen.number, data: "{}")
    #expect(try await viewer.take(1) == ["n": [.value(try node("10"))]])
    try await eventually { isAuthenticated.value == true }
    // Without a user the client has no right to listen there, so the server ends the listen as well.
    try server.together {
      try server.push("ac", #"{"s":"\#(status)","d":"it has ended"}"#)
      try server.push("c", #"{"p":"n"}"#)
    }
    try await hasToken(source, 2)
    try await eventually { isAuthenticated.value == false }
    try await eventually { log.contains("\(status): it has ended") }

    try server.accept()
    #expect(try takeToken() == token("ann", #""iat":2"#))
    let again = try server.request()
    #expect(again.action == "q")
    #expect(again.body.string("h") == "+r5aI9HvKKagELki8SYKBk0q7D4=")
    try push(11)
    try server.answer(again.number, data: "{}")
    #expect(try await viewer.take(1) == ["n": [.value(try node("11"))]])
    try await eventually { isAuthenticated.value == true }
    #expect(client.reading(\.identity.refusalCount) == 0)
    #expect(source.givenCount == 2)
    try await database.close()
  }

  // MARK: Refused tokens

  @Test("what the server refuses together with a token is asked for again with the next one")
  func refusedTogether() async throws {
    let source = Source("bad", token("ann", #""iat":2"#))
    try await signIn(by: source)
    let viewer = Viewer(database)
    viewer.listen("n", database.reference(withPath: "n"))
    let answers = Mutex<[String]>([])
    database.reference(withPath: "w").setValue(1) { error, _ in
      answers.withLock { $0.append(error.map { "\($0)" } ?? "ok") }
    }
    try server.accept()
    let requests = try (0..<3).map { _ in try server.request() }
    #expect(requests.map(\.action) == ["auth", "q", "p"])
    try server.together {
      for (request, status) in zip(
        requests, ["invalid_token", "permission_denied", "permission_denied"])
      {
        try server.answer(request.number, status, data: #""it is not taken""#)
      }
    }
    try await hasToken(source, 2)
    try await eventually { log.contains("invalid_token: it is not taken") }
    try server.accept()
    #expect(try takeToken() == token("ann", #""iat":2"#))
    let again = try (0..<2).map { _ in try server.request() }
    #expect(again.map(\.action) == ["q", "p"])
    try push(1)
    for request in again { try server.answer(request.number, data: "{}") }
    #expect(try await viewer.take(1) == ["n": [.value(try node("1"))]])
    try await eventually { answers.value == ["ok"] }
    try await database.close()
  }

  @Test("a write that the server refuses is taken back with permission denied, and the token stays")
  func refusedWrite() async throws {
    let source = Source(token("ann", #""iat":1"#))
    try await signIn(by: source)
    let viewer = Viewer(database)
    viewer.listen("n", database.reference(withPath: "n"))
    try server.accept()
    _ = try takeToken()
    let listen = try server.request()
    try push(1)
    try server.answer(listen.number, data: "{}")
    #expect(try await viewer.take(1) == ["n": [.value(try node("1"))]])
    let refusal = Mutex<DatabaseError?>(nil)
    database.reference(withPath: "n").setValue(2) { error, _ in
      refusal.withLock { $0 = error as? DatabaseError }
    }
    let write = try server.request()
    #expect(write.action == "p")
    #expect(try await viewer.take(1) == ["n": [.value(try node("2"))]])
    try server.answer(write.number, "permission_denied", data: #""Permission denied""#)
    #expect(try await viewer.take(1) == ["n": [.value(try node("1"))]])
    try await eventually { refusal.value != nil }
    let error = refusal.value
    #expect(error?.code == .permissionDenied)
    #expect(error?.name == "permission_denied")
    #expect(error?.message == "Permission denied")
    #expect(client.reading(\.identity.isSignedIn))
    #expect(source.givenCount == 1)
    try await database.close()
  }

  @Test(
    "after three refused tokens one after the other the client connects as late as it may; expired ones do not count"
  )
  func hopeless() async throws {
    func command(_ status: String?) -> SyncLoop.Command? {
      client.state.withLock { state in
        var due = SyncClient.Due()
        client.noteSignedIn(status.map { SyncRefusal(status: $0, text: "") }, &state, &due)
        return due.command
      }
    }
    func isLate(_ status: String) -> Bool? {
      switch command(status) {
      case .reconnect: false
      case .reconnectLate: true
      default: nil
      }
    }
    #expect(isLate("invalid_token") == false)
    #expect(isLate("permission_denied") == false)
    // A token that is taken begins the count anew.
    #expect(command(nil) == nil)
    #expect(isLate("invalid_token") == false)
    for _ in 0..<5 { #expect(isLate("expired_token") == false) }
    #expect(isLate("invalid_token") == false)
    #expect(isLate("invalid_token") == true)
    #expect(isLate("invalid_token") == true)
    try await database.close()
  }

  @Test(
    "the first token is tried at once, and the next ones after the pauses of a lost connection",
    arguments: ["expired_token", "invalid_token"])
  func pauses(status: String) async throws {
    var identity = SyncClient.Identity()
    var due = SyncClient.Due()
    var isAtOnce = identity.noteToken()
    #expect(isAtOnce)
    for _ in 0..<3 {
      identity.noteRefusal(status)
      #expect(!identity.hasToken)
      // The same token may come again, and be refused again.
      isAtOnce = identity.noteToken()
      #expect(!isAtOnce)
      #expect(identity.hasToken)
    }
    // Those of another source may be better.
    identity.end(&due)
    isAtOnce = identity.noteToken()
    #expect(isAtOnce)
    try await database.close()
  }

  @Test("going online ends the pause after refused tokens")
  func goOnline() async throws {
    client.state.withLock { $0.identity.limits.refusalCountMax = 1 }
    let source = Source("bad", token("ann", #""iat":2"#))
    try await signIn(by: source)
    try server.accept()
    #expect(try takeToken(refusing: "invalid_token") == "bad")
    try await hasToken(source, 2)
    #expect(client.reading(\.identity.isHopeless))
    database.goOnline()
    try server.accept()
    #expect(try takeToken() == token("ann", #""iat":2"#))
    try await eventually { !client.reading(\.identity.isHopeless) }
    try await database.close()
  }

  // MARK: Sources

  @Test("a source that fails is asked again, after pauses from 2 to 64 seconds")
  func failures() async throws {
    let pauses = (1...8).map { TokenLimits().delay(afterFailures: $0) }
    #expect(pauses == [2, 4, 8, 16, 32, 64, 64, 64].map { .seconds($0) })
    client.state.withLock { $0.identity.limits.failureUnit = .microseconds(10) }
    let count = Mutex(0)
    struct NoNetwork: Error {}
    try database.authenticate {
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number < 4 { throw NoNetwork() }
      return .user("good")
    }
    try await eventually { client.reading(\.identity.hasToken) }
    #expect(count.value == 4)
    #expect(client.reading(\.identity.failureCount) == 0)
    try await eventually { log.contains("no token could be got: NoNetwork") }
    try server.accept()
    #expect(try takeToken() == "good")
    try await database.close()
  }

  @Test("a newer source cancels the one before, whose token does not count any more")
  func newerSource() async throws {
    let isAsked = Mutex(false)
    let isCancelled = Mutex(false)
    try database.authenticate {
      isAsked.withLock { $0 = true }
      try? await Task.sleep(for: .seconds(3600))
      isCancelled.withLock { $0 = Task.isCancelled }
      return .user("old")
    }
    try await eventually { isAsked.value }
    try await signIn(by: Source("new"))
    try await eventually { isCancelled.value }
    try server.accept()
    #expect(try takeToken() == "new")
    #expect(try server.settled().isEmpty)
    try await database.close()
  }
}

/// A token that says that it is signed.
///
/// - Parameter claims: members of the JSON, beside the user.
private func token(_ user: String, _ claims: String, algorithm: String = "RS256") -> String {
  [#"{"alg":"\#(algorithm)","typ":"JWT"}"#, #"{"sub":"\#(user)",\#(claims)}"#, "signature"]
    .map { text in
      Data(text.utf8).base64EncodedString().replacing("=", with: "")
        .replacing("+", with: "-").replacing("/", with: "_")
    }.joined(separator: ".")
}
