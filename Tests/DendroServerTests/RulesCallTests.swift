import Dendro
import DendroServer
import DendroTestSupport
import Foundation
import Testing

@Suite("serving: what the viewer's page of rules asks for")
struct RulesCallTests {
  private let rules = """
    {
      "rules": {
        "users": {"$uid": {
          ".read": "auth.uid === $uid",
          ".write": "auth.uid === $uid && data.val() != 7",
          ".validate": "newData.hasChildren(['name'])"
        }},
        "list": {".read": "query.limitToFirst <= 10"},
        "at": {".write": true, ".validate": "newData.val() === now"}
      }
    }
    """

  private func object(_ answer: HTTPClient.Answer) throws -> [String: Any] {
    try #require(
      JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any],
      "\(answer.status) \(answer.body)")
  }

  /// The body of a trial; `members` is JSON.
  private func trial(_ rules: String, _ members: String) throws -> String {
    let text = try JSONSerialization.data(withJSONObject: rules, options: .fragmentsAllowed)
    return "{\"rules\":\(String(decoding: text, as: UTF8.self)),\(members)}"
  }

  @Test("the compiler's error with its place, and its warnings")
  func check() async throws {
    try await serving { served in
      let http = try served.client()
      func check(_ text: String) throws -> String {
        let answer = try http("POST", "/.viewer/rules.json?ns=app", text)
        #expect(answer.status == 200)
        #expect(answer.headers["content-type"] == "application/json; charset=utf-8")
        #expect(answer.headers["access-control-allow-origin"] == nil)
        return answer.body
      }
      #expect(try check(rules) == "{\"good\":true,\"error\":null,\"warnings\":[]}")
      #expect(
        try check("{\"rules\":{\n  \"a\": {\".read\": \"firebase\"}}}")
          == "{\"good\":false,\"error\":{\"line\":2,\"column\":19,"
          + "\"message\":\"Unknown variable 'firebase'.\"},\"warnings\":[]}")
      let open = try check("{\"rules\":{\".write\":true}}")
      #expect(open.hasPrefix("{\"good\":true,\"error\":null,\"warnings\":[{\"line\":1,\"column\":"))
      #expect(open.contains("\"message\":\"Any client may write the whole database.\""))
      #expect(try check("").hasPrefix("{\"good\":false"))
      let hostile = try check("{\"rules\":{\".read\":\"\\\"\u{1b}<b>\"}}")
      #expect(!hostile.contains("\u{1b}"))
      // They are not stored, and not in force.
      #expect(try http("PUT", "/a.json?ns=app", "1").status == 200)
    }
  }

  @Test(
    "each rule on the way with its values, for the data of this moment and a text that is not stored"
  )
  func explain() async throws {
    try await serving { served in
      let http = try served.client()
      _ = try http("PUT", "/users/ada.json", "{\"name\":\"Ada\"}")
      func explain(_ members: String) throws -> [String: Any] {
        let answer = try http("POST", "/.viewer/explain.json?ns=app", try trial(rules, members))
        #expect(answer.status == 200, "\(answer.body)")
        return try object(answer)
      }
      let own = try explain(#""as":{"sub":"ada"},"operation":"read","path":"/users/ada""#)
      #expect(own["allowed"] as? Bool == true)
      let other = try explain(
        #""as":{"sub":"b\u001b"},"operation":"set","path":"/users/ada","value":{"name":"B"}"#)
      #expect(other["allowed"] as? Bool == false && other["omitted"] as? Int == 0)
      let rule = try #require((other["rules"] as? [[String: Any]])?.first)
      #expect(rule["path"] as? String == "/users/ada" && rule["rule"] as? String == "/users/$uid")
      #expect(rule["kind"] as? String == ".write" && rule["line"] as? Int == 5)
      #expect(rule["result"] as? String == "false")
      #expect(rule["source"] as? String == "auth.uid === $uid && data.val() != 7")
      let values = try #require(rule["values"] as? [[String: Any]])
      #expect(values.map { $0["source"] as? String }.contains("auth.uid"))
      #expect(
        values.contains { $0["source"] as? String == "$uid" && $0["value"] as? String == "\"ada\"" }
      )
      for (members, isAllowed) in [
        (#""as":{"sub":"ada"},"operation":"set","path":"/users/ada","value":{"name":"A"}"#, true),
        (#""as":{"sub":"ada"},"operation":"set","path":"/users/ada","value":{"n":1}"#, false),
        (
          #""as":{"sub":"ada"},"operation":"update","path":"/users/ada","value":{"name":"A","x":1}"#,
          true
        ),
        (
          #""as":{"sub":"ada"},"operation":"update","path":"/users","value":{"ada/name":"A","bob/name":"B"}"#,
          false
        ),
        (#""as":{"sub":"ada"},"operation":"remove","path":"/users/ada""#, true),
        (#""as":null,"operation":"remove","path":"/users/ada""#, false),
        (
          #""as":null,"operation":"read","path":"/list","query":{"orderBy":"$key","limitToFirst":10}"#,
          true
        ),
        (#""as":null,"operation":"read","path":"/list","query":{"limitToFirst":11}"#, false),
        (#""as":null,"operation":"read","path":"/list","query":null"#, false),
        (#""as":null,"operation":"set","path":"/at","value":{".sv":"timestamp"}"#, true),
        (#""as":null,"operation":"set","path":"/at","value":5,"now":5"#, true),
        (#""as":null,"operation":"set","path":"/at","value":5,"now":6"#, false),
      ] {
        #expect(try explain(members)["allowed"] as? Bool == isAllowed, "\(members)")
      }
      let failed = try explain(#""as":null,"operation":"read","path":"/list""#)
      let reason = try #require((failed["rules"] as? [[String: Any]])?.first)
      #expect(reason["result"] as? String == "failed")
      #expect((reason["reason"] as? String)?.isEmpty == false)
      #expect(try explain(#""operation":"read","path":"/none""#)["rules"] as? [String] == [])
      #expect(try http("GET", "/users.json").body == "{\"ada\":{\"name\":\"Ada\"}}")
    }
  }

  @Test("what is no request is refused, with the reason")
  func malformed() async throws {
    try await serving { served in
      let http = try served.client()
      for (body, reason) in [
        ("", "Unexpected end of text."), ("[]", "Expected '{'."),
        ("{\"as\":null}", "Expected 'rules', a string."),
        (try trial(rules, "\"what\":1"), "Unknown member 'what'."),
        (try trial(rules, "\"path\":\"/a\""), "Expected 'operation'"),
        (try trial(rules, "\"operation\":\"read\",\"path\":\"/a#\""), "#"),
        (
          try trial(rules, "\"operation\":\"read\",\"as\":7"), "Expected null or an object as 'as'."
        ),
        (try trial(rules, "\"operation\":\"set\""), "Expected 'value'."),
        (try trial(rules, "\"operation\":\"set\",\"value\":{\"a.b\":1}"), "a.b"),
        (String(repeating: "[", count: 100_000), "Nested more than 100 levels deep."),
      ] {
        let answer = try http("POST", "/.viewer/explain.json", body)
        #expect(
          answer.status == 400 && answer.body.contains(reason),
          "\(body.prefix(200)): \(answer.body)")
      }
      let broken = try object(
        try http(
          "POST", "/.viewer/explain.json", try trial("{\"rules\":7}", "\"operation\":\"read\"")))
      #expect((broken["error"] as? [String: Any])?["line"] as? Int == 1)
      #expect(broken["allowed"] == nil)
      let long = String(repeating: "x", count: 2 << 20 + 1)
      for target in ["/.viewer/rules.json", "/.viewer/explain.json"] {
        #expect(try http("POST", target, long).status == 413)
        #expect(try http("GET", target).status == 405)
        #expect(try http("PUT", target, "x").status == 405)
      }
      #expect(try http("POST", "/.viewer/explain.json?ns=a.b", "{}").status == 403)
    }
  }

  @Test("they are for those who may see everything, and for no other page")
  func refused() async throws {
    let body = try trial(rules, "\"operation\":\"read\"")
    try await serving({ $0.secret = "s3cret" }) { served in
      let http = try served.client()
      let administrator = ["Authorization": "Bearer s3cret"]
      for target in ["/.viewer/rules.json", "/.viewer/explain.json"] {
        #expect(try http("POST", target, body).status == 401)
        #expect(try http("POST", target, body, ["Authorization": "Bearer x"]).status == 401)
        #expect(try http("POST", target, body, administrator).status == 200)
      }
    }
    try await serving { served in
      for target in ["/.viewer/rules.json", "/.viewer/explain.json"] {
        let stranger = try served.client()
        #expect(
          try stranger("POST", target, body, ["Origin": "http://evil.example"]).status == 403)
        let own = ["Origin": "http://127.0.0.1:\(served.server.port)"]
        #expect(
          try served.client()(
            "POST", target, body,
            own.merging(["Host": "127.0.0.1:\(served.server.port)"]) { $1 }
          ).status == 200)
      }
    }
    try await serving({ $0.viewer = false }) { served throws in
      #expect(try served.client()("POST", "/.viewer/rules.json", rules).status != 200)
    }
  }

  @Test("a trial makes no database")
  func unknown() async throws {
    let folder = try TemporaryFolder()
    let namespaces = OpeningNamespaces(
      in: folder.path + "/data", default: "default", options: DatabaseOptions())
    let server = try DatabaseServer.start(namespaces, DatabaseServerOptions.patient)
    let http = try HTTPClient(port: server.port)
    let body = try trial(rules, "\"operation\":\"read\",\"path\":\"/a\"")
    let answer = try http("POST", "/.viewer/explain.json?ns=other", body)
    #expect(try object(answer)["allowed"] as? Bool == false)
    #expect(namespaces.names.isEmpty)
    await server.stop()
  }
}
