import Dendro
import DendroServer
import DendroTestSupport
import Synchronization
import Testing

@Suite("serving: keys of tokens that a URL has")
struct FetchedKeyTests {
  /// What a server says about its keys, and its time.
  private final class Watched: Sendable {
    private let state = Mutex((now: SignedTokens.issued + 10, errors: [String]()))

    var now: Int64 { state.withLock { $0.now } }
    var errors: [String] { state.withLock { $0.errors } }

    func pass(_ seconds: Int64) { state.withLock { $0.now += seconds } }

    func note(_ error: String) { state.withLock { $0.errors.append(error) } }
  }

  private static let one =
    "{\"one\":\"\(SignedTokens.publicKeyOfOne.replacing("\n", with: "\\n"))\\n\"}"
  private static let two =
    "{\"two\":\"\(SignedTokens.certificateOfTwo.replacing("\n", with: "\\n"))\\n\"}"

  /// A server with the keys of another, which stops with it.
  private func serving(
    _ answer: KeyServer.Answer, timeout: Duration = .seconds(60),
    _ body: (Checked) async throws -> Void
  ) async throws {
    let keys = try KeyServer(answer)
    defer { keys.stop() }
    let watched = Watched()
    try await DendroServerTests.serving({ options in
      options.authorizer = UsersAuthorizer()
      options.tokens = TokenOptions()
      options.tokens?.keySetURL = keys.url
      options.tokens?.audience = "app"
      options.keySetTimeout = timeout
      options.clock = { watched.now }
      options.errorLog = { watched.note($0) }
    }) { served in
      try await body(Checked(served: served, keys: keys, watched: watched))
    }
  }

  private struct Checked {
    let served: Served
    let keys: KeyServer
    let watched: Watched

    func isBelieved(_ token: String) throws -> Bool {
      try served.client()("GET", "/a.json?auth=\(token)").status == 200
    }

    /// Waits until something holds that another thread brings about.
    func wait(until condition: () throws -> Bool) async throws {
      let deadline = ContinuousClock.now + .seconds(60)
      while try !condition() {
        try #require(ContinuousClock.now < deadline, "it has not happened")
        try await Task.sleep(for: .milliseconds(1))
      }
    }
  }

  @Test("a server that has started has the keys, and fetches them again when they are old")
  func refreshed() async throws {
    let headers = "Cache-Control: public, max-age=500, must-revalidate\r\nAge: 100\r\n"
    try await serving(.keys(Self.one, headers)) { checked in
      #expect(try checked.isBelieved(SignedTokens.rs256))
      #expect(checked.keys.requests == ["GET /keys HTTP/1.1"])
      checked.keys.answer = .keys(Self.two)
      checked.watched.pass(399)
      checked.served.server.refreshKeys()
      #expect(try checked.isBelieved(SignedTokens.rs256))
      checked.watched.pass(1)
      checked.served.server.refreshKeys()
      try await checked.wait { try checked.isBelieved(SignedTokens.rs256OfTwo) }
      #expect(try !checked.isBelieved(SignedTokens.rs256))
      #expect(checked.keys.requests.count == 2)
      #expect(checked.watched.errors == [])
    }
  }

  @Test(
    "without max-age the keys are an hour old at most, and with one a minute at least",
    arguments: [
      ("", 3600), ("Cache-Control: max-age=0\r\n", 60), ("Cache-Control: no-cache\r\n", 3600),
      ("Cache-Control: max-age=99999999999999999999\r\n", 3600),
      ("Cache-Control: max-age=9999999999\r\n", 86_400),
    ] as [(String, Int64)])
  func ages(headers: String, age: Int64) async throws {
    try await serving(.keys(Self.one, headers)) { checked in
      checked.keys.answer = .keys(Self.two)
      checked.watched.pass(age - 1)
      checked.served.server.refreshKeys()
      #expect(checked.keys.requests.count == 1)
      checked.watched.pass(1)
      checked.served.server.refreshKeys()
      try await checked.wait { checked.keys.requests.count == 2 }
    }
  }

