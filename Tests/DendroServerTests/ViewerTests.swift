import Dendro
import DendroServer
import DendroTestSupport
import Dispatch
import Foundation
import Testing

@Suite("serving: what the data viewer asks for")
struct ViewerTests {
  private let listening = "{\"s\":\"ok\",\"d\":{}}"
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  @Test("the page, with nothing from elsewhere")
  func page() async throws {
    try await serving { served in
      let http = try served.client()
      for (target, type) in [
        ("/", "text/html; charset=utf-8"), ("/.viewer/viewer.css", "text/css; charset=utf-8"),
        ("/.viewer/viewer.js", "text/javascript; charset=utf-8"),
        ("/.viewer/rules.css", "text/css; charset=utf-8"),
        ("/.viewer/rules.js", "text/javascript; charset=utf-8"),
      ] {
        let answer = try http("GET", target)
        #expect(answer.status == 200 && answer.headers["content-type"] == type)
        #expect(answer.headers["content-security-policy"]?.hasPrefix("default-src 'none';") == true)
        #expect(answer.headers["access-control-allow-origin"] == nil)
        for word in ["http:", "https:", "//cdn", "innerHTML", "eval("] {
          let isScheme = target.hasSuffix("js") && word == "https:"
          #expect(isScheme || !answer.body.contains(word))
        }
      }
      #expect(try http("GET", "/.viewer/other").status == 404)
      #expect(try http("POST", "/", "x").status == 405)
    }
  }

