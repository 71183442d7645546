import DendroProtocol
import Testing

/// What a browser, or whoever lets a name lead to the server, may ask of one that believes everybody.
@Suite("Names and origins of requests")
struct RequestPolicyTests {
  private static let policy: RequestPolicy = {
    do throws(RESTError) {
      return try RequestPolicy(
        isStrict: true, hostNames: ["db.example.com"],
        origins: ["https://app.example.com", "capacitor://localhost"])
    } catch {
      fatalError(error.text)
    }
  }()

  /// - Returns: the status of the refusal; nil if the request is allowed.
  private static func refusal(
    _ fields: [(String, String)], _ method: String = "GET", _ target: String = "/.json",
    version: String = "HTTP/1.1", by policy: RequestPolicy = policy
  ) -> Int? {
    do throws(RESTError) {
      try policy.check(
        method: method, target: target, version: version, headers: HTTPHeaders(fields))
      return nil
    } catch {
      return error.status
    }
  }

  @Test(
    "names by which a server is asked",
    arguments: [
      ("127.0.0.1:9000", nil), ("localhost", nil), ("LocalHost:1", nil), ("db.localhost:9000", nil),
      ("[::1]:9000", nil), ("[fe80::1]", nil), ("192.168.1.7:9000", nil), ("203.0.113.9", nil),
      ("nas", nil), ("nas:9000", nil), ("host.docker.internal:9000", nil),
      ("host.containers.internal", nil),
      ("db.example.com", nil), ("DB.Example.com:443", nil),
      ("evil.example", 403), ("evil.example:9000", 403), ("127.0.0.1.evil.example", 403),
      ("localhost.evil.example", 403), ("sub.db.example.com", 403), ("1.2.3", 403),
      ("1.2.3.999", 403), ("notlocalhost.", 400), ("localhost.", 400), ("127.0.0.1.", 400),
      ("user@127.0.0.1", 400), ("user:pw@localhost", 400), ("", 400), (":9000", 400),
      ("localhost:", 400), ("localhost:99999", 400), ("localhost:9000:1", 400), ("[::1", 400),
      ("[]", 400), ("[1]", 400), ("::1", 400), ("a b", 400), ("a\u{0}b", 400), ("a/b", 400),
      ("a..b", 400), (".a", 400), ("ä.localhost", 400), ("localhost, localhost", 400),
    ] as [(String, Int?)])
  func host(name: String, status: Int?) {
    #expect(Self.refusal([("Host", name)]) == status)
  }

