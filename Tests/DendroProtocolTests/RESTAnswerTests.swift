import DendroProtocol
import DendroTree
import Testing

@Suite("REST, answers")
struct RESTAnswerTests {
  @Test(
    "reading",
    arguments: [
      ("{\"x\":1}", "", "{\"x\":1}"), ("null", "", "null"), ("1.0", "", "1"),
      ("{\"0\":\"x\",\"2\":\"z\"}", "", "[\"x\",null,\"z\"]"),
      ("{\"2\":\"z\"}", "", "{\"2\":\"z\"}"),
      ("{\".value\":1,\".priority\":2}", "", "1"),
      ("{\".value\":1,\".priority\":2}", "format=export", "{\".value\":1,\".priority\":2}"),
      ("{\"a\":1}", "print=pretty", "{\n  \"a\": 1\n}"),
      ("5", "shallow=true", "5"), ("null", "shallow=true", "null"),
      (
        "{\"a\":1,\"b\":{\"c\":2},\"d\":false}", "shallow=true",
        "{\"a\":true,\"b\":true,\"d\":true}"
      ),
      ("{\"a\":1}", "callback=f", "f({\"a\":1});"),
    ])
  func reading(data: String, items: String, text: String) throws {
    let answer = try answer(data, items)
    #expect(answer.status == 200)
    #expect(answer.text == text)
  }

  @Test("silent success has no body")
  func silent() throws {
    let answer = try answer("{\"a\":1}", "print=silent")
    #expect(answer.status == 204)
    #expect(answer.text.isEmpty)
    let put = try request("PUT", "/a.json?print=silent")
    #expect(RESTAnswer(wrote: try json("1"), put).status == 204)
  }

