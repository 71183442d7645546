import Dendro
import DendroRules
import DendroServer
import Testing

/// Security rules as clients of a server meet them.
@Suite("serving: security rules")
struct RulesTests {
  private static let owner = ["Authorization": "Bearer owner"]
  private let ok = "{\"status\":\"ok\"}"
  private static let denied = "{\n  \"error\" : \"Permission denied\"\n}\n"

  private static let rules = """
    {"rules": {
      // What everybody may read.
      "public": {".read": true, ".write": "auth != null"},
      "users": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid"}},
      "log": {"$entry": {".write": "!data.exists()", ".validate": "newData.child('at').val() === now"}},
      "count": {".read": true, ".write": "newData.val() === (data.exists() ? data.val() + 1 : 1)"},
      "scores": {".read": true, ".write": true, ".indexOn": ["points"]},
      "gated": {".read": "root.child('gate').val() === true"},
      "gate": {".write": true},
    }}
    """

  private func token(_ user: String) -> String { SignedTokens.unsigned(user) }

  private func servingRules(_ body: (Served, HTTPClient) async throws -> Void) async throws {
    try await serving({ $0.verdictInterval = 1 }) { served in
      let http = try served.client()
      let answer = try http("PUT", "/.settings/rules.json", Self.rules, Self.owner)
      #expect(answer.status == 200)
      #expect(answer.body == ok)
      try await body(served, http)
    }
  }

  @Test("administrators put rules, and get them back byte for byte")
  func settings() async throws {
    try await servingRules { served, http in
      let path = "/.settings/rules.json"
      #expect(try http("GET", path, nil, Self.owner).body == Self.rules)
      let strict = try http("GET", path + "?format=strict", nil, Self.owner).body
      #expect(!strict.contains("//"))
      #expect(throws: Never.self) { try JSONValue(parsing: strict) }
      #expect(try http("GET", path).status == 401)
      #expect(try http("PUT", path, "{\"rules\":{}}").status == 401)
      #expect(try http("PUT", path + "?auth=\(token("ann"))", "{\"rules\":{}}").status == 401)
      let broken = "{\"rules\": {\n  \".read\": \"foo\"}}"
      let refused = try http("PUT", path, broken, Self.owner)
      #expect(refused.status == 400)
      #expect(refused.body == "{\n  \"error\" : \"2:13: Unknown variable 'foo'.\\n\"\n}\n")
      let closed = "{\"rules\":{}}"
      #expect(try http("PUT", path + "?dryRun=true", closed, Self.owner).body == ok)
      #expect(try http("GET", path, nil, Self.owner).body == Self.rules)
      #expect(try http("GET", "/public.json").status == 200)
      #expect(try http("PUT", path, closed, Self.owner).body == ok)
      #expect(try http("GET", "/public.json").status == 401)
    }
  }

