import DendroProtocol
import DendroTestSupport
import Testing

@Suite("long polling, messages")
struct PollTests {
  private func segment(_ number: Int, _ count: Int, _ data: String) -> PollSegment {
    PollSegment(number: number, count: count, data: data)
  }

  /// The characters of a message's Base64, as the JavaScript client makes them.
  private func encoded(_ message: String) -> [Character] {
    Base64.encode(Array(message.utf8)).map { character in
      switch character {
      case "+": "-"
      case "/": "_"
      case "=": "."
      default: character
      }
    }
  }

  private func text(_ text: AnswerText) -> String {
    var text = text
    return String(decoding: text.rest(), as: UTF8.self)
  }

  @Test("requests")
  func requests() throws {
    func request(_ target: String) throws -> PollRequest? {
      try PollRequest(
        method: "GET", target: target, headers: HTTPHeaders([("host", "app.example.com:9000")]))
    }
    guard
      case .start(let start)? = try request("/.lp?start=t&ser=93&cb=7&v=5&ls=old&ns=other"),
      case .start(let plain)? = try request("/.lp?start=t&v=5"),
      case .poll(let key, 12, let segments)? = try request(
        "/.lp?id=i&pw=p&ser=12&ns=a&seg0=3&ts0=2&d0=e3&seg1=4&ts1=2&d1=0."),
      case .page(key)? = try request("/.lp?dframe=t&id=i&pw=p"),
      case .end(key)? = try request("/.lp?disconn=t&id=i&pw=p&ser=5")
    else {
      Issue.record("other requests")
      return
    }
    #expect(start.namespace == "other" && start.lastSession == "old" && start.callback == "7")
    #expect(plain.namespace == "app" && plain.lastSession == nil && plain.callback == nil)
    #expect(plain.host == "app.example.com:9000")
    #expect(key == PollKey(id: "i", password: "p"))
    #expect(segments == [segment(3, 2, "e3"), segment(4, 2, "0.")])
    #expect(try request("/.lpx") == nil && request("/.ws?v=5") == nil)
  }

  @Test("messages cut anywhere, in any order, twice", arguments: 0..<20)
  func packets(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let alphabet = Array("aé😀\"?>~\u{7F}")
    let messages = (0..<8).map { _ in
      String((0..<generator.below(40)).map { _ in alphabet[generator.below(alphabet.count)] })
    }
    var segments: [PollSegment] = []
    for message in messages {
      var rest = encoded(message)[...]
      var parts: [String] = []
      repeat {
        let count = min(rest.count, 1 + generator.below(9))
        parts.append(String(rest.prefix(count)))
        rest = rest.dropFirst(count)
      } while !rest.isEmpty
      for part in parts { segments.append(segment(segments.count, parts.count, part)) }
    }
    // As two polls under way may change places, and one may come again.
    for index in segments.indices.dropLast() where generator.oneIn(3) {
      segments.swapAt(index, index + 1)
    }
    segments += segments.prefix(3)
    var packets = PollPackets(byteLimit: 1_000)
    var received: [String] = []
    for segment in segments {
      for case .message(let message) in try packets.add(segment) {
        received.append(String(decoding: message, as: UTF8.self))
      }
    }
    #expect(received == messages)
  }

  @Test("segments that are none end the session")
  func malformed() throws {
    for segments in [
      [segment(0, 1, "e")], [segment(0, 1, "!!!!")],
      [segment(0, 1, "_w..")], [segment(0, 2, "e30"), segment(1, 2, "=e30.")],
    ] {
      var packets = PollPackets(byteLimit: 100)
      #expect(throws: PollPackets.Malformed.self) {
        for segment in segments { _ = try packets.add(segment) }
      }
    }
    var packets = PollPackets(byteLimit: 100)
    #expect(throws: PollPackets.Malformed.self) {
      for number in 1...2_000 { _ = try packets.add(segment(number, 2, "AAAA")) }
    }
  }

  @Test("a message over the limit is passed over, and the next one is taken")
  func tooLarge() throws {
    var packets = PollPackets(byteLimit: 60)
    let large = encoded(
      "{\"t\":\"d\",\"d\":{\"r\":77,\"a\":\"p\"" + String(repeating: " ", count: 90))
    let parts = stride(from: 0, to: large.count, by: 50).map {
      String(large[$0..<min(large.count, $0 + 50)])
    }
    var steps: [MessageAssembler.Step] = []
    for (number, part) in parts.enumerated() {
      steps += try packets.add(segment(number, parts.count, part))
    }
    steps += try packets.add(segment(parts.count, 1, "e30."))
    #expect(steps == [.tooLarge(request: 77), .message(Array("{}".utf8))])
  }

  @Test("answers are numbered, and a poll that comes again gets the same one")
  func answers() {
    var answers = PollAnswers(byteLimit: 1_000)
    func isNew(_ serial: Int64) -> Bool {
      if case .new = answers.arrival(serial) { true } else { false }
    }
    #expect(isNew(5) && isNew(4) && isNew(5))
    let first = text(answers.answer(5, [AnswerText("1"), AnswerText("{}")]))
    #expect(first == "pRTLPCB(1,[1,{}]);\n")
    #expect(text(answers.answer(4, [])) == "pRTLPCB(2,[]);\n")
    guard case .again(let again) = answers.arrival(5) else {
      Issue.record("it is not kept")
      return
    }
    #expect(text(again) == first)
    for serial in Int64(6)...30 {
      #expect(isNew(serial))
      _ = answers.answer(serial, [])
    }
    guard case .forgotten = answers.arrival(5) else {
      Issue.record("it is kept")
      return
    }
    #expect(isNew(31) && isNew(32))
    let last = text(answers.answer(31, [AnswerText("x")], closes: true))
    #expect(last == "pRTLPCB(28,[x]);\npLPCommand('close',28);\n")
    // It has never come before.
    #expect(isNew(100) && isNew(40))
    guard case .forgotten = answers.arrival(35) else {
      Issue.record("more are awaited than a client can have under way")
      return
    }
    // What is kept is bounded by its bytes as well.
    _ = answers.answer(32, [AnswerText(String(repeating: "x", count: 2_000))])
    guard case .forgotten = answers.arrival(28) else {
      Issue.record("it is kept")
      return
    }
  }
}
