import DendroProtocol
import DendroTree
import Testing

@Suite("REST, head of a request")
struct RESTRequestTests {
  @Test(
    "addresses",
    arguments: [
      ("/a/b.json", "/a/b"), ("/.json", "/"), ("/a/b/.json", "/a/b"), ("//a///b.json", "/a/b"),
      ("/a%2Fb.json", "/a/b"), ("/a%20b/%C3%A9.json", "/a b/é"), ("/a+b.json", "/a+b"),
      ("/a%252Fb.json", "/a%2Fb"), ("/a%2ejson", "/a"),
    ])
  func addresses(target: String, expected: String) throws {
    #expect(try request("GET", target).resource == .data(try path(expected)))
  }

  @Test("what is not data")
  func otherResources() throws {
    #expect(try request("GET", "/a/.priority.json").resource == .priority(try path("a")))
    #expect(try request("GET", "/.priority.json").resource == .priority(.root))
    #expect(try request("GET", "/.settings/rules.json").resource == .settings("rules"))
    #expect(try request("GET", "/.inspect/databases.json?ns=").resource == .databases)
    #expect(try request("GET", "/.status.json").resource == .status)
  }

  @Test(
    "paths that are refused",
    arguments: [
      ("GET", "/a", 404, "append .json to your request URI to use the REST API."),
      ("GET", "/", 404, "append .json to your request URI to use the REST API."),
      ("GET", "*", 404, "append .json to your request URI to use the REST API."),
      ("GET", "/a.b.json", 400, "Invalid path: Invalid token in path"),
      ("GET", "/a/%24x.json", 400, "Invalid path: Invalid token in path"),
      ("GET", "/a%00.json", 400, "Invalid path: Invalid token in path"),
      ("GET", "/a%FF.json", 400, "Invalid path: Invalid token in path"),
      ("GET", "/a%2.json", 400, "Invalid path: Invalid token in path"),
      ("GET", "/.info/connected.json", 400, "Invalid path: Invalid token in path"),
      (
        "GET", "/" + String(repeating: "a", count: 769) + ".json", 400,
        "Invalid path: Invalid token in path"
      ),
      (
        "PUT", "/" + String(repeating: "abcdefg/", count: 97) + ".json", 400,
        "Invalid path: Path specified exceeds the maximum length that can be written (768 bytes)."
      ),
      (
        "GET", "/" + String(repeating: "a/", count: 33) + ".json", 400,
        "Invalid path: Path specified exceeds the maximum depth (32 levels)."
      ),
      ("BREW", "/a.json", 405, "The method BREW is not supported."),
      ("get", "/a.json", 405, "The method get is not supported."),
    ])
  func refusedPaths(method: String, target: String, status: Int, text: String) {
    #expect(refusal(method, target) == RESTError(status, text))
  }