  @Test("a key that is not there has the keys fetched, at most once a minute")
  func missing() async throws {
    try await serving(.keys(Self.one)) { checked in
      checked.keys.answer = .keys(SignedTokens.keySet)
      checked.watched.pass(59)
      for _ in 0..<10 { #expect(try !checked.isBelieved(SignedTokens.rs256OfTwo)) }
      #expect(checked.keys.requests.count == 1)
      checked.watched.pass(1)
      try await checked.wait { try checked.isBelieved(SignedTokens.rs256OfTwo) }
      #expect(checked.keys.requests.count == 2)
      for _ in 0..<10 { #expect(try !checked.isBelieved(SignedTokens.rs256UnknownName)) }
      // What is no token of this kind is not worth a fetch.
      checked.watched.pass(60)
      for token in [SignedTokens.hs256, SignedTokens.rs256OtherName, SignedTokens.unsigned] {
        #expect(try !checked.isBelieved(token))
      }
      #expect(checked.keys.requests.count == 2)
    }
  }

  @Test(
    "if a fetch fails, the keys of before stay, and the next one follows after a minute",
    arguments: [
      (.bytes("HTTP/1.1 500 Internal Server Error\r\n\r\n"), "the answer has the status 500"),
      (.bytes("HTTP/1.1 302 Found\r\nLocation: /keys\r\n\r\n"), "the answer has the status 302"),
      (.bytes("nonsense"), "HTTP/0.9"), (.bytes(""), "Empty reply"),
      (.bytes("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), "bytes remaining"),
      (.keys("{}"), "no public RSA key"), (.keys(SignedTokens.smallKeySet), "no public RSA key"),
      (.keys(String(repeating: " ", count: 1 << 20) + one), "more than 1048576 bytes"),
      (.nothing, "timed out"),
    ] as [(KeyServer.Answer, String)])
  func failing(answer: KeyServer.Answer, reason: String) async throws {
    let timeout: Duration = if case .nothing = answer { .seconds(3) } else { .seconds(60) }
    try await serving(.keys(Self.one, "Cache-Control: max-age=100\r\n"), timeout: timeout) {
      checked in
      checked.keys.answer = answer
      checked.watched.pass(100)
      checked.served.server.refreshKeys()
      try await checked.wait { checked.watched.errors.count == 1 }
      let error = try #require(checked.watched.errors.first)
      #expect(error.contains(reason), "\(error)")
      #expect(error.hasPrefix("the keys of \(checked.keys.url) cannot be fetched: "))
      #expect(error.hasSuffix("; those of before stay"))
      #expect(try checked.isBelieved(SignedTokens.rs256))
      checked.keys.answer = .keys(Self.two)
      checked.watched.pass(59)
      checked.served.server.refreshKeys()
      #expect(try checked.isBelieved(SignedTokens.rs256))
      checked.watched.pass(1)
      try await checked.wait {
        checked.served.server.refreshKeys()
        return try checked.isBelieved(SignedTokens.rs256OfTwo)
      }
    }
  }

  @Test("a server whose first fetch fails starts, and believes no token until one succeeds")
  func later() async throws {
    try await serving(.bytes("")) { checked in
      #expect(checked.watched.errors.count == 1)
      #expect(checked.watched.errors.first?.hasSuffix("; no token is believed yet") == true)
      #expect(try !checked.isBelieved(SignedTokens.rs256))
      #expect(try checked.served.client()("GET", "/a.json").status == 401)
      checked.keys.answer = .keys(Self.one)
      checked.watched.pass(60)
      checked.served.server.refreshKeys()
      try await checked.wait { try checked.isBelieved(SignedTokens.rs256) }
    }
  }

  @Test("a server that stops does not wait for a fetch")
  func stopping() async throws {
    try await serving(.keys(Self.one), timeout: .seconds(600)) { checked in
      checked.keys.answer = .nothing
      checked.watched.pass(3600)
      checked.served.server.refreshKeys()
      try await checked.wait { checked.keys.requests.count == 2 }
      await checked.served.server.stop()
      #expect(checked.watched.errors == [])
    }
  }

  @Test(
    "URLs that are not fetched",
    arguments: [
      "http://example.com/keys", "http://127.0.0.1.example.com/keys",
      "http://localhost@example.com/",
      "http://127.0.0.1:80@example.com/", "http://[::2]/", "http://127.1.example/",
      "http://128.0.0.1/",
      "http://localhost.example.com/", "http://localhost\\@example.com/", "http://127.0.0.1:99999/",
      "ftp://127.0.0.1/", "file:///etc/passwd", "https://", "https:///keys",
      "https://user@example.com/",
      "https://example.com/ keys", "https://example.com/\r\nX: y", "https://exämple.com/", "",
      "keys",
      "https://example.com/" + String(repeating: "x", count: 2048),
    ])
  func refused(url: String) async throws {
    var options = DatabaseServerOptions.patient
    options.tokens = TokenOptions()
    options.tokens?.keySetURL = url
    options.tokens?.audience = "app"
    await #expect(throws: DatabaseServerError.self) {
      try await DatabaseServer.start(serving: Database.inMemory(), options: options)
    }
  }

  @Test("keys come from one place")
  func twoPlaces() async throws {
    let folder = try TemporaryFolder()
    var options = DatabaseServerOptions.patient
    options.tokens = TokenOptions()
    options.tokens?.keySetFile = try folder.write("keys", SignedTokens.keySet)
    options.tokens?.keySetURL = "https://example.com/keys"
    options.tokens?.audience = "app"
    await #expect(throws: DatabaseServerError.self) {
      try await DatabaseServer.start(serving: Database.inMemory(), options: options)
    }
  }
}