  @Test("a name that is said twice, or never")
  func hostCount() {
    #expect(Self.refusal([]) == 400)
    #expect(Self.refusal([], version: "HTTP/1.0") == nil)
    #expect(Self.refusal([("Host", "localhost"), ("hOST", "localhost")]) == 400)
    #expect(
      Self.refusal([
        ("Host", "localhost"), ("Origin", "http://localhost"), ("Origin", "http://localhost"),
      ]) == 400)
    #expect(Self.refusal([("Host", "a")], "GET", "http://localhost/.json") == 400)
    #expect(Self.refusal([("Host", "a")], "OPTIONS", "*") == nil)
  }

  @Test(
    "pages that may ask",
    arguments: [
      ("http://127.0.0.1:9000", nil), ("http://localhost:3000", nil), ("https://localhost", nil),
      ("http://app.localhost:5173", nil), ("http://[::1]:80", nil),
      ("https://app.example.com", nil), ("https://app.example.com:443", nil),
      ("capacitor://localhost", nil), ("tauri://localhost", 403),
      ("http://app.example.com", 403), ("https://app.example.com:444", 403),
      ("https://app.example.com.evil.example", 403), ("https://evil.example", 403),
      ("http://localhost.evil.example", 403), ("http://192.168.1.7:3000", 403), ("null", 403),
      ("", 403), ("file://", 403), ("chrome-extension://abc", 403),
      ("http://localhost@evil.example", 403), ("https://127.0.0.1.evil.example", 403),
    ] as [(String, Int?)])
  func origin(name: String, status: Int?) throws {
    let fields = [("Host", "127.0.0.1:9000"), ("Origin", name)]
    #expect(Self.refusal(fields) == status)
    #expect(Self.refusal(fields, "OPTIONS") == status)
    #expect(Self.refusal(fields, "GET", "/.ws?v=5") == status)
    #expect(try Self.refusal(fields, by: RequestPolicy(isStrict: true, origins: ["*"])) == nil)
    // A server that wants a proof answers all pages.
    #expect(try Self.refusal(fields, by: RequestPolicy(isStrict: false)) == nil)
  }

  @Test("the server's own pages, also behind TLS")
  func ownPages() {
    for (host, origin, status) in [
      ("192.168.1.7:9000", "http://192.168.1.7:9000", nil),
      ("192.168.1.7:9000", "http://192.168.1.7:9001", 403),
      ("db.example.com", "https://db.example.com", nil),
      ("db.example.com", "http://db.example.com:80", nil),
      ("db.example.com:9000", "https://db.example.com", 403),
    ] as [(String, String, Int?)] {
      #expect(Self.refusal([("Host", host), ("Origin", origin)]) == status, "\(host) \(origin)")
    }
  }

  @Test("without an origin, a browser says that the page is a stranger's, and which one it is")
  func crossSite() {
    func refusal(_ site: String?, _ referrer: String?, _ target: String) -> Int? {
      var fields = [("Host", "192.168.1.7:9000")]
      if let site { fields.append(("Sec-Fetch-Site", site)) }
      if let referrer { fields.append(("Referer", referrer)) }
      return Self.refusal(fields, "GET", target)
    }
    #expect(refusal("cross-site", nil, "/a.json") == 403)
    #expect(refusal("cross-site", "https://evil.example/x", "/a.json") == 403)
    #expect(refusal("cross-site", "https://app.example.com/x?y", "/a.json") == nil)
    #expect(refusal("cross-site", "http://localhost:3000/", "/a.json") == nil)
    for site in ["same-origin", "same-site", "none"] {
      #expect(refusal(site, nil, "/a.json?callback=f") == nil)
      #expect(refusal(site, nil, "/.lp?start=t&v=5") == nil)
    }
    // A link opens the viewer's page, and nothing else.
    for (target, destination, status) in [
      ("/", "document", nil), ("/?ns=a", "document", nil), ("/", "iframe", 403),
      ("/a.json", "document", 403), ("//", "document", 403),
    ] as [(String, String, Int?)] {
      let visit = [
        ("Host", "localhost:9000"), ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", destination),
        ("Referer", "https://evil.example/"),
      ]
      #expect(Self.refusal(visit, "GET", target) == status, "\(target) \(destination)")
    }
    // Browsers do not say it to plain addresses of a network.
    #expect(refusal(nil, nil, "/a.json") == nil)
    for target in [
      "/a.json?callback=f", "/a.json?c%61llback=f", "/a.json?x=1&callback=f", "/.lp?start=t",
      "/a.json?\u{301}=x&callback=f",
    ] {
      #expect(refusal(nil, nil, target) == 403, "\(target)")
      #expect(refusal(nil, "https://evil.example/", target) == 403, "\(target)")
      #expect(refusal(nil, "http://192.168.1.7:9000/", target) == nil, "\(target)")
      #expect(
        Self.refusal([("Host", "localhost:9000")], "GET", target) == nil, "\(target)")
    }
  }

  @Test("the method is said where a browser asks before it sends it")
  func override() {
    let own = [("Host", "localhost:9000"), ("Origin", "http://localhost:9000")]
    let other = [("Host", "localhost:9000"), ("Origin", "http://localhost:3000")]
    for target in [
      "/.json?x-http-method-override=DELETE", "/.json?%78-http-method-override=DELETE",
    ] {
      #expect(Self.refusal(own, "POST", target) == nil)
      #expect(Self.refusal(other, "POST", target) == 403)
      #expect(Self.refusal([("Host", "localhost:9000")], "POST", target) == nil)
      #expect(
        Self.refusal(other + [("X-HTTP-Method-Override", "PATCH")], "POST", target) == nil)
    }
    #expect(Self.refusal(other, "POST", "/.json") == nil)
    #expect(Self.refusal(other, "DELETE", "/.json") == nil)
  }

  @Test("what is no name or origin is refused")
  func names() {
    for name in ["a b", "a:1", "", "http://a"] {
      #expect(throws: RESTError.self) { try RequestPolicy(isStrict: true, hostNames: [name]) }
    }
    for origin in [
      "app.example.com", "null", "https://", "https://a.", "**", "https://a/", "https://a/b",
    ] {
      #expect(throws: RESTError.self) { try RequestPolicy(isStrict: true, origins: [origin]) }
    }
  }
}