  @Test("requests are judged: nobody, users, whom an administrator asks as, administrators")
  func requests() async throws {
    try await servingRules { served, http in
      let ann = "?auth=\(token("ann"))"
      #expect(try http("GET", "/public.json").body == "null")
      let refused = try http("GET", "/users/ann.json")
      #expect(refused.status == 401)
      #expect(refused.body == Self.denied)
      #expect(try http("GET", "/.json").status == 401)
      #expect(try http("PUT", "/public/a.json", "1").status == 401)
      #expect(try http("PUT", "/public/a.json" + ann, "1").status == 200)
      #expect(try http("PUT", "/users/ann.json" + ann, "{\"name\":\"Ann\"}").status == 200)
      #expect(try http("PUT", "/users/bob.json" + ann, "1").status == 401)
      #expect(
        try http("PATCH", "/users.json" + ann, "{\"ann/name\":\"A\",\"bob/name\":\"B\"}").status
          == 401)
      #expect(
        try http("PATCH", "/users.json" + ann, "{\"ann/name\":\"A\",\"ann/age\":1}").status == 200)
      #expect(try http("DELETE", "/users/ann/age.json" + ann).status == 200)
      let asAnn = "?auth_variable_override=%7B%22uid%22:%22ann%22%7D"
      #expect(
        try http("GET", "/users/ann.json" + asAnn, nil, Self.owner).body == "{\"name\":\"A\"}")
      #expect(try http("GET", "/users/bob.json" + asAnn, nil, Self.owner).status == 401)
      #expect(
        try http("GET", "/users/ann.json?auth_variable_override=null", nil, Self.owner).status
          == 401)
      #expect(try http("GET", "/.json", nil, Self.owner).status == 200)
      // Shallow requests and streams are readings.
      #expect(try http("GET", "/users.json?shallow=true").status == 401)
      #expect(
        try http("GET", "/users/ann.json", nil, ["Accept": "text/event-stream"]).status == 401)
    }
  }

  @Test("server values are what the log gets: newData.val() === now")
  func now() async throws {
    try await servingRules { served, http in
      let stamped = "{\"at\":{\".sv\":\"timestamp\"}}"
      #expect(try http("PUT", "/log/a.json", stamped).status == 200)
      #expect(try http("PUT", "/log/a.json", stamped).status == 401)
      #expect(try http("PUT", "/log/b.json", "{\"at\":1}").status == 401)
      #expect(try http("POST", "/log.json", stamped).status == 200)
      let client = try WebSocketClient(served)
      #expect(
        try client("p", "{\"p\":\"/log/c\",\"d\":\(stamped)}").last?.contains("\"ok\"") == true)
    }
  }

  @Test("conditional requests and increments that answer with the number need the right to read")
  func conditional() async throws {
    try await servingRules { served, http in
      let increment = "{\".sv\":{\"increment\":1}}"
      #expect(try http("PUT", "/count.json", increment).body == "1")
      #expect(try http("PUT", "/count.json", increment).body == "2")
      #expect(try http("PUT", "/count.json", "{\".sv\":{\"increment\":2}}").status == 401)
      #expect(try http("PUT", "/gate.json", increment).status == 401)
      #expect(try http("PUT", "/gate.json?print=silent", increment).status == 204)
      #expect(try http("PUT", "/gate.json", "5", ["If-Match": "null_etag"]).status == 401)
      let client = try WebSocketClient(served)
      let denied = "{\"s\":\"permission_denied\",\"d\":\"Permission denied\"}"
      #expect(try client("p", "{\"p\":\"/gate\",\"d\":7,\"h\":\"\"}") == [denied])
      #expect(try client("p", "{\"p\":\"/gate\",\"d\":7}") == ["{\"s\":\"ok\",\"d\":\"\"}"])
    }
  }

  @Test("a query without an index", arguments: [true, false])
  func index(isAdministrator: Bool) async throws {
    try await servingRules { served, http in
      let headers = isAdministrator ? Self.owner : [:]
      #expect(try http("PUT", "/scores.json", "{\"a\":{\"points\":1,\"rank\":2}}").status == 200)
      let indexed = "/scores.json?orderBy=%22points%22&limitToFirst=1"
      #expect(try http("GET", indexed, nil, headers).status == 200)
      let missing = try http("GET", "/scores.json?orderBy=%22rank%22&limitToFirst=1", nil, headers)
      #expect(missing.status == 400)
      let message =
        "Index not defined, add \\\".indexOn\\\": \\\"rank\\\", for path \\\"/scores\\\", to the rules"
      #expect(missing.body == "{\n  \"error\" : \"\(message)\"\n}\n")
      let value = try http("GET", "/scores.json?orderBy=%22$value%22&limitToFirst=1", nil, headers)
      #expect(value.body.contains("\\\".value\\\""))
      #expect(
        try http("GET", "/scores.json?orderBy=%22$key%22&limitToFirst=1", nil, headers).status
          == 200)
      let client = try WebSocketClient(served)
      if isAdministrator { _ = try client("gauth", "{\"cred\":\"owner\"}") }
      let query = "{\"i\":\"rank\",\"l\":1,\"vf\":\"l\"}"
      #expect(
        try client("q", "{\"p\":\"/scores\",\"q\":\(query),\"t\":1,\"h\":\"\"}").last
          == "{\"s\":\"ok\",\"d\":{\"w\":[\"no_index\"]}}")
      #expect(
        try client("g", "{\"p\":\"/scores\",\"q\":\(query)}")
          == ["{\"s\":\"failure\",\"d\":\"\(message)\"}"])
    }
  }

  @Test("listens and streams end when rules, identity or data take their right away")
  func revoked() async throws {
    try await servingRules { served, http in
      #expect(try http("PUT", "/gate.json", "true").status == 200)
      let client = try WebSocketClient(served)
      let listening = "{\"s\":\"ok\",\"d\":{}}"
      #expect(try client("q", "{\"p\":\"/gated\",\"h\":\"\"}") == [listening])
      let stream = try served.stream("/gated.json")
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":null}")
      // Data that the verdict has read.
      #expect(try http("PUT", "/gate.json", "false").status == 200)
      #expect(try client.push() == "\"a\":\"c\",\"b\":{\"p\":\"gated\"}")
      #expect(try stream.event() == "cancel \"Permission denied\"")
      // Rules.
      #expect(try client("q", "{\"p\":\"/public\",\"h\":\"\"}") == [listening])
      let public_ = try served.stream("/public.json")
      #expect(try public_.event() == "put {\"path\":\"/\",\"data\":null}")
      #expect(try http("PUT", "/.settings/rules.json", "{\"rules\":{}}", Self.owner).body == ok)
      #expect(try client.push() == "\"a\":\"c\",\"b\":{\"p\":\"public\"}")
      #expect(try public_.event() == "cancel \"Permission denied\"")
      #expect(try http("PUT", "/.settings/rules.json", Self.rules, Self.owner).body == ok)
      // Identity.
      _ = try client("auth", "{\"cred\":\"\(token("ann"))\"}")
      #expect(try client("q", "{\"p\":\"/users/ann\",\"h\":\"\"}") == [listening])
      #expect(try client("unauth", "{}").first == "\"a\":\"c\",\"b\":{\"p\":\"users/ann\"}")
    }
  }

  @Test("an administrator who asks as somebody else is told how rules have decided")
  func trace() async throws {
    try await servingRules { served, http in
      let debug = Self.owner.merging(["X-Firebase-Auth-Debug": "1"]) { $1 }
      let answer = try http(
        "GET", "/users/ann.json?auth_variable_override=%7B%22uid%22:%22bob%22%7D", nil, debug)
      #expect(answer.status == 401)
      let trace = try #require(answer.headers["x-firebase-auth-debug"])
      #expect(trace.contains("/users/$uid"))
      #expect(trace.contains("false"))
      let stranger = try http("GET", "/users/ann.json", nil, ["X-Firebase-Auth-Debug": "1"])
      #expect(stranger.headers["x-firebase-auth-debug"] == nil)
      let client = try WebSocketClient(served)
      _ = try client("gauth", "{\"cred\":\"owner\",\"authvar\":{\"uid\":\"bob\"}}")
      let refused = try client("p", "{\"p\":\"/users/ann\",\"d\":1}")
      #expect(refused.count == 2)
      #expect(refused[0].hasPrefix("\"a\":\"sd\""))
      _ = try client("gauth", "{\"cred\":\"owner\",\"noauth\":true}")
      #expect(try client("p", "{\"p\":\"/public/x\",\"d\":1}").last?.contains("denied") == true)
    }
  }

  @Test("rules that a program gives hold for all databases, and cannot be replaced by clients")
  func given() async throws {
    let rules = try Rules("{\"rules\":{\"a\":{\".read\":true}}}")
    try await serving({ $0.rules = rules }) { served in
      let http = try served.client()
      #expect(try http("GET", "/a.json").status == 200)
      #expect(try http("GET", "/b.json").status == 401)
      #expect(try http("GET", "/b.json", nil, Self.owner).status == 200)
      #expect(try http("GET", "/.settings/rules.json", nil, Self.owner).body == rules.text)
      #expect(try http("PUT", "/.settings/rules.json", "{\"rules\":{}}", Self.owner).status == 409)
    }
  }

  @Test("an update without entries is allowed, and rules that are not UTF-8 are refused as such")
  func oddBodies() async throws {
    try await servingRules { _, http in
      let answer = try http("PATCH", "/users/ann.json", "{}")
      #expect(answer.status == 200)
      #expect(answer.body == "{}")
      try http.send(
        bytes: Array(
          "PUT /.settings/rules.json HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer owner\r\nContent-Length: 3\r\n\r\n"
            .utf8) + [0x22, 0xFF, 0x22])
      let refused = try http.answer()
      #expect(refused.status == 400)
      #expect(refused.body.contains("not UTF-8"))
    }
  }

  @Test("locked wins over rules")
  func locked() async throws {
    try await serving({
      $0.authorizer = LockedAuthorizer()
      $0.rules = try? Rules("{\"rules\":{\".read\":true}}")
    }) { served in
      let http = try served.client()
      #expect(try http("GET", "/a.json").status == 401)
      #expect(try http("GET", "/a.json", nil, Self.owner).status == 401)
    }
  }
}
