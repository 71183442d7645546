import Dendro
import DendroServer
import DendroTestSupport
import Testing

@Suite("serving: REST")
struct RESTServerTests {
  @Test("what is written can be read")
  func writes() async throws {
    try await serving { served in
      let http = try served.client()
      #expect(try http("GET", "/a.json").body == "null")
      #expect(try http("PUT", "/a.json", "{\"x\": 1}").body == "{\"x\":1}")
      #expect(try http("GET", "/a/x.json").body == "1")
      #expect(try http("GET", "/a/y.json").body == "null")
      #expect(try http("PUT", "/l.json", "[\"x\",null,\"z\"]").status == 200)
      #expect(try http("GET", "/l.json").body == "[\"x\",null,\"z\"]")
      #expect(try http("DELETE", "/l/0.json").body == "null")
      #expect(try http("GET", "/l.json").body == "{\"2\":\"z\"}")
      #expect(try http("PATCH", "/m.json", "{ \"a/b\":1, \"c\":2 }").body == "{\"a/b\":1,\"c\":2}")
      #expect(try http("PATCH", "/m.json", "{\"a/b\":null}").status == 200)
      #expect(try http("GET", "/m.json").body == "{\"c\":2}")
      #expect(try http("PUT", "/p.json", "{\".value\":1,\".priority\":2}").status == 200)
      #expect(try http("GET", "/p.json").body == "1")
      #expect(try http("GET", "/p.json?format=export").body == "{\".value\":1,\".priority\":2}")
      #expect(try http("GET", "/p/.priority.json").body == "2")
      #expect(try http("PUT", "/p/.priority.json", "\"q\"").body == "\"q\"")
      #expect(try http("GET", "/p/.priority.json").body == "\"q\"")
      #expect(try http("PUT", "/a.json?print=silent", "5").status == 204)
      #expect(try http("GET", "/a.json?print=pretty").body == "5")
      #expect(try http("HEAD", "/a.json").status == 200)
      #expect(try http("OPTIONS", "/a.json").headers["access-control-allow-methods"] != nil)
      #expect(
        try http("POST", "/a.json", "{\"b\":7}", ["X-HTTP-Method-Override": "PATCH"]).status == 200)
      #expect(try http("GET", "/a.json").body == "{\"b\":7}")
      let direct = try await served.database.reference(withPath: "a/b").getData()
      #expect(direct.int == 7)
    }
  }

  @Test("posted children have new keys in the order of time")
  func posts() async throws {
    try await serving { served in
      let http = try served.client()
      var names: [String] = []
      for number in 0..<20 {
        let body = try http("POST", "/list.json", "\(number)").body
        let name = try #require(body.split(separator: "\"").dropFirst(3).first)
        names.append(String(name))
      }
      #expect(names.allSatisfy { $0.utf8.count == 20 })
      #expect(names == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
      #expect(Set(names).count == 20)
      #expect(try http("GET", "/list/\(names[7]).json").body == "7")
    }
  }

  @Test("server values are answered as what they became")
  func serverValues() async throws {
    try await serving { served in
      let http = try served.client()
      #expect(try http("PUT", "/n.json", "{\".sv\":{\"increment\":2}}").body == "2")
      #expect(try http("PUT", "/n.json", "{\".sv\":{\"increment\":3}}").body == "5")
      let pair = try http(
        "PUT", "/t.json", "{\"a\":{\".sv\":\"timestamp\"},\"b\":{\".sv\":\"timestamp\"}}")
      let read = try http("GET", "/t.json")
      #expect(read.body == pair.body)
      let times = read.body.split { !("0"..."9").contains($0) }
      #expect(times.count == 2 && times[0] == times[1])
    }
  }

  @Test("the dialogue of conditional requests")
  func conditions() async throws {
    try await serving { served in
      let http = try served.client()
      #expect(try http("PUT", "/n.json", "1", ["if-match": "null_etag"]).body == "1")
      let first = try http("GET", "/n.json", nil, ["X-Firebase-ETag": "true"])
      let e1 = try #require(first.headers["etag"])
      let lost = try http("PUT", "/n.json", "2", ["if-match": "null_etag"])
      #expect(lost.status == 412 && lost.body == "1" && lost.headers["etag"] == e1)
      #expect(try http("PUT", "/n.json", "2", ["if-match": e1]).body == "2")
      let second = try http("GET", "/n.json", nil, ["if-none-match": e1])
      let e2 = try #require(second.headers["etag"])
      #expect(second.status == 200 && second.body == "2")
      #expect(try http("GET", "/n.json", nil, ["if-none-match": e2]).status == 304)
      let refused = try http("DELETE", "/n.json", nil, ["if-match": e1])
      #expect(refused.status == 412 && refused.headers["etag"] == e2)
      #expect(try http("DELETE", "/n.json", nil, ["if-match": e2]).body == "null")
      let gone = try http("GET", "/gone.json", nil, ["X-Firebase-ETag": "true"])
      #expect(gone.body == "null" && gone.headers["etag"] == "null_etag")
    }
  }

  @Test("of concurrent conditional writes one succeeds at a time")
  func concurrentConditions() async throws {
    try await serving { served in
      let rounds = 25
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            let http = try served.client()
            for _ in 0..<rounds {
              var answer = try http("GET", "/n.json", nil, ["X-Firebase-ETag": "true"])
              repeat {
                let next = (Int(answer.body) ?? 0) + 1
                answer = try http(
                  "PUT", "/n.json", "\(next)", ["if-match": answer.headers["etag"] ?? ""])
              } while answer.status == 412
              #expect(answer.status == 200)
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try served.client()("GET", "/n.json").body == "\(4 * rounds)")
    }
  }

  @Test("queries, and their errors")
  func queries() async throws {
    try await serving { served in
      let http = try served.client()
      _ = try http("PUT", "/s.json", "{\"a\":{\"s\":3},\"b\":{\"s\":1},\"c\":{\"s\":2}}")
      #expect(
        try http("GET", "/s.json?orderBy=%22s%22&limitToLast=2").body
          == "{\"a\":{\"s\":3},\"c\":{\"s\":2}}")
      #expect(try http("GET", "/s.json?shallow=true").body == "{\"a\":true,\"b\":true,\"c\":true}")
      let error = try http("GET", "/s.json?limitToFirst=1")
      #expect(error.status == 400)
      #expect(
        error.body
          == "{\n  \"error\" : \"orderBy must be defined when other query parameters are defined\"\n}\n"
      )
    }
  }

  @Test("a long answer arrives whole, in parts, and others are answered meanwhile")
  func longAnswer() async throws {
    try await serving { served in
      let http = try served.client()
      let member = String(repeating: "x", count: 1000)
      let body = "[" + Array(repeating: "\"\(member)\"", count: 8000).joined(separator: ",") + "]"
      #expect(try http("PUT", "/big.json?print=silent", body).status == 204)
      let slow = try HTTPClient(port: served.server.port, receiveBuffer: 4096)
      try slow.send(HTTPClient.request("GET", "/big.json"))
      for _ in 0..<8 { #expect(try served.client()("GET", "/big/7999.json").status == 200) }
      let answer = try slow.answer()
      #expect(answer.headers["transfer-encoding"] == "chunked")
      #expect(answer.body == body)
    }
  }

  @Test("credentials and authorizers")
  func authorization() async throws {
    try await serving({ options in
      options.secret = "long secret"
      options.authorizer = AdministratorsAuthorizer()
    }) { served in
      let http = try served.client()
      let refused = try http("GET", "/a.json")
      #expect(refused.status == 401)
      #expect(refused.body == "{\n  \"error\" : \"Permission denied\"\n}\n")
      #expect(try http("PUT", "/a.json", "1").status == 401)
      #expect(try http("PUT", "/a.json", "1", ["Authorization": "Bearer owner"]).status == 401)
      let owner = ["Authorization": "Bearer long secret"]
      #expect(try http("PUT", "/a.json", "1", owner).status == 200)
      #expect(try http("GET", "/a.json?auth=long+secret").body == "1")
      #expect(try http("GET", "/a.json?auth_variable_override=null", nil, owner).status == 401)
    }
    try await serving({ $0.authorizer = LockedAuthorizer() }) { served in
      let http = try served.client()
      for path in ["/a.json", "/.settings/rules.json", "/.metrics", "/.inspect/databases.json?ns="]
      {
        #expect(try http("GET", path, nil, ["Authorization": "Bearer owner"]).status == 401)
      }
    }
  }

  @Test("an authorizer sees the data before and after a write")
  func authorizerData() async throws {
    struct Growing: Authorizer {
      func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
        guard let new = request.newData else { return .allow }
        let grows = (new.int ?? 0) > (request.data.int ?? 0) && request.path == "/n"
        return grows ? .allow : .deny
      }
    }
    try await serving({ $0.authorizer = Growing() }) { served in
      let http = try served.client()
      #expect(try http("PUT", "/n.json", "2").status == 200)
      #expect(try http("PUT", "/n.json", "1").status == 401)
      #expect(try http("PUT", "/n.json", "{\".sv\":{\"increment\":1}}").body == "3")
      #expect(try http("DELETE", "/n.json").status == 401)
    }
  }

  @Test("settings and inspection are for administrators")
  func settings() async throws {
    try await serving({ $0.namespace = "app" }) { served in
      let http = try served.client()
      let owner = ["Authorization": "Bearer owner"]
      #expect(try http("GET", "/.settings/rules.json").status == 401)
      let rules = "{\"rules\":{\".read\":true /* all */}}"
      #expect(try http("PUT", "/.settings/rules.json", rules, owner).body == "{\"status\":\"ok\"}")
      #expect(try http("GET", "/.settings/rules.json", nil, owner).body == rules)
      #expect(try http("GET", "/.settings/other.json", nil, owner).status == 404)
      #expect(
        try http("GET", "/.inspect/databases.json?ns=", nil, owner).body == "[{\"name\":\"app\"}]")
      #expect(try http("GET", "/a.json?ns=other").status == 404)
      #expect(try http("GET", "/a.json?ns=app").status == 200)
      #expect(try http("GET", "/.status.json").body.hasPrefix("{\"status\":\"ok\""))
    }
  }

  @Test("each namespace is a database of its own, found again by the next server")
  func namespaces() async throws {
    let folder = try TemporaryFolder()
    for round in 0..<2 {
      let namespaces = OpeningNamespaces(
        in: folder.path + "/data", default: "default", limits: OpeningNamespaces.Limits(count: 3),
        options: DatabaseOptions())
      let server = try DatabaseServer.start(namespaces, DatabaseServerOptions.patient)
      let http = try HTTPClient(port: server.port)
      if round == 0 {
        #expect(try http("PUT", "/a.json?ns=one", "1").status == 200)
        #expect(try http("PUT", "/a.json?ns=two", "2").status == 200)
      }
      #expect(try http("GET", "/a.json?ns=one").body == "1")
      #expect(try http("GET", "/a.json", nil, ["Host": "two.localhost"]).body == "2")
      #expect(try http("GET", "/a.json?ns=two").body == "2")
      #expect(try http("GET", "/a.json").body == "null")
      #expect(try http("GET", "/a.json?ns=../one").status == 403)
      // A reading makes none, and takes no place.
      for name in ["four", "five", "six"] {
        #expect(try http("GET", "/a.json?ns=\(name)").body == "null")
      }
      #expect(try http("PUT", "/a.json?ns=four", "4").status == 503)
      let names = try http(
        "GET", "/.inspect/databases.json", nil, ["Authorization": "Bearer owner"])
      #expect(names.body == "[{\"name\":\"default\"},{\"name\":\"one\"},{\"name\":\"two\"}]")
      await server.stop()
    }
  }

  @Test("if not every client may do everything, only an administrator makes a database")
  func strangers() async throws {
    let folder = try TemporaryFolder()
    let namespaces = OpeningNamespaces(
      in: folder.path + "/data", default: "default", options: DatabaseOptions())
    var options = DatabaseServerOptions.patient
    options.authorizer = UsersAuthorizer()
    options.secret = "the secret"
    let server = try DatabaseServer.start(namespaces, options)
    let http = try HTTPClient(port: server.port)
    let upgrade = [
      "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    ]
    for name in ["one", "two", "three", "four"] {
      #expect(try http("GET", "/a.json?ns=\(name)").status == 404)
      #expect(try http("PUT", "/a.json?ns=\(name)", "1").status == 404)
      #expect(try http("GET", "/.lp?start=t&v=5&ns=\(name)").status == 404)
      #expect(
        try HTTPClient(port: server.port)("GET", "/.ws?v=5&ns=\(name)", nil, upgrade).status == 404)
    }
    #expect(namespaces.names.isEmpty)
    let administrator = ["Authorization": "Bearer the secret"]
    #expect(try http("PUT", "/a.json?ns=one", "1", administrator).status == 200)
    #expect(try http("GET", "/a.json?ns=one").status == 401)
    #expect(try http("GET", "/a.json").status == 401)
    #expect(namespaces.names == ["default", "one"])
    await server.stop()
  }
}
