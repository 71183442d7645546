// What strangers do who want a server to fail. They may read everything, and write below `public`.

extension Attack {
  /// All of them, as the article Security orders what it says of them.
  static let all: [Attack] = [
    pages, halfHeads, slowBodies, unreadAnswers, malformed, badTargets, comings, starts, silence,
    unreadListens, unreadStreams, longQueries, fragments, largeMessages, registrations,
    distinctQueries, hashes, conditions, names,
  ]

  /// Clients of all kinds, in the proportions that they have by themselves.
  static func crowd(_ clientCount: Int) -> [Attack] {
    let attacks = all.filter { !$0.needsOpenServer }
    let total = attacks.reduce(0) { $0 + $1.clientCount }
    let crowd = attacks.map { $0.scaled(max(1, $0.clientCount * clientCount / total)) }
    // What rounding has left over.
    let missing = max(0, clientCount - crowd.reduce(0) { $0 + $1.clientCount })
    return crowd.dropLast() + crowd.suffix(1).map { $0.scaled($0.clientCount + missing) }
  }

  // MARK: Requests

  private static func request(
    _ method: String, _ target: String, _ fields: [String] = [], _ body: String? = nil
  ) -> [UInt8] {
    var lines = ["\(method) \(target) HTTP/1.1", "Host: 127.0.0.1"] + fields
    if let body { lines.append("Content-Length: \(body.utf8.count)") }
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")).utf8)
  }

  private static let pages = Attack(
    name: "requests of strangers' pages", clientCount: 64, needsOpenServer: true
  ) { _, _ in
    request(
      "POST", "/list.json?x-http-method-override=DELETE", ["Origin: https://evil.example"], "")
  }

  private static let halfHeads = Attack(
    name: "heads that come a byte a second", clientCount: 2_000, addressCount: 1, pause: 1
  ) { _, number in
    number == 0 ? Array("GET /list.json HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ".utf8) : [0x78]
  }

  private static let slowBodies = Attack(
    name: "bodies of 256 MiB that come a byte a second", clientCount: 400, pause: 1
  ) { client, number in
    if number > 0 { return [0x78] }
    let head =
      "PUT /public/\(client).json HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 268435456\r\n\r\n\""
    return Array(head.utf8) + [UInt8](repeating: 0x78, count: 64 << 10)
  }

  private static let unreadAnswers = Attack(
    name: "answers of 20 MB that the client does not read", clientCount: 100, reads: false
  ) { _, number in number == 0 ? request("GET", "/list.json") : [] }

  private static let malformed = Attack(
    name: "malformed chunks", clientCount: 64, pause: 0.01
  ) { _, number in
    if number > 0 { return nil }
    let head =
      "PUT /public/chunks.json HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Array((head + "ffffffffffffffffff\r\n1;a\n").utf8)
  }

  private static let badTargets = Attack(
    name: "targets that are not UTF-8", clientCount: 64, pause: 0.01
  ) { _, _ in
    Array("GET /".utf8) + [0xFF, 0xC0] + Array(".json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
  }

  private static let comings = Attack(
    name: "connections that come and go", clientCount: 64, pause: 0.01
  ) { _, number in number == 0 ? Array("GET".utf8) : nil }

  private static let names = Attack(
    name: "names of databases that do not exist", clientCount: 64
  ) { client, number in request("GET", "/.json?ns=n\(client)-\(number)") }

  private static let conditions = Attack(
    name: "conditional writes of a location of 20 MB", clientCount: 16
  ) { _, _ in
    request("PUT", "/list.json", ["if-match: nothing"], "{\"k1\":1}")
  }

  private static let unreadStreams = Attack(
    name: "event streams of 20 MB that the client does not read", clientCount: 100, reads: false
  ) { _, number in
    number == 0 ? request("GET", "/list.json", ["Accept: text/event-stream"]) : []
  }

  // MARK: Sessions

  private static let starts = Attack(
    name: "starts of long polling", clientCount: 64, pause: 0.01
  ) { _, number in request("GET", "/.lp?start=t&ser=\(number)&cb=\(number)&v=5&ns=default") }

  /// Clients that get a WebSocket, and send what `message` makes for their further numbers, from 1.
  private static func sockets(
    _ name: String, _ clientCount: Int, pause: Double = 0.05, reads: Bool = true,
    _ message: @escaping @Sendable (_ client: Int, _ number: Int) -> [UInt8]
  ) -> Attack {
    Attack(name: name, clientCount: clientCount, pause: pause, reads: reads) { client, number in
      number == 0 ? HTTPRequest.upgrade : message(client, number)
    }
  }

  private static let silence = sockets("WebSockets that say nothing", 2_000) { _, _ in [] }

  private static let unreadListens = sockets(
    "WebSockets that listen to 20 MB and read nothing", 100, reads: false
  ) { _, number in
    WireRequestBytes.request(number, "q", "{\"p\":\"/list\",\"h\":\"\"}")
  }

  private static let longQueries = sockets(
    "listens with 1 MB that means nothing", 16, pause: 0.2
  ) { [filler = String(repeating: "x", count: 1 << 20)] _, number in
    WireRequestBytes.request(
      number, "q",
      "{\"p\":\"/public\",\"q\":{\"l\":1,\"vf\":\"l\",\"x\":\"\(filler)\"},\"t\":\(number),\"h\":\"\"}"
    )
  }

  private static let fragments = sockets(
    "messages that never end", 64, pause: 0.2
  ) { [payload = [UInt8](repeating: 0x20, count: 64 << 10)] _, number in
    WireRequestBytes.frame(number == 1 ? 0x01 : 0x00, payload)
  }

  private static let largeMessages = sockets(
    "messages of 1 MB", 16, pause: 0.5
  ) { [filler = String(repeating: "x", count: 1 << 20)] client, number in
    WireRequestBytes.request(number, "p", "{\"p\":\"/public/\(client)\",\"d\":\"\(filler)\"}")
  }

  private static let registrations = sockets(
    "64 KB registered for the end, and cancelled", 64
  ) { [filler = String(repeating: "x", count: 64 << 10)] client, number in
    number % 2 == 1
      ? WireRequestBytes.request(
        number, "o", "{\"p\":\"/public/end\(client)\",\"d\":\"\(filler)\"}")
      : WireRequestBytes.request(number, "oc", "{\"p\":\"/public/end\(client)\",\"d\":null}")
  }

  private static let distinctQueries = sockets(
    "listens whose queries all differ, over 200,000 children", 8, pause: 0.005
  ) { client, number in
    let bound = client * 10_000 + number
    let query = "{\"i\":\"n\",\"sp\":\(bound),\"ep\":\(bound + 1_000),\"l\":10,\"vf\":\"l\"}"
    return WireRequestBytes.request(
      number, "q", "{\"p\":\"/list\",\"q\":\(query),\"t\":\(number),\"h\":\"\"}")
  }

  private static let hashes = sockets(
    "writes that compare the hash of 20 MB", 16
  ) { _, number in
    WireRequestBytes.request(number, "p", "{\"p\":\"/list\",\"d\":{\"k1\":1},\"h\":\"nothing\"}")
  }
}