  @Test("the page masks the secret, hides what is hidden, and knows the place of its address")
  func markup() async throws {
    try await serving { served in
      let http = try served.client()
      let page = try http("GET", "/").body
      #expect(
        page.contains(
          "<label id=\"secretLabel\">Secret or ID token <input id=\"secret\" type=\"password\""))
      // Enter in a field presses the first button that submits.
      #expect(
        page.contains("<button id=\"cancel\" type=\"button\">Cancel</button><button id=\"ok\""))
      let style = try http("GET", "/.viewer/viewer.css").body
      #expect(style.contains("[hidden] { display: none !important; }"))
      // At 400 pixels the log and the slider are below the tree.
      let narrow = style.components(separatedBy: "@media (max-width: 760px)").last ?? ""
      #expect(narrow.contains("main { flex-direction: column; }"))
      #expect(!narrow.contains("aside { display: none"))
      let script = try http("GET", "/.viewer/viewer.js").body
      for word in ["encodeURIComponent", "decodeURIComponent", "hashchange", "\"1 change/s\""] {
        #expect(script.contains(word))
      }
    }
  }

  @Test("the page is off if that is asked for, and at other addresses")
  func off() async throws {
    for (host, viewer) in [("127.0.0.1", false), ("0.0.0.0", nil)] as [(String, Bool?)] {
      try await serving({
        $0.host = host
        $0.authorizer = OpenAuthorizer()
        $0.viewer = viewer
      }) { served in
        let http = try served.client()
        for target in ["/", "/.viewer/viewer.js", "/.viewer/log.json", "/.viewer/past.json"] {
          #expect(try http("GET", target).status != 200)
        }
      }
    }
    try await serving({
      $0.host = "0.0.0.0"
      $0.authorizer = OpenAuthorizer()
      $0.viewer = true
    }) { served in
      let answer = try served.client()("GET", "/")
      #expect(answer.status == 200)
    }
  }

  @Test("a shallow listen shows children without what is below them")
  func shallow() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      let other = try WebSocketClient(served)
      _ = try other("p", "{\"p\":\"/a\",\"d\":{\"x\":{\"y\":1,\"z\":2},\"n\":5,\".priority\":7}}")
      #expect(
        try client("q", "{\"p\":\"/a\",\"h\":\"\",\"t\":3,\"shallow\":true}")
          == [
            "\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":{\"n\":5,\"x\":{\".n\":2},\".priority\":7},\"t\":3}",
            listening,
          ])
      func push(of action: String, _ body: String) throws -> String {
        #expect(try other(action, body) == [ok])
        return String(try client.push().dropFirst("\"a\":\"x\",\"b\":".count))
      }
      #expect(
        try push(of: "p", "{\"p\":\"/a/x/w\",\"d\":3}")
          == "{\"p\":\"a\",\"d\":{\"x\":{\".n\":3}},\"t\":3}")
      #expect(
        try push(of: "m", "{\"p\":\"/a\",\"d\":{\"x/y\":null,\"n\":null,\"m\":\"<b>\"}}")
          == "{\"p\":\"a\",\"d\":{\"m\":\"<b>\",\"n\":null,\"x\":{\".n\":2}},\"t\":3}")
      #expect(
        try push(of: "m", "{\"p\":\"/a/x\",\"d\":{\"z\":null,\"w\":null}}")
          == "{\"p\":\"a\",\"d\":{\"x\":null},\"t\":3}")
      #expect(
        try push(of: "p", "{\"p\":\"/a\",\"d\":{\"k\":{\"l\":1}}}")
          == "{\"p\":\"a\",\"d\":{\"k\":{\".n\":1}},\"t\":3}")
      #expect(try push(of: "p", "{\"p\":\"/a\",\"d\":null}") == "{\"p\":\"a\",\"d\":null,\"t\":3}")
      #expect(try client("n", "{\"p\":\"/a\",\"t\":3,\"shallow\":true}") == [ok])
      let query = "\"q\":{\"i\":\".key\",\"l\":1,\"vf\":\"r\"}"
      _ = try other("p", "{\"p\":\"/a\",\"d\":{\"b\":{\"c\":1},\"d\":2}}")
      #expect(
        try client("q", "{\"p\":\"/a\",\(query),\"h\":\"\",\"t\":4,\"shallow\":true}")
          == ["\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":{\"d\":2},\"t\":4}", listening])
      #expect(
        try push(of: "p", "{\"p\":\"/a/d\",\"d\":null}")
          == "{\"p\":\"a\",\"d\":{\"b\":{\".n\":1},\"d\":null},\"t\":4}")
    }
  }

  @Test("the log, and states of the past")
  func past() async throws {
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/db")
    var options = DatabaseServerOptions.patient
    // On a machine that is slow itself, the client is silent for longer than by default.
    options.idleTimeout = .seconds(3600)
    let server = try await DatabaseServer.start(serving: database, options: options)
    let http = try Served(database: database, server: server).client()
    _ = try http("PUT", "/a.json", "{\"x\":1,\"y\":{\"z\":2}}")
    _ = try http("PATCH", "/a.json", "{\"x\":null,\"\\\"\":3}")
    _ = try http("DELETE", "/a.json")
    let log = try http("GET", "/.viewer/log.json?ns=app")
    #expect(log.headers["access-control-allow-origin"] == nil)
    #expect(log.body.hasPrefix("{\"oldest\":0,\"newest\":3,\"writes\":[{\"lsn\":1,\"time\":"))
    for text in [
      #""what":"set","path":"/a","value":"{\"x\":1,\"y\":{\"z\":2}}"}"#,
      #""what":"update 2 of","path":"/a","value":"{\"x\":null,\"\\\"\":3}"}"#,
      "\"what\":\"remove\",\"path\":\"/a\"}",
    ] {
      #expect(log.body.contains(text))
    }
    #expect(try http("GET", "/.viewer/log.json?limit=1").body.contains("\"lsn\":2") == false)
    // The last write is none of the data.
    let rules = "{\"rules\":{\".read\":true,\".write\":true}}"
    #expect(
      try http("PUT", "/.settings/rules.json", rules, ["Authorization": "Bearer owner"]).status
        == 200)
    #expect(try http("GET", "/.viewer/log.json").body.contains("\"what\":\"remove\""))
    for (query, data) in [
      ("path=/a&at=1", "{\"x\":1,\"y\":{\".n\":1}}"), ("path=/a/y/z&at=1", "2"),
      ("path=/a&at=1&whole=1", "{\"x\":1,\"y\":{\"z\":2}}"), ("path=/a&at=3", "null"),
      ("path=/&at=2", "{\"a\":{\".n\":2}}"), ("path=/&at=0", "null"),
    ] {
      #expect(try http("GET", "/.viewer/past.json?\(query)").body == "{\"data\":\(data)}")
    }
    for query in ["path=/a", "at=1", "path=a.b&at=1", "path=/a&at=-1", "path=/a&at=99"] {
      #expect(try http("GET", "/.viewer/past.json?\(query)").status >= 400)
    }
    #expect(try http("GET", "/.viewer/namespaces.json").body == "{\"names\":[\"default\"]}")
    await server.stop()
    try await database.close()
  }

  @Test("the log is there while the app blocks all threads of its concurrency pool")
  func blockedPool() async throws {
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/db")
    let server = try await DatabaseServer.start(serving: database)
    let port = server.port
    _ = try HTTPClient(port: port)("PUT", "/a.json", "1")
    let release = DispatchSemaphore(value: 0)
    let answer = await withCheckedContinuation { continuation in
      let blockers = ProcessInfo.processInfo.activeProcessorCount
      let blocked = DispatchGroup()
      for _ in 0..<blockers {
        blocked.enter()
        Task.detached {
          blocked.leave()
          Self.wait(for: release)
        }
      }
      blocked.notify(queue: .global()) {
        let answer = Result { try HTTPClient(port: port)("GET", "/.viewer/log.json").body }
        for _ in 0..<blockers { release.signal() }
        continuation.resume(returning: answer)
      }
    }
    #expect(try answer.get().contains("\"what\":\"set\",\"path\":\"/a\""))
    await server.stop()
    try await database.close()
  }

  /// Blocks the calling thread.
  private static func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }

  @Test("what may not be read is not shown in the past either")
  func refused() async throws {
    try await serving({
      $0.authorizer = AdministratorsAuthorizer()
      $0.secret = "s3cret"
    }) { served in
      let http = try served.client()
      #expect(try http("GET", "/").status == 200)
      #expect(try http("GET", "/.viewer/log.json").status == 401)
      #expect(try http("GET", "/.viewer/past.json?path=/&at=0").status == 401)
      #expect(try http("GET", "/.viewer/namespaces.json").body == "{\"names\":[]}")
      let administrator = ["Authorization": "Bearer s3cret"]
      #expect(try http("GET", "/.viewer/past.json?path=/&at=0", nil, administrator).status == 200)
    }
  }

  @Test("a past state is for those who might have read it then, and may read the place now")
  func pastRights() async throws {
    let rules = "{\"rules\":{\"gated\":{\".read\":\"root.child('flag').val() === true\"}}}"
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/db")
    let server = try await DatabaseServer.start(serving: database)
    let http = try HTTPClient(port: server.port)
    let owner = ["Authorization": "Bearer owner"]
    for (place, value) in [
      ("flag", "false"), ("gated", "\"private\""), ("flag", "true"), ("gated", "\"public\""),
    ] {
      #expect(try http("PUT", "/\(place).json", value, owner).status == 200)
    }
    #expect(try http("PUT", "/.settings/rules.json", rules, owner).status == 200)
    let past = { (lsn: Int) in "/.viewer/past.json?path=/gated&at=\(lsn)" }
    #expect(try http("GET", past(2)).status == 401)
    #expect(try http("GET", past(2), nil, owner).body == "{\"data\":\"private\"}")
    #expect(try http("GET", past(3)).body == "{\"data\":\"private\"}")
    #expect(try http("GET", past(4)).body == "{\"data\":\"public\"}")
    await server.stop()
    try await database.close()
  }
}