  @Test("types of content, and downloads")
  func content() throws {
    #expect(try answer("1").headers["content-type"] == "application/json; charset=utf-8")
    #expect(
      try answer("1", "callback=f").headers["content-type"]
        == "application/javascript; charset=utf-8")
    #expect(
      try answer("1", "download=a.json").headers["content-disposition"]
        == "attachment; filename=\"a.json\"")
    #expect(try answer("1").headers["cache-control"] == "no-cache")
  }

  @Test("errors look as in production")
  func errors() {
    #expect(
      RESTAnswer(.permissionDenied).text == "{\n  \"error\" : \"Permission denied\"\n}\n")
    #expect(RESTAnswer(.permissionDenied).status == 401)
    #expect(
      RESTAnswer(.badRequest("a \"b\"")).text == "{\n  \"error\" : \"a \\\"b\\\"\"\n}\n")
  }

  @Test("the priority as a value")
  func priority() throws {
    let priority = try request("GET", "/p/.priority.json")
    #expect(
      RESTAnswer(reading: try json("{\".value\":1,\".priority\":2}"), priority).text == "2")
    #expect(RESTAnswer(reading: try json("1"), priority).text == "null")
  }

  @Test("ETags")
  func etags() throws {
    let wants = [("X-Firebase-ETag", "true")]
    #expect(try answer("1").headers["etag"] == nil)
    let etag = try #require(try answer("1", "", wants).headers["etag"])
    #expect(try answer("2", "", wants).headers["etag"] != etag)
    #expect(try answer("{\".value\":1,\".priority\":2}", "", wants).headers["etag"] != etag)
    #expect(try answer("null", "", wants).headers["etag"] == "null_etag")
    let same = try answer("1", "", [("if-none-match", etag)])
    #expect(same.status == 304 && same.text.isEmpty && same.headers["etag"] == etag)
    let other = try answer("2", "", [("if-none-match", etag)])
    #expect(other.status == 200 && other.text == "2" && other.headers["etag"] != nil)
    let put = try request("PUT", "/n.json", [("if-match", "x")])
    let current = try json("{\"a\":1}")
    let failed = RESTAnswer(
      preconditionFailed: put, current: current, etag: TreeHash.etag(current))
    #expect(failed.status == 412 && failed.text == "{\"a\":1}")
    #expect(failed.headers["etag"] == TreeHash.etag(current))
    let delete = try request("DELETE", "/n.json", wants)
    let deleted = RESTAnswer(deleted: delete)
    #expect(deleted.text == "null" && deleted.headers["etag"] == "null_etag")
    let post = RESTAnswer(posted: "-N", try json("1"), try request("POST", "/n.json", wants))
    #expect(post.text == "{\"name\":\"-N\"}" && post.headers["etag"] == etag)
  }

  @Test("no two values have one ETag")
  func distinctETags() throws {
    let texts = [
      "1", "true", "\"1\"", "\"\"", "1.5", "-1", "9007199254740992", "9007199254740993",
      "{\"id\":1234567890123456788}", "{\"id\":1234567890123456789}",
      "{\".value\":\"x\",\".priority\":\"a:string:b\"}",
      "{\".value\":\"b:string:x\",\".priority\":\"a\"}", "{\".value\":1,\".priority\":2}",
      "{\".value\":2,\".priority\":1}", "{\"a\":2,\"b\":2}",
      "{\"a:WtSt2Xo3L0JtPuArzQHofPrZOuU=:b\":2}", "{\"a\":{\"b\":1}}", "{\"a\":1,\"b\":{\"c\":1}}",
      "{\"é\":1}", "{\"e\u{301}\":1}", "null",
    ]
    #expect(try Set(texts.map { TreeHash.etag(try json($0)) }).count == texts.count)
    #expect(try TreeHash.etag(json("{\"a\":1.0}")) == TreeHash.etag(json("{\"a\":1}")))
  }

  @Test("no array shows in an export, nor where keys alone do")
  func arrays() throws {
    #expect(try answer("[\"a\",\"b\"]").text == "[\"a\",\"b\"]")
    #expect(try answer("[\"a\",\"b\"]", "format=export").text == "{\"0\":\"a\",\"1\":\"b\"}")
    #expect(try answer("[null,\"x\",\"y\"]", "shallow=true").text == "{\"1\":true,\"2\":true}")
  }

  @Test("an update is shown as it was sent, with print=pretty a member on each line")
  func patched() throws {
    let body = Array(#"{ "a/b" : [1, {"c":"{,:\""}], "d":{}, "e" : [ ] }"#.utf8)
    func text(_ target: String) throws -> String {
      let answer = try body.withUnsafeBytes {
        RESTAnswer(patched: $0, try request("PATCH", target))
      }
      return answer.text
    }
    #expect(try text("/.json") == #"{"a/b":[1,{"c":"{,:\""}],"d":{},"e":[]}"#)
    #expect(
      try text("/.json?print=pretty") == """
        {
          "a/b": [
            1,
            {
              "c": "{,:\\""
            }
          ],
          "d": {},
          "e": []
        }
        """)
  }

  @Test("keys that begin or end with what makes one character of them and a slash")
  func markedKeys() throws {
    for key in ["\u{301}b", "\u{200D}", "x\u{6DD}", "\u{600}"] {
      let escaped = key.utf8.map { "%" + String($0, radix: 16) }.joined()
      guard case .data(let path) = try request("GET", "/\(escaped).json").resource else {
        Issue.record("\(escaped) is a place")
        continue
      }
      #expect(Array(path.relativeText.utf8) == Array(key.utf8))
      guard case .priority(let place) = try request("GET", "/\(escaped)/.priority.json").resource
      else {
        Issue.record("\(escaped) has a priority")
        continue
      }
      #expect(place == path)
      var push = WireText.push(.put(.root, try json("1")), at: path, tag: nil)
      let start = Array("{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"\(key)\"".utf8)
      #expect(push.rest().starts(with: start))
    }
  }

  @Test("origins of browsers")
  func origins() throws {
    let plain = try answer("1", "", [("Origin", "https://a.example")])
    #expect(plain.headers["access-control-allow-origin"] == "*")
    let withToken = try answer(
      "1", "", [("Origin", "https://a.example"), ("Authorization", "Bearer x")])
    #expect(withToken.headers["access-control-allow-origin"] == "https://a.example")
    #expect(withToken.headers["vary"] == "Origin")
    #expect(plain.headers["access-control-expose-headers"] == "ETag")
    let preflight = RESTAnswer(options: try request("OPTIONS", "/a.json"))
    #expect(preflight.status == 200 && preflight.text.isEmpty)
    #expect(
      preflight.headers["access-control-allow-methods"]?.hasPrefix(
        "GET, PUT, POST, PATCH, DELETE, OPTIONS") == true)
    for name in ["Authorization", "Content-Type", "X-Firebase-ETag", "If-Match", "If-None-Match"] {
      #expect(preflight.headers["access-control-allow-headers"]?.contains(name) == true)
    }
  }

  @Test(
    "a long answer is made in parts that make up what the writer writes", arguments: [false, true])
  func parts(isPretty: Bool) throws {
    var builder = NodeBuilder()
    for index in 0..<5_000 {
      var child = NodeBuilder()
      child.append(
        try Key("n"), Node(.integer(Int64(index)), priority: index % 3 == 0 ? .integer(1) : nil))
      child.append(try Key("t\u{e9}"), Node(.string("\"\\\n\u{1}é😀")))
      child.append(try Key("list"), try json("[1,null,2.5,[true]]"))
      builder.append(try Key("k\(index)"), child.finish(priority: .string("p")))
    }
    let node = builder.finish()
    for form in [JSONStyle.Form.value, .export] {
      let style = JSONStyle(form, isPretty: isPretty)
      var text = AnswerText(node, style)
      var bytes: [UInt8] = []
      while !text.isAtEnd {
        let part = text.next(byteCount: 1_000)
        #expect(part.count < 2_000)
        bytes += part
      }
      #expect(String(decoding: bytes, as: UTF8.self) == JSONWriter.string(node, style: style))
    }
  }

  @Test(
    "long strings are made in parts too, and count as kept until then", arguments: [false, true])
  func longStrings(isPretty: Bool) throws {
    let strings = [
      String(repeating: "x", count: 100_000), String(repeating: "é😀", count: 10_000),
      String(repeating: "\"\\\n\u{1}", count: 20_000), String(repeating: "y", count: 16 << 10),
      "short",
    ]
    var builder = NodeBuilder()
    for (index, string) in strings.enumerated() {
      let priority: Scalar? = index % 2 == 0 ? .string("p") : nil
      builder.append(try Key("k\(index)"), Node(.string(string), priority: priority))
    }
    builder.append(try Key("list"), try json("[\"\(strings[0])\",\"\(strings[1])\"]"))
    let all = builder.finish()
    for node in [all] + strings.indices.map({ all.child(try! Key("k\($0)")) }) {
      for form in [JSONStyle.Form.value, .export] {
        let style = JSONStyle(form, isPretty: isPretty)
        let expected = Array(JSONWriter.string(node, style: style).utf8)
        var text = AnswerText(node, style)
        var bytes: [UInt8] = []
        while !text.isAtEnd {
          if node.isLeaf { #expect(text.byteCount >= (expected.count - bytes.count) / 6) }
          let part = text.next(byteCount: 1_000)
          // An escape has up to six bytes, and what surrounds the string comes with it.
          #expect(!part.isEmpty && part.count < 24 << 10)
          bytes += part
        }
        #expect(bytes == expected)
      }
    }
  }

  @Test("a text whose beginning is made ahead is the same")
  func prepared() throws {
    let members = (0..<500).map { "\"k\($0)\":\"\(String(repeating: "x", count: $0))\"" }
    var text = AnswerText("before")
    text.append(try json("{\(members.joined(separator: ","))}"), JSONStyle())
    text.append("after")
    var copy = text
    let whole = copy.rest()
    #expect(whole.count > 100_000)
    for byteCount in [0, 1, 100, 20_000, 1_000_000] {
      var prepared = text
      #expect(prepared.prepare(byteCount: byteCount) == (byteCount > whole.count))
      #expect(prepared.prepare(byteCount: 2 * byteCount) == (byteCount > whole.count))
      #expect(prepared.rest() == whole)
    }
  }
}
