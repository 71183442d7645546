import Dendro
import DendroServer
import Testing

/// The dialogues of the SDKs' protocol, over each transport.
@Suite("serving: dialogues")
struct DialogueTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let listening = "{\"s\":\"ok\",\"d\":{}}"

  @Test("hello and ping", arguments: Transport.allCases)
  func hello(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      #expect(client.hello.hasPrefix("{\"t\":\"c\",\"d\":{\"t\":\"h\",\"d\":{\"ts\":"))
      #expect(client.hello.contains("\"v\":\"5\",\"h\":\"127.0.0.1\""))
      try client.send("{\"t\":\"c\",\"d\":{\"t\":\"p\",\"d\":{}}}")
      #expect(try client.message() == "{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":{}}}")
      #expect(try client("s", "{\"c\":{\"sdk.js.12-18-0\":1}}") == [ok])
    }
  }

  @Test("long messages, both ways", arguments: Transport.allCases)
  func long(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      let text = String(repeating: "é😀", count: 20_000)
      let part = String(repeating: "x", count: 10_000)
      for number in 0..<20 { try client.request("p", "{\"p\":\"/l/\(number)\",\"d\":\"\(part)\"}") }
      #expect(try client("p", "{\"p\":\"/a\",\"d\":\"\(text)\"}").last == ok)
      #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":\"\(text)\"}"])
      let other = try transport.client(served)
      #expect(try other("g", "{\"p\":\"/l/19\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":\"\(part)\"}"])
    }
  }

  @Test("namespaces of their own", arguments: Transport.allCases)
  func namespaces(transport: Transport) async throws {
    let namespaces = OpeningNamespaces(inMemory: DatabaseOptions(), default: "one")
    let server = try DatabaseServer.start(namespaces, DatabaseServerOptions.patient)
    let one = try transport.client(port: server.port, "ns=one")
    let two = try transport.client(port: server.port, "ns=two")
    _ = try two("q", "{\"p\":\"/a\",\"h\":\"\"}")
    #expect(try one("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
    #expect(try one("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":1}"])
    #expect(try two("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":null}"])
    await server.stop()
  }

  @Test("a bad message ends the session", arguments: Transport.allCases)
  func malformed(transport: Transport) async throws {
    try await serving { served in
      let watcher = try transport.client(served)
      _ = try watcher("q", "{\"p\":\"/left\",\"h\":\"\"}")
      let client = try transport.client(served)
      #expect(try client("o", "{\"p\":\"/left\",\"d\":1}") == [ok])
      try client.send("{\"t\":\"d\"")
      #expect(throws: HTTPClient.Ended.self) { while true { _ = try client.message() } }
      #expect(try watcher.push() == "\"a\":\"d\",\"b\":{\"p\":\"left\",\"d\":1}")
    }
  }

  @Test(
    "a server that stops writes what was to be written at the end", arguments: Transport.allCases)
  func stop(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      #expect(try client("o", "{\"p\":\"/end\",\"d\":1}") == [ok])
      await served.server.stop()
      #expect(throws: HTTPClient.Ended.self) { while true { _ = try client.message() } }
      let value = try await served.database.reference(withPath: "end").getData()
      #expect(value.int == 1)
    }
  }

  @Test("an empty location, then a write of another client", arguments: Transport.allCases)
  func emptyLocation(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      let other = try transport.client(served)
      #expect(try client("q", "{\"p\":\"/a\",\"h\":\"\"}") == [listening])
      #expect(try other("p", "{\"p\":\"/a\",\"d\":{\"x\":1}}") == [ok])
      #expect(try client.push() == "\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":{\"x\":1}}")
      #expect(try other("m", "{\"p\":\"/a\",\"d\":{\"x\":2,\"y/z\":true}}") == [ok])
      #expect(try client.push() == "\"a\":\"m\",\"b\":{\"p\":\"a\",\"d\":{\"x\":2,\"y/z\":true}}")
      #expect(try client("n", "{\"p\":\"/a\"}") == [ok])
      #expect(try other("p", "{\"p\":\"/a\",\"d\":null}") == [ok])
      #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":null}"])
    }
  }

  @Test("what the client has already is not sent again", arguments: Transport.allCases)
  func cached(transport: Transport) async throws {
    try await serving { served in
      try await served.database.reference(withPath: "n").setValue(10)
      let client = try transport.client(served)
      #expect(
        try client("q", "{\"p\":\"/n\",\"h\":\"+r5aI9HvKKagELki8SYKBk0q7D4=\"}") == [listening])
      let other = try transport.client(served)
      #expect(
        try other("q", "{\"p\":\"n\",\"h\":\"ALU0PPFYxIX2YFkRwLYyz/rUBY4=\"}")
          == ["\"a\":\"d\",\"b\":{\"p\":\"n\",\"d\":10}", listening])
    }
  }

  @Test("the push of an own write comes before its answer", arguments: Transport.allCases)
  func ownWrite(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      for number in 1...50 {
        #expect(
          try client("p", "{\"p\":\"/a/x\",\"d\":\(number)}")
            == ["\"a\":\"d\",\"b\":{\"p\":\"a/x\",\"d\":\(number)}", ok])
      }
      #expect(try client("p", "{\"p\":\"/a/x\",\"d\":50}") == [ok])
      #expect(
        try client("p", "{\"p\":\"/a/x/.priority\",\"d\":8}")
          == ["\"a\":\"d\",\"b\":{\"p\":\"a/x\",\"d\":{\".value\":50,\".priority\":8}}", ok])
    }
  }

  @Test("a window of two, last by value", arguments: Transport.allCases)
  func window(transport: Transport) async throws {
    try await serving { served in
      try await served.database.reference(withPath: "s").setValue(["a": 1, "b": 2, "c": 3])
      let client = try transport.client(served)
      let query = "\"q\":{\"l\":2,\"vf\":\"r\",\"i\":\".value\"},\"t\":7"
      #expect(
        try client("q", "{\"p\":\"/s\",\(query),\"h\":\"\"}")
          == ["\"a\":\"d\",\"b\":{\"p\":\"s\",\"d\":{\"b\":2,\"c\":3},\"t\":7}", listening])
      #expect(
        try client("p", "{\"p\":\"/s/d\",\"d\":9}")
          == ["\"a\":\"m\",\"b\":{\"p\":\"s\",\"d\":{\"b\":null,\"d\":9},\"t\":7}", ok])
      #expect(
        try client("p", "{\"p\":\"/s/c\",\"d\":null}")
          == ["\"a\":\"m\",\"b\":{\"p\":\"s\",\"d\":{\"b\":2,\"c\":null},\"t\":7}", ok])
      #expect(
        try client("g", "{\"p\":\"/s\",\"q\":{\"l\":1,\"vf\":\"l\",\"i\":\".value\"}}")
          == ["{\"s\":\"ok\",\"d\":{\"a\":1}}"])
      #expect(try client("n", "{\"p\":\"/s\",\(query)}") == [ok])
      #expect(try client("p", "{\"p\":\"/s/e\",\"d\":10}") == [ok])
    }
  }

  @Test("transactions", arguments: Transport.allCases)
  func transactions(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      #expect(try client("p", "{\"p\":\"/n\",\"d\":10,\"h\":\"\"}") == [ok])
      let hash = "+r5aI9HvKKagELki8SYKBk0q7D4="
      #expect(try client("p", "{\"p\":\"/n\",\"d\":11,\"h\":\"\(hash)\"}") == [ok])
      #expect(
        try client("p", "{\"p\":\"/n\",\"d\":12,\"h\":\"\(hash)\"}")
          == ["{\"s\":\"datastale\",\"d\":\"Transaction hash does not match\"}"])
      #expect(try client("g", "{\"p\":\"/n\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":11}"])
    }
  }

  @Test(
    "what is not allowed is refused, and listens end with their permission",
    arguments: Transport.allCases)
  func refused(transport: Transport) async throws {
    let denied = "{\"s\":\"permission_denied\",\"d\":\"Permission denied\"}"
    try await serving({ $0.authorizer = AdministratorsAuthorizer() }) { served in
      let client = try transport.client(served)
      #expect(try client("q", "{\"p\":\"/z\",\"h\":\"\"}") == [denied])
      #expect(try client("p", "{\"p\":\"/z\",\"d\":1}") == [denied])
      #expect(try client("m", "{\"p\":\"/z\",\"d\":{\"a\":1}}") == [denied])
      #expect(try client("g", "{\"p\":\"/z\",\"q\":{}}") == [denied])
      #expect(try client("o", "{\"p\":\"/z\",\"d\":1}") == [denied])
      #expect(
        try client("gauth", "{\"cred\":\"owner\"}")[0].hasPrefix(
          "{\"s\":\"ok\",\"d\":{\"auth\":null"))
      #expect(try client("q", "{\"p\":\"/z\",\"h\":\"\"}") == [listening])
      #expect(
        try client("unauth", "{}") == ["\"a\":\"c\",\"b\":{\"p\":\"z\"}", ok])
      #expect(try client("q", "{\"p\":\"/z\",\"h\":\"\"}") == [denied])
      #expect(
        try client("auth", "{\"cred\":\"x\"}")
          == ["{\"s\":\"invalid_token\",\"d\":\"Could not parse auth token.\"}"])
    }
  }

  @Test("bad requests are answered, and the connection stays", arguments: Transport.allCases)
  func badRequests(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      for (action, body) in [
        ("p", "{\"p\":\"a.b\",\"d\":1}"), ("p", "{\"p\":\"a\",\"d\":{\"$x\":1}}"), ("zz", "{}"),
        ("q", "{}"),
        ("m", "{\"p\":\"a\",\"d\":{\"b\":1,\"b/c\":2}}"),
      ] {
        #expect(try client(action, body)[0].hasPrefix("{\"s\":\"failure\",\"d\":\""))
      }
      #expect(try client("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
    }
  }

  @Test("what is to be written at the end of a connection", arguments: Transport.allCases)
  func onDisconnect(transport: Transport) async throws {
    try await serving { served in
      let watcher = try transport.client(served)
      _ = try watcher("q", "{\"p\":\"/here\",\"h\":\"\"}")
      try {
        let client = try transport.client(served)
        #expect(try client("o", "{\"p\":\"/here/me\",\"d\":null}") == [ok])
        #expect(try client("o", "{\"p\":\"/here/last\",\"d\":\"bye\"}") == [ok])
        #expect(try client("om", "{\"p\":\"/other\",\"d\":{\"a\":1,\"b/c\":2}}") == [ok])
        #expect(try client("oc", "{\"p\":\"/other/b\",\"d\":null}") == [ok])
        #expect(try client("p", "{\"p\":\"/here/me\",\"d\":true}") == [ok])
        #expect(try watcher.push() == "\"a\":\"d\",\"b\":{\"p\":\"here/me\",\"d\":true}")
      }()
      #expect(
        try watcher.push()
          == "\"a\":\"m\",\"b\":{\"p\":\"here\",\"d\":{\"last\":\"bye\",\"me\":null}}")
      #expect(try watcher("g", "{\"p\":\"/other\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":{\"a\":1}}"])
    }
  }

  @Test(
    "a new connection ends the one before it, whose last writes it finds",
    arguments: Transport.allCases)
  func lastSession(transport: Transport) async throws {
    try await serving { served in
      let old = try transport.client(served)
      #expect(try old("o", "{\"p\":\"/left\",\"d\":true}") == [ok])
      let new = try transport.client(served, after: old.session)
      #expect(try new("g", "{\"p\":\"/left\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":true}"])
      #expect(throws: HTTPClient.Ended.self) { _ = try old.message() }
    }
  }

  @Test(
    "a priority where there is no data is refused with the reason", arguments: Transport.allCases)
  func priorityOfNothing(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      let answer = try client("p", "{\"p\":\"/none/.priority\",\"d\":1}")
      #expect(answer.count == 1)
      #expect(answer[0].hasPrefix("{\"s\":\"failure\",\"d\":\"Invalid data; "))
      #expect(try served.client()("PUT", "/none/.priority.json", "1").status == 400)
    }
  }

  @Test(
    "a listen with a tag is known by its query, also if that shows everything",
    arguments: Transport.allCases)
  func taggedWhole(transport: Transport) async throws {
    try await serving({ $0.authorizer = AdministratorsAuthorizer() }) { served in
      let client = try transport.client(served)
      _ = try client("gauth", "{\"cred\":\"owner\"}")
      let query = "{\"i\":\".key\"}"
      _ = try client("q", "{\"p\":\"/z\",\"q\":\(query),\"t\":1,\"h\":\"\"}")
      #expect(
        try client("unauth", "{}") == ["\"a\":\"c\",\"b\":{\"p\":\"z\",\"q\":[\(query)]}", ok])
    }
  }

  @Test("REST and WebSockets see each other's writes", arguments: Transport.allCases)
  func together(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      #expect(try served.client()("PUT", "/a.json?ns=app", "1").status == 200)
      #expect(try client.push() == "\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":1}")
      _ = try client("p", "{\"p\":\"/a\",\"d\":2}")
      #expect(try served.client()("GET", "/a.json?ns=app").body == "2")
    }
  }
}
