import Dendro
import DendroServer
import Testing

@Suite("serving: long polling")
struct LongPollingTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let listening = "{\"s\":\"ok\",\"d\":{}}"
  private let close = "pLPCommand('close');\n"
  private let ping = "{\"t\":\"c\",\"d\":{\"t\":\"p\",\"d\":{}}}"
  private let pong = "{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":{}}}"

  // MARK: Answers

  @Test("a browser's script calls the functions of the page, another client's its own")
  func scripts() async throws {
    try await serving { served in
      let http = try served.client()
      let answer = try http("GET", "/.lp?start=t&ser=93&cb=12&v=5&ns=app")
      #expect(answer.status == 200)
      #expect(answer.headers["content-type"] == "text/javascript; charset=utf-8")
      let lines = answer.body.split(separator: "\n")
      #expect(lines[0] == "function pLPCommand(c, a1, a2, a3, a4) {")
      #expect(
        lines[1]
          == "parent.window[\"pLPCommand12\"] && parent.window[\"pLPCommand12\"](c, a1, a2, a3, a4);"
      )
      #expect(lines[3] == "function pRTLPCB(pN, data) {")
      #expect(lines[4] == "parent.window[\"pRTLPCB12\"] && parent.window[\"pRTLPCB12\"](pN, data);")
      #expect(lines[6].hasPrefix("pLPCommand('start','"))
      #expect(lines[7].hasPrefix("pRTLPCB(0,[{\"t\":\"c\",\"d\":{\"t\":\"h\",\"d\":{\"ts\":"))
      #expect(lines[7].hasSuffix("}}}]);"))
      #expect(
        try http("GET", "/.lp?start=t&ser=93&v=5&ns=app").body.hasPrefix("pLPCommand('start','"))
    }
  }

  @Test("requests that no client sends are refused")
  func refusals() async throws {
    try await serving { served in
      let http = try served.client()
      for target in [
        "start=t&v=4", "start=t", "start=t&v=5&cb=1);alert(1", "start=t&v=5&cb=", "",
        "id=a&pw=b", "id=a&pw=b&ser=-1", "id=a&pw=b&ser=x", "id=a&pw=b&ser=1&seg0=0",
        "id=a&pw=b&ser=1&seg0=0&ts0=0&d0=e30.", "id=a&pw=b&ser=1&seg0=-1&ts0=1&d0=e30.",
        "id=a&pw=b&ser=1&seg0=0&ts0=99999999&d0=e30.",
      ] {
        #expect(try http("GET", "/.lp?\(target)").status == 400, "\(target)")
      }
      #expect(try http("GET", "/.lp?start=t&v=5&ns=a.b").status == 403)
      #expect(try http("POST", "/.lp?start=t&v=5", "").status == 405)
      #expect(try http("GET", "/.lpx").status == 404)
    }
  }

  @Test("a poll waits for a message; a newer one releases it with an empty answer")
  func held() async throws {
    try await serving { served in
      let session = try PollSession(served)
      let first = try session.held(served, 1)
      let second = try session.poll(served, 2, PollSession.segment(0, ping))
      // The pong is for the older one.
      #expect(try first.answer().body == "pRTLPCB(1,[\(pong)]);\n")
      let third = try session.poll(served, 3)
      #expect(try second.answer().body == "pRTLPCB(2,[]);\n")
      let fourth = try session.poll(served, 4, PollSession.segment(1, ping) + "&x=y")
      #expect(try third.answer().body == "pRTLPCB(3,[\(pong)]);\n")
      _ = fourth
    }
  }

  @Test("what waits while no poll is there comes with the next one, in order")
  func batch() async throws {
    try await serving { served in
      let session = try PollSession(served)
      let writer = try WebSocketClient(served)
      let listen = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"q\",\"b\":{\"p\":\"/a\",\"h\":\"\"}}}"
      #expect(
        try session.http("GET", session.target(1, PollSession.segment(0, listen))).body
          == "pRTLPCB(1,[{\"t\":\"d\",\"d\":{\"r\":1,\"b\":\(listening)}}]);\n")
      for number in 1...3 {
        #expect(try writer("p", "{\"p\":\"/a\",\"d\":\(number)}") == [ok])
      }
      let pushes = (1...3).map {
        "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":\($0)}}}"
      }
      #expect(
        try session.http("GET", session.target(2)).body
          == "pRTLPCB(2,[\(pushes.joined(separator: ","))]);\n")
    }
  }

  // MARK: Lost, repeated and late polls

  @Test("a poll that comes again gets the same answer, and its message counts once")
  func repeated() async throws {
    try await serving { served in
      let session = try PollSession(served)
      let target = session.target(
        1, PollSession.segment(0, PollSession.put(1, "/n", "{\".sv\":{\"increment\":1}}")))
      let answer = try session.http("GET", target).body
      #expect(answer == "pRTLPCB(1,[{\"t\":\"d\",\"d\":{\"r\":1,\"b\":\(ok)}}]);\n")
      #expect(try session.http("GET", target).body == answer)
      #expect(try served.client()("GET", "/n.json?ns=app").body == "1")
      // Again while it is held: the new connection gets the answer.
      let lost = try session.held(served, 2)
      let found = try session.poll(served, 2)
      #expect(try lost.answer().body == "")
      let next = try session.poll(served, 3, PollSession.segment(1, ping))
      #expect(try found.answer().body == "pRTLPCB(2,[\(pong)]);\n")
      _ = next
    }
  }

  @Test("segments are put in order, and a poll that comes late is answered at once")
  func late() async throws {
    try await serving { served in
      let session = try PollSession(served)
      let data = PollClient.encoded(PollSession.put(1, "/a", "\"éé\""))
      let parts = [data[..<7], data[7..<30], data[30...]].map {
        String(decoding: $0, as: UTF8.self)
      }
      func part(_ index: Int) -> String { "&seg0=\(index)&ts0=3&d0=\(parts[index])" }
      let third = try session.held(served, 3, part(2))
      let first = try session.http("GET", session.target(1, part(0)))
      #expect(first.body == "pRTLPCB(1,[]);\n")
      let second = try session.poll(served, 2, part(1))
      let answers = [try second.answer().body, ""]
      // The write's answer comes with the late poll, or with the one that is held.
      let text = "[{\"t\":\"d\",\"d\":{\"r\":1,\"b\":\(ok)}}]"
      if answers[0] != "pRTLPCB(2,\(text));\n" {
        #expect(answers[0] == "pRTLPCB(2,[]);\n")
        #expect(try third.answer().body == "pRTLPCB(3,\(text));\n")
      }
      #expect(try served.client()("GET", "/a.json?ns=app").body == "\"éé\"")
    }
  }

  @Test("a poll that comes after many of the client's second connection is held like any other")
  func overtaken() async throws {
    try await serving { served in
      let session = try PollSession(served)
      for serial in 2...30 {
        _ = try session.http("GET", session.target(serial, PollSession.segment(serial - 2, ping)))
      }
      let late = try session.held(served, 1)
      let next = try session.poll(served, 31, PollSession.segment(29, ping))
      #expect(try late.answer().body == "pRTLPCB(30,[\(pong)]);\n")
      // It comes again, since its answer was lost.
      #expect(try session.http("GET", session.target(1)).body == "pRTLPCB(30,[\(pong)]);\n")
      _ = next
    }
  }

  @Test("a poll whose answer is no longer kept makes the client leave, and ends the session")
  func forgotten() async throws {
    try await serving { served in
      let watcher = try WebSocketClient(served)
      _ = try watcher("q", "{\"p\":\"/left\",\"h\":\"\"}")
      let session = try PollSession(served)
      let register = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"o\",\"b\":{\"p\":\"/left\",\"d\":1}}}"
      _ = try session.http("GET", session.target(1, PollSession.segment(0, register)))
      for serial in 2...40 {
        _ = try session.http("GET", session.target(serial, PollSession.segment(serial - 1, ping)))
      }
      #expect(try session.http("GET", session.target(1)).body == close)
      #expect(try watcher.push() == "\"a\":\"d\",\"b\":{\"p\":\"left\",\"d\":1}")
      #expect(try session.http("GET", session.target(41)).body == close)
    }
  }
}
