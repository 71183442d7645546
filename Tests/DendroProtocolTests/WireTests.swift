import DendroProtocol
import DendroTestSupport
import DendroTree
import Testing

@Suite("WebSocket dialogue, messages")
struct WireTests {
  private func action(_ text: String) -> WireAction? {
    guard case .request(let request) = WireMessage(Array(text.utf8)) else { return nil }
    return try? request.action.get()
  }

  private func refusal(_ name: String, _ body: String) -> RESTError? {
    let text = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"\(name)\",\"b\":\(body)}}"
    guard case .request(let request) = WireMessage(Array(text.utf8)) else { return nil }
    if case .failure(let error) = request.action { return error }
    return nil
  }

  private func text(_ text: AnswerText) -> String {
    var text = text
    return String(decoding: text.rest(), as: UTF8.self)
  }

  @Test("what the official client sends")
  func recorded() throws {
    guard
      case .listen(let whole, "", nil)? = action(
        #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/a/b","h":""}}}"#)
    else {
      Issue.record("no listen")
      return
    }
    #expect(try whole.path == path("a/b") && whole.query == nil && whole.tag == nil)
    guard
      case .listen(let window, "", nil)? = action(
        #"{"t":"d","d":{"r":3,"a":"q","b":{"p":"/list","q":{"sp":3,"sn":"k1","sin":true,"l":2,"vf":"r","i":"x/y"},"t":1,"h":""}}}"#
      )
    else {
      Issue.record("no listen")
      return
    }
    var expected = QueryParameters()
    expected.order = .child(try path("x/y"))
    expected.start = .init(value: .scalar(.integer(3)), key: try Key("k1"), isExclusive: false)
    expected.limit = .last(2)
    #expect(window.query == expected && window.tag == 1)
    guard
      case .unlisten(let keys)? = action(
        #"{"t":"d","d":{"r":4,"a":"n","b":{"p":"/l2","q":{"sp":"k5","sin":false,"ep":"k9","ein":false,"i":".key"},"t":2}}}"#
      )
    else {
      Issue.record("no unlisten")
      return
    }
    var range = QueryParameters()
    range.order = .key
    range.start = .init(value: .none, key: try Key("k5"), isExclusive: true)
    range.end = .init(value: .none, key: try Key("k9"), isExclusive: true)
    #expect(keys.query == range && keys.tag == 2)
    guard case .get(let got)? = action(#"{"t":"d","d":{"r":5,"a":"g","b":{"p":"/g/1","q":{}}}}"#)
    else {
      Issue.record("no get")
      return
    }
    #expect(got.query == nil)
    guard
      case .write(let draft, let at, nil)? = action(
        #"{"t":"d","d":{"r":7,"a":"p","b":{"p":"/w/1","d":{"i":{".sv":{"increment":5}},"t":{".sv":"timestamp"},"x":1}}}}"#
      )
    else {
      Issue.record("no put")
      return
    }
    #expect(try at == path("w/1") && draft.deferred.count == 2)
    // A condition that cannot be read is none that holds.
    for hash in ["5", "null", "true", "[\"x\"]"] {
      #expect(action(#"{"t":"d","d":{"r":8,"a":"p","b":{"p":"/w","d":1,"h":\#(hash)}}}"#) == nil)
    }
    guard
      case .write(let both, _, nil)? = action(
        #"{"t":"d","d":{"r":8,"a":"p","b":{"p":"/w/3","d":{".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}}}}}"#
      )
    else {
      Issue.record("no put of two server values")
      return
    }
    #expect(both.deferred.map(\.isPriority).sorted { !$0 && $1 } == [false, true])
    guard
      case .write(let ofPriority, _, nil)? = action(
        #"{"t":"d","d":{"r":9,"a":"p","b":{"p":"/w/2/.priority","d":8}}}"#),
      case .write(_, _, let condition?)? = action(
        #"{"t":"d","d":{"r":17,"a":"p","b":{"p":"/tx","d":1,"h":""}}}"#),
      case .onDisconnect(_, _)? = action(
        #"{"t":"d","d":{"r":13,"a":"om","b":{"p":"/od2","d":{"a":1,"b/c":2}}}}"#),
      case .cancelOnDisconnect(_)? = action(
        #"{"t":"d","d":{"r":14,"a":"oc","b":{"p":"/od","d":null}}}"#),
      case .none? = action(
        #"{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.js.12-18-0":1}}}}"#)
    else {
      Issue.record("not what was sent")
      return
    }
    #expect(condition.hash == "" && !condition.isPriority)
    if case .setPriority = ofPriority.write {} else { Issue.record("sets no priority") }
    guard
      case .signIn(let credentials)? = action(
        #"{"t":"d","d":{"r":2,"a":"gauth","b":{"cred":"owner","authvar":{"uid":"u1"}}}}"#)
    else {
      Issue.record("no sign-in")
      return
    }
    #expect(credentials == Credentials(bearer: "owner", authOverride: "{\"uid\":\"u1\"}"))
  }

  @Test(
    "bounds of query objects",
    arguments: [
      ("{\"l\":2}", "{\"vf\":\"r\",\"l\":2}"),
      ("{\"l\":2,\"sp\":null}", "{\"l\":2,\"sp\":null,\"vf\":\"l\"}"),
      ("{\"sp\":5,\"sn\":\"[MAX_NAME]\",\"sin\":false}", "{\"sp\":5,\"sin\":false}"),
      ("{\"ep\":5,\"en\":\"[MIN_NAME]\",\"ein\":false}", "{\"ep\":5,\"ein\":false}"),
      ("{\"i\":\".priority\",\"sp\":1}", "{\"sp\":1}"),
    ])
  func bounds(a: String, b: String) throws {
    let first = try #require(JSONMembers(Array(a.utf8)[...]))
    let second = try #require(JSONMembers(Array(b.utf8)[...]))
    #expect(try WireQuery.parameters(first) == WireQuery.parameters(second))
  }

  @Test("a query object says the query again that it was made of", arguments: 0..<200)
  func queryObjects(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var parameters = QueryParameters()
    parameters.order =
      [
        .priority, .key, .value, .child(try path("x/y")),
      ][generator.below(4)]
    func bound() throws -> QueryParameters.Bound {
      let key = try Key(["a", "7", "zz"][generator.below(3)])
      if parameters.order == .key {
        return .init(value: .none, key: key, isExclusive: generator.oneIn(2))
      }
      let values: [SortValue] = [
        .none, .scalar(.integer(3)), .scalar(.double(2.5)), .scalar(.string("\u{1}é")),
        .scalar(.bool(false)),
      ]
      return .init(
        value: values[generator.below(values.count)], key: generator.oneIn(2) ? key : nil,
        isExclusive: generator.oneIn(2))
    }
    if generator.oneIn(2) { parameters.start = try bound() }
    if generator.oneIn(2) { parameters.end = try bound() }
    switch generator.below(3) {
    case 0: parameters.limit = .first(generator.below(9) + 1)
    case 1: parameters.limit = .last(generator.below(9) + 1)
    default: break
    }
    let text = WireQuery.text(parameters)
    let members = try #require(JSONMembers(Array(text.utf8)[...]))
    #expect(try WireQuery.parameters(members) == parameters, "\(text)")
  }

  @Test(
    "refused requests",
    arguments: [
      ("q", "{}"), ("q", "{\"p\":\"a.b\"}"), ("q", "{\"p\":\"a\",\"q\":{\"l\":0},\"t\":1}"),
      ("q", "{\"p\":\"a\",\"q\":{\"i\":\"\"},\"t\":1}"),
      ("q", "{\"p\":\"a\",\"q\":{\"sp\":{}},\"t\":1}"),
      ("q", "{\"p\":\"a\",\"q\":{\"i\":\".key\",\"sp\":1},\"t\":1}"), ("p", "{\"p\":\"a\"}"),
      ("p", "{\"p\":\"a\",\"d\":{\"b.c\":1}}"), ("p", "{\"p\":\"a\",\"d\":{}x}"),
      ("m", "{\"p\":\"a\",\"d\":5}"), ("m", "{\"p\":\"a\",\"d\":{\"b\":1,\"b/c\":2}}"),
      ("auth", "{}"), ("zz", "{}"), ("p", "null"),
    ])
  func refused(name: String, body: String) {
    #expect(refusal(name, body) != nil)
  }

  @Test(
    "members may come in any order, among others, with escapes and spaces, and several times: the last counts",
    arguments: [
      #"{"d":{"b":{"d":1,"p":"/a"},"a":"p","r":7},"t":"d"}"#,
      #" { "t" : "d" , "d" : { "r" : 7 , "a" : "p" , "b" : { "p" : "/a" , "d" : 1 } } } "#,
      #"{"t":"c","x":{"t":[1,"}"]},"t":"d","d":5,"d":{"r":7,"a":"p","b":{"p":"/a","d":1}}}"#,
      #"{"t":"d","d":{"r":8,"a":"g","b":{"p":"/b"}},"d":{"r":7,"a":"p","b":{"p":"/a","d":1}}}"#,
      #"{"t":"d","d":{"r":"x","r":7,"a":1,"a":"p","b":[{}],"b":{"p":"/b","p":"/a","d":2,"d":1}}}"#,
      #"{"\u0074":"\u0064","\u0064":{"\u0072":7,"a":"\u0070","b":{"p":"\/a","d":1,"zz":{"p":9}}}}"#,
    ])
  func members(message: String) throws {
    guard case .request(let request) = WireMessage(Array(message.utf8)) else {
      Issue.record("no request")
      return
    }
    #expect(request.number == 7)
    guard case .write(let draft, let place, nil) = try request.action.get() else {
      Issue.record("no put")
      return
    }
    #expect(try place == path("a"))
    guard case .set(_, let node) = draft.write else {
      Issue.record("no set")
      return
    }
    #expect(node == Node(.integer(1)))
  }

  @Test(
    "messages that no client sends",
    arguments: [
      "", "x", "{}", "[]", "1.5", #"{"t":"d"}"#, #"{"t":"d","d":{}}"#, #"{"t":"d","d":5}"#,
      #"{"t":"d","d":{"r":1,"a":"p"}"#, #"{"t":"d","d":{"r":1,"a":"p"}}}"#,
      #"{"t":"d","d":{"r":1.5,"a":"p"}}"#, #"{"t":"d","d":{"r":1,"a":"p"},"d":0}"#,
      #"{"t":"d","d":{"r":1,"a":"p","r":"1"}}"#, #"{"d":{"r":1,"a":"p"}"t":"d"}"#,
      #"{"t":"d","d":{"r":1,"a":"p","b":{}"x":1}}"#, #"{"t":"d","d":{"r":1,"a":"p",}}"#,
      #"{,"t":"d","d":{"r":1,"a":"p"}}"#, #"{"t":"d","d":{}"r":1}"#, #"{"t":"\u","d":{"r":1}}"#,
      #"{"t":"dd","d":{"r":1,"a":"p"}}"#, #"{"t":1,"d":{"r":1,"a":"p"}}"#,
    ])
  func malformed(message: String) {
    guard case .malformed = WireMessage(Array(message.utf8)) else {
      Issue.record("taken")
      return
    }
  }

  @Test(
    "letters count however they are written",
    arguments: [
      #"{"t":"d","d":{"r":1,"a":"unauth"}}"#,
      #" { "t" : "d" , "d" : { "r" : 1 , "a" : "unauth" } } "#,
      #"{"\u0074":"\u0064","\u0064":{"\u0072":1,"a":"un\u0061uth","b":{}}}"#,
      #"{"t":"c","d":{"r":0},"t":"d","d":{"b":{},"a":"unauth","r":1},"x":{}}"#,
    ])
  func letters(message: String) {
    guard case .signOut? = action(message) else {
      Issue.record("not understood")
      return
    }
    guard case .ping = WireMessage(Array(#"{"t":"\u0063","d":{"t":"\u0070","d":{}}}"#.utf8)) else {
      Issue.record("no ping")
      return
    }
  }

  @Test("an answer that is made when it is sent is part of others as any text is")
  func latelyMadeAnswer() {
    let answer = #"{"t":"d","d":{"r":7,"b":{"s":"ok","d":""}}}"#
    func made() -> AnswerText { WireText.answer(7, status: "ok", .nothing) }
    var first = made()
    #expect(!first.isAtEnd && first.byteCount > 0)
    first.append("a")
    first.append(made())
    #expect(text(first) == "\(answer)a\(answer)")
    var second = AnswerText("b")
    second.append(made())
    #expect(text(second) == "b\(answer)")
    var third = made()
    let isWhole = third.prepare(byteCount: 1)
    #expect(isWhole)
    #expect(!third.isAtEnd)
    #expect(text(third) == answer)
    var fourth = made()
    let next = fourth.next()
    #expect(next == Array(answer.utf8))
    #expect(fourth.isAtEnd && fourth.byteCount == 0)
  }

  @Test("messages of the server")
  func messages() throws {
    #expect(
      text(WireText.hello(time: 17, host: "h:1", session: "s"))
        == #"{"t":"c","d":{"t":"h","d":{"ts":17,"v":"5","h":"h:1","s":"s"}}}"#)
    #expect(text(WireText.pong) == #"{"t":"c","d":{"t":"o","d":{}}}"#)
    #expect(
      text(WireText.answer(4, status: "permission_denied", .text("Permission denied")))
        == #"{"t":"d","d":{"r":4,"b":{"s":"permission_denied","d":"Permission denied"}}}"#)
    #expect(
      text(WireText.answer(1, status: "ok", .object))
        == #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#)
    #expect(
      text(WireText.answer(-5, status: "ok", .nothing))
        == #"{"t":"d","d":{"r":-5,"b":{"s":"ok","d":""}}}"#)
    #expect(
      text(WireText.answer(3, status: "datastale", .nothing))
        == #"{"t":"d","d":{"r":3,"b":{"s":"datastale","d":""}}}"#)
    #expect(
      text(WireText.push(.put(try path("x"), try json("2")), at: try path("a"), tag: nil))
        == #"{"t":"d","d":{"a":"d","b":{"p":"a/x","d":2}}}"#)
    #expect(
      text(WireText.push(.put(.root, .empty), at: .root, tag: nil))
        == #"{"t":"d","d":{"a":"d","b":{"p":"","d":null}}}"#)
    let change = PlaceChange.patch(
      .root, [(try path("b"), .empty), (try path("c/d"), try json("9"))])
    #expect(
      text(WireText.push(change, at: try path("s"), tag: 7))
        == #"{"t":"d","d":{"a":"m","b":{"p":"s","d":{"b":null,"c/d":9},"t":7}}}"#)
    #expect(
      text(WireText.cancel(try path("s"), query: "{\"l\":2}"))
        == #"{"t":"d","d":{"a":"c","b":{"p":"s","q":[{"l":2}]}}}"#)
  }

  @Test("the frames of a text that is made while it is sent are those of the whole text")
  func framesOfLongTexts() throws {
    let pieces = ["a", "é", "€", "😀", "\\u0000"]
    var generator = SeededGenerator(seed: 7)
    for childCount in [0, 1, 63, 64, 300, 8_000] {
      let members = (0..<childCount).map { number in
        let count = generator.oneIn(300) ? generator.below(40_000) : generator.below(20)
        let text = (0..<count).map { _ in pieces[generator.below(pieces.count)] }.joined()
        return "\"k\(number)\":\"\(text)\""
      }
      let json = Array("{\(members.joined(separator: ","))}".utf8)
      let node = try json.withUnsafeBytes { try JSONParser.parse($0) }
      let message = WireText.push(.put(.root, node), at: .root, tag: 3)
      var whole = message
      let expected = MessageFrames.split(whole.rest())
      var frames = MessageFrames(message)
      var made: [[UInt8]] = []
      var isOver = false
      while !isOver {
        switch frames.next() {
        case .frame(let frame): made.append(frame)
        case .counting: #expect(frames.byteCount < 2 << 20)
        case .end: isOver = true
        }
      }
      #expect(made == expected, "\(childCount)")
      let count = made.count == 1 ? nil : String(decoding: made[0], as: UTF8.self)
      #expect(count == nil || count == "\(made.count - 1)")
      for frame in made {
        let text = try #require(String(validating: frame, as: UTF8.self))
        #expect(text.utf16.count <= MessageFrames.unitLimit)
      }
    }
  }

  @Test("of a query, what it means is kept")
  func queryText() throws {
    func text(_ query: String) -> String? {
      let body = "{\"p\":\"/a\",\"q\":\(query),\"t\":1,\"h\":\"\"}"
      let message = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"q\",\"b\":\(body)}}"
      guard case .listen(let location, _, _)? = action(message) else { return nil }
      return location.queryText
    }
    for query in [
      #"{"sp":"k1","sin":false,"ep":"k9","ein":true,"l":2,"vf":"l","i":".key"}"#,
      #"{"sp":null,"sn":"k","l":3,"vf":"r","i":"x/y"}"#, #"{"sp":-1.5,"ep":true,"en":"z"}"#, "{}",
    ] { #expect(text(query) == query) }
    #expect(
      text(#"{ "x":{"l":9}, "l" : 2, "sin":"yes", "vf":"up", "i":".value", "y":"z"}"#)
        == #"{"l":2,"i":".value"}"#)
  }

  @Test("long messages are split, and put together again")
  func frames() {
    let message = Array("\"\(String(repeating: "é", count: 40_000))\"".utf8)
    let frames = MessageFrames.split(message)
    #expect(frames.count == 4 && frames[0] == Array("3".utf8))
    for frame in frames.dropFirst() {
      let text = String(validating: frame, as: UTF8.self)
      #expect(text.map { $0.utf16.count <= MessageFrames.unitLimit } == true)
    }
    var assembler = MessageAssembler(byteLimit: 1 << 20)
    #expect(assembler.add(Array("0".utf8)) == .waiting)
    for frame in frames.dropLast() { #expect(assembler.add(frame) == .waiting) }
    #expect(assembler.add(frames[3]) == .message(message))
    #expect(assembler.add(Array("0".utf8)) == .waiting)
    #expect(assembler.add(Array("1".utf8)) == .waiting)
    #expect(assembler.add(Array("{}".utf8)) == .message(Array("{}".utf8)))
    #expect(MessageFrames.split(Array("{}".utf8)) == [Array("{}".utf8)])
    let pairs = Array(String(repeating: "😀", count: 8_193).utf8)
    #expect(MessageFrames.split(pairs).map(\.count) == [1, 32_768, 4])
  }

  @Test("a message over the limit is not collected")
  func tooLarge() {
    var assembler = MessageAssembler(byteLimit: 100)
    #expect(assembler.add([UInt8](repeating: 32, count: 101)) == .tooLarge(request: nil))
    let spaces = [UInt8](repeating: 32, count: 60)
    let start = Array(#"{"t":"d","d":{"r":17,"a":"p","#.utf8)
    for _ in 0..<2 {
      #expect(assembler.add(Array("5".utf8)) == .waiting)
      #expect(assembler.add(start) == .waiting)
      for _ in 0..<3 { #expect(assembler.add(spaces) == .waiting) }
      #expect(assembler.add(spaces) == .tooLarge(request: 17))
      // What follows is a message of its own.
      #expect(assembler.add(Array("{}".utf8)) == .message(Array("{}".utf8)))
    }
    #expect(assembler.add(Array("2".utf8)) == .waiting)
    #expect(assembler.add(start + spaces + spaces) == .waiting)
    #expect(assembler.add(spaces) == .tooLarge(request: 17))
    for first in [
      #"{"t":"d","d":{"r":x"#, "", #"{"t":"d","d":{"r":99999999999999999999,"#, #"{"d":{"r":17,"#,
    ] {
      #expect(assembler.add(Array("5".utf8)) == .waiting)
      #expect(assembler.add(Array(first.utf8)) == .waiting)
      let isOver = first.utf8.count > 40
      if !isOver { #expect(assembler.add(spaces) == .waiting) }
      #expect(assembler.add(spaces) == .tooLarge(request: nil))
    }
    // Nothing is passed over for ever.
    #expect(assembler.add(Array("999999".utf8)) == .waiting)
    #expect(assembler.add(start) == .waiting)
    var count = start.count
    while (count + 60) / MessageAssembler.passedFactor <= 100 {
      #expect(assembler.add(spaces) == .waiting)
      count += 60
    }
    #expect(assembler.add(spaces) == .tooLarge(request: nil))
  }

  @Test("handshakes")
  func handshakes() throws {
    let headers = [
      ("Upgrade", "websocket"), ("Connection", "keep-alive, Upgrade"),
      ("Sec-WebSocket-Version", "13"),
      ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Host", "127.0.0.1:9000"),
    ]
    func open(_ target: String, without name: String = "") throws -> Handshake? {
      try Handshake(
        method: "GET", target: target, headers: HTTPHeaders(headers.filter { $0.0 != name }))
    }
    let handshake = try #require(try open("/.ws?v=5&ls=old&ns=app"))
    #expect(handshake.accept == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    #expect(handshake.namespace == "app" && handshake.lastSession == "old")
    #expect(try open("/a.json") == nil)
    #expect(try open("/.wsx") == nil)
    #expect(throws: RESTError.self) { try open("/.ws?v=4") }
    #expect(throws: RESTError.self) { try open("/.ws?v=5&ns=..") }
    for (name, _) in headers where name != "Host" {
      #expect(throws: RESTError.self) { try open("/.ws?v=5", without: name) }
    }
  }

  @Test("arbitrary messages", arguments: 0..<8)
  func arbitrary(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let words = [
      "{", "}", "[", "]", ",", ":", "\"", "\"t\":", "\"d\":", "\"c\"", "\"d\"", "\"r\":", "\"a\":",
      "\"b\":",
      "\"p\":", "\"q\":", "\"q\"", "\"p\"", "\"m\"", "\"o\"", "\"g\"", "\"h\":", "\"l\":",
      "\"sp\":", "\"i\":", "1",
      "-1", "\"/a/b\"", "\".key\"", "null", "true", "\\", "\\\"", "é", " ",
    ]
    let whole =
      #"{"t":"d","d":{"r":3,"a":"q","b":{"p":"/l","q":{"sp":3,"sn":"k1","l":2,"vf":"r","i":"x/y"},"t":1,"h":""}}}"#
    var assembler = MessageAssembler(byteLimit: 1000)
    for _ in 0..<5_000 {
      var bytes: [UInt8]
      if generator.oneIn(2) {
        bytes = Array(whole.utf8)
        for _ in 0...generator.below(3) {
          bytes[generator.below(bytes.count)] = UInt8(truncatingIfNeeded: generator.next())
        }
      } else {
        bytes = Array(
          (0..<generator.below(30)).map { _ in words[generator.below(words.count)] }.joined().utf8)
      }
      _ = WireMessage(bytes)
      _ = assembler.add(bytes)
    }
  }
}