  @Test("methods and their overrides")
  func methods() throws {
    for method in HTTPMethod.allCases {
      #expect(try request(method.rawValue, "/a.json").method == method)
    }
    #expect(
      try request("POST", "/a.json", [("X-HTTP-Method-Override", "PATCH")]).method == .patch)
    #expect(try request("POST", "/a.json?x-http-method-override=delete").method == .delete)
    #expect(try request("PUT", "/a.json?x-http-method-override=DELETE").method == .put)
    #expect(refusal("POST", "/a.json?x-http-method-override=BREW")?.status == 405)
  }

  @Test(
    "namespaces",
    arguments: [
      ("/a.json?ns=app", "127.0.0.1:9000", "app"), ("/a.json?print=silent&ns=x_1-2", "h", "x_1-2"),
      ("/a.json", "app.firebaseio.com", "app"), ("/a.json", "app.localhost:9000", "app"),
      ("/a.json", "127.0.0.1:9000", nil), ("/a.json", "localhost:9000", nil),
      ("/a.json", "[::1]:9000", nil), ("/a.json", "", nil), ("/a.json", "www.example.org", nil),
    ] as [(String, String, String?)])
  func namespaces(target: String, host: String, expected: String?) throws {
    #expect(try request("GET", target, [("Host", host)]).namespace == expected)
  }

  @Test("a malformed namespace", arguments: ["a.b", "a/b", "..", "-a", "_", "a%00", "é"])
  func badNamespace(name: String) {
    #expect(refusal("GET", "/a.json?ns=\(name)") == .badNamespace)
  }

  @Test(
    "parameters that are refused",
    arguments: [
      ("GET", "timeout=0s", "timeout must be a positive number of ms, s or min"),
      ("GET", "timeout=x", "timeout must be a positive number of ms, s or min"),
      ("GET", "timeout=-3s", "timeout must be a positive number of ms, s or min"),
      ("GET", "timeout=16min", "timeout must not exceed 15min"),
      ("GET", "timeout=900001ms", "timeout must not exceed 15min"),
      (
        "DELETE", "writeSizeLimit=huge",
        "writeSizeLimit must be tiny, small, medium, large or unlimited"
      ),
      ("GET", "atLeast=", "atLeast must be the number of a write, as X-Dendro-LSN has it"),
      ("GET", "atLeast=-1", "atLeast must be the number of a write, as X-Dendro-LSN has it"),
      (
        "HEAD", "atLeast=18446744073709551616",
        "atLeast must be the number of a write, as X-Dendro-LSN has it"
      ),
      ("GET", "callback=alert(1)//", "callback must be the name of a function"),
      ("GET", "callback=1a", "callback must be the name of a function"),
      (
        "GET", "download=a%0D%0Ab", "download must be a file name of printable ASCII characters"
      ),
      ("GET", "download=a%22b", "download must be a file name of printable ASCII characters"),
    ])
  func refusedParameters(method: String, items: String, text: String) {
    #expect(refusal(method, "/a.json?" + items) == .badRequest(text))
  }

  @Test("a write is estimated by its values, and by the bytes of its body")
  func writeSizes() throws {
    let numbers = try json("[" + String(repeating: "1,", count: 1_000_000) + "1]")
    let million = Draft(.set(.root, numbers))
    let short = Draft(.set(.root, Node(.string("text"))))
    let update = Draft(.update(.root, [Write.Entry(path: try path("a"), action: .set(numbers))]))
    for (draft, byteCount, refusing) in [
      (million, 2_000_003, [.tiny]), (update, 2_000_009, [.tiny]), (short, 8, []),
      (short, 128 << 20, []), (short, 129 << 20, [.tiny]),
      (short, 60 * 128 << 20, [.tiny, .small, .medium]),
      (short, 60 * 129 << 20, [.tiny, .small, .medium, .large]),
    ] as [(Draft, Int, [WriteSizeLimit])] {
      let exceeded = WriteSizeLimit.allCases.filter {
        $0.isExceeded(by: draft, byteCount: byteCount)
      }
      #expect(exceeded == refusing)
    }
  }

  @Test(
    "parameters that are taken",
    arguments: [
      ("GET", "timeout=3ms"), ("GET", "timeout=15min"), ("GET", "timeout=900s"),
      ("GET", "atLeast=0"), ("HEAD", "atLeast=18446744073709551615"),
      ("DELETE", "writeSizeLimit=tiny"), ("DELETE", "writeSizeLimit=unlimited"),
      ("GET", "callback=$a._b1"), ("GET", "download=a%20b.json"), ("GET", "unknown=value&_=1"),
      ("GET", "ac=token&disableTriggers=true"),
    ])
  func takenParameters(method: String, items: String) {
    #expect(refusal(method, "/a.json?" + items) == nil)
  }

  @Test(
    "conditions by method",
    arguments: HTTPMethod.allCases)
  func conditions(method: HTTPMethod) throws {
    let body = "{}"
    func isTaken(_ name: String, _ value: String) -> Bool {
      refusal(method.rawValue, "/a.json", [(name, value)], body: body)?.status != 400
    }
    #expect(isTaken("X-Firebase-ETag", "true") == (method != .patch))
    #expect(isTaken("If-Match", "E") == [.put, .delete].contains(method))
    #expect(isTaken("If-None-Match", "E") == !method.isWrite)
  }

  @Test("credentials")
  func credentials() throws {
    #expect(try request("GET", "/a.json").credentials == Credentials())
    #expect(
      try request("GET", "/a.json", [("Authorization", "Bearer owner")]).credentials.bearer
        == "owner")
    #expect(try request("GET", "/a.json?access_token=t").credentials.bearer == "t")
    #expect(try request("GET", "/a.json?auth=t").credentials.token == "t")
    #expect(try request("GET", "/a.json?auth=").credentials.token == nil)
    #expect(
      try request("GET", "/a.json?auth_variable_override=null").credentials.authOverride == "null")
  }

  @Test("streams are asked for by the header Accept, and only of data")
  func streams() throws {
    let accept = [("Accept", "text/event-stream")]
    #expect(try request("GET", "/a.json", accept).wantsStream)
    #expect(try !request("GET", "/a.json").wantsStream)
    #expect(refusal("GET", "/a/.priority.json", accept)?.status == 400)
    #expect(refusal("GET", "/a.json?shallow=true", accept)?.status == 400)
    let resumed = try request("GET", "/a.json", accept + [("Last-Event-ID", "17")])
    #expect(resumed.lastEventID == 17 && resumed.wantsEventIDs)
    #expect(try request("GET", "/a.json", accept + [("Last-Event-ID", "x")]).lastEventID == nil)
    #expect(try request("GET", "/a.json?eventIds=true", accept).wantsEventIDs)
  }

  @Test("a log shows no credential, however its parameter is spelled")
  func withoutCredentials() throws {
    for (target, shown) in [
      ("/a.json", "/a.json"), ("/a.json?auth=x&print=pretty", "/a.json?auth=…&print=pretty"),
      ("/a.json?%61uth=x", "/a.json?%61uth=…"), ("/a.json?a%75th=x=y&b", "/a.json?a%75th=…&b"),
      ("/a.json?author=x", "/a.json?author=x"), ("/a.json?%zz=x", "/a.json?%zz=…"),
      ("/a.json?\u{301}=1&auth=x", "/a.json?\u{301}=1&auth=…"),
      ("/a.json?auth=\u{301}x", "/a.json?auth=…"), ("/a.json?", "/a.json?"),
      ("/a.json?&&x=1", "/a.json?&&x=1"),
    ] {
      #expect(RequestTarget.text(of: target) { $0 == "auth" } == shown)
    }
  }
}
