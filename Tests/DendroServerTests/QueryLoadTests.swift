import Dendro
import DendroProtocol
import DendroServer
import DendroTestSupport
import DendroTree
import Dispatch
import Synchronization
import Testing

/// Queries and hashes over many children, and those who ask for nothing of that kind beside them.
@Suite("serving: long work")
struct QueryLoadTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  private func fill(_ served: Served, _ count: Int) async throws {
    var children: [String: Any] = [:]
    for number in 0..<count { children["k\(number)"] = ["n": number * 7919 % count, "t": "x"] }
    try await served.database.reference(withPath: "list").setValue(children)
  }

  @Test("long work is not begun for a client that has left")
  func left() async throws {
    try await serving { served in
      try await fill(served, 1_000)
      for (head, status) in [
        ("GET /list.json?ns=app HTTP/1.1\r\nX-Firebase-ETag: true", 499),
        ("DELETE /list.json?ns=app HTTP/1.1\r\nIf-Match: x", 499),
        // What takes no long work has its answer.
        ("GET /list/k1/t.json?ns=app HTTP/1.1", 200),
      ] {
        let client = try served.client()
        client.holdBack()
        try client.send(bytes: Array("\(head)\r\nHost: 127.0.0.1\r\n\r\n".utf8))
        client.shutDownWriting()
        #expect(try client.answer().status == status, "\(head)")
      }
    }
  }

  @Test(
    "what a client asks for in one go is done in turn with what others want",
    arguments: ["listens", "gets", "hashes", "conditions", "orders"])
  func turns(kind: String) async throws {
    let count = 10_000
    try await serving { served in
      try await fill(served, count)
      let honest = try WebSocketClient(served)
      _ = try honest("q", "{\"p\":\"/own\",\"h\":\"\"}")
      let greedy = try WebSocketClient(served)
      let askedCount = ["listens": 600, "gets": 600, "orders": 400][kind] ?? 60
      for number in 0..<askedCount {
        let query = "{\"i\":\"n\",\"sp\":\(number),\"ep\":\(number),\"l\":1,\"vf\":\"l\"}"
        switch kind {
        case "listens":
          try greedy.request("q", "{\"p\":\"/list\",\"q\":\(query),\"t\":\(number),\"h\":\"\"}")
        case "orders":
          let query = "{\"i\":\"o\(number)\",\"l\":1,\"vf\":\"l\"}"
          try greedy.request("q", "{\"p\":\"/list\",\"q\":\(query),\"t\":\(number),\"h\":\"\"}")
        case "gets": try greedy.request("g", "{\"p\":\"/list\",\"q\":\(query)}")
        case "hashes": try greedy.request("q", "{\"p\":\"/list\",\"h\":\"x\(number)\"}")
        default: try greedy.request("p", "{\"p\":\"/list\",\"d\":1,\"h\":\"x\"}")
        }
      }
      let last = try greedy.request("p", "{\"p\":\"/done\",\"d\":1}")
      for number in 0..<5 {
        #expect(
          try honest("p", "{\"p\":\"/own\",\"d\":\(number)}")
            == ["\"a\":\"d\",\"b\":{\"p\":\"own\",\"d\":\(number)}", ok])
        let hash = TreeHash.hash(Node(.integer(Int64(number))))
        #expect(
          try honest("p", "{\"p\":\"/own\",\"d\":\"x\",\"h\":\"\(hash)\"}").last == ok)
        let query = "{\"i\":\"n\",\"sp\":\(number),\"ep\":\(number)}"
        #expect(
          try honest("g", "{\"p\":\"/list\",\"q\":\(query)}").last?.contains("\"n\":\(number),")
            == true)
      }
      var isDone = false
      while !isDone, greedy.hasInput { isDone = try greedy.push().hasPrefix("\"r\":\(last),") }
      // Orders are made or not; either is quick.
      #expect(!isDone || kind == "orders")
      if kind == "listens" || kind == "orders" {
        // What it has asked for ends with it.
        try greedy.send(bytes: WebSocketClient.frame(0x8, []))
        while try served.figure("sessions") > 1 {}
        #expect(try served.figure("listens") == 1)
      }
      #expect(try honest("p", "{\"p\":\"/own\",\"d\":true}").last == ok)
    }
  }

  @Test("conditional requests of large locations are done in turn with what others want")
  func conditions() async throws {
    try await serving { served in
      try await fill(served, 10_000)
      let greedy = try (0..<40).map { _ in try served.client() }
      for (number, client) in greedy.enumerated() {
        try client.send(
          number % 2 == 0
            ? HTTPClient.request("PUT", "/list.json?ns=app", "1", ["if-match": "x"])
            : HTTPClient.request(
              "GET", "/list.json?ns=app&print=silent", nil, ["if-none-match": "x"]))
      }
      let http = try served.client()
      for number in 0..<5 {
        #expect(try http("PUT", "/own.json?ns=app", "\(number)").status == 200)
        let etag = try http("GET", "/own.json?ns=app", nil, ["X-Firebase-ETag": "true"])
          .headers["etag"]
        let written = try http("PUT", "/own.json?ns=app", "\"x\"", ["if-match": etag ?? ""])
        #expect(written.status == 200)
      }
      #expect(greedy.contains { !$0.hasInput }, "some of the long work is done later")
      for (number, client) in greedy.enumerated() {
        let answer = try client.answer()
        #expect([412, 200, 204].contains(answer.status), "\(number)")
        #expect(answer.headers["etag"]?.count == 28)
      }
      #expect(try http("GET", "/list.json?ns=app&shallow=true").body.count > 50_000)
    }
  }

  @Test(
    "windows over many children are right, whatever is written while they begin", arguments: 0..<2)
  func windows(seed: UInt64) async throws {
    let count = 2_000
    try await serving { served in
      try await fill(served, count)
      // So many writes for each listen that clients keep up with them, however slow they are.
      let permits = DispatchSemaphore(value: 0)
      let isOver = Atomic(false)
      let writer = DispatchGroup()
      DispatchQueue(label: "writer").async(group: writer) {
        var generator = SeededGenerator(seed: seed)
        guard let client = try? WebSocketClient(served) else { return }
        var number = 0
        while true {
          permits.wait()
          if isOver.load(ordering: .relaxed) { return }
          number += 1
          let key = "k\(generator.below(count + 500))"
          let value =
            generator.oneIn(4)
            ? "null" : "{\"n\":\(generator.below(count)),\".priority\":\(number)}"
          _ = try? client("p", "{\"p\":\"/list/\(key)\",\"d\":\(value)}")
        }
      }
      let queries = [
        #"{"i":"n","sp":100,"l":20,"vf":"l"}"#, #"{"i":"n","l":20,"vf":"r"}"#,
        #"{"i":"n","sp":10,"ep":4000}"#,
        #"{"i":".key","sp":"k2","l":2000}"#, #"{"i":".value","l":5,"vf":"r"}"#,
        #"{"l":9,"vf":"r"}"#,
        #"{"i":"t","sp":"x","l":7}"#, #"{"i":"n","sp":3,"ep":3}"#,
      ]
      let clients = try (0..<4).map { _ in try ViewingClient(served) }
      for (number, client) in clients.enumerated() {
        for (index, query) in queries.enumerated() where (index + number) % 3 > 0 {
          for _ in 0..<100 { permits.signal() }
          try client.listen("\(index)", at: try Path(parsing: "/list"), query)
          _ = try client.take()
        }
      }
      isOver.store(true, ordering: .relaxed)
      permits.signal()
      await withCheckedContinuation { continuation in
        writer.notify(queue: .global()) { continuation.resume() }
      }
      let text = try served.client()("GET", "/list.json?format=export&ns=app").body
      let list = try Array(text.utf8).withUnsafeBytes { try JSONParser.parse($0) }
      for client in clients {
        // The last pushes have come before the answer.
        _ = try client.take()
        for (path, parameters, node) in client.windowsShown {
          #expect(node == list.filtered(by: parameters), "\(seed): \(path) \(parameters)")
        }
      }
    }
  }

  @Test("an own write is pushed before its answer, also while the order of the query is made")
  func ownWrites() async throws {
    try await serving { served in
      try await fill(served, 5_000)
      let client = try WebSocketClient(served)
      for order in ["n", "t", "u"] {
        let query = "\"q\":{\"i\":\"\(order)\",\"l\":3,\"vf\":\"l\"},\"t\":1"
        try client.request("q", "{\"p\":\"/list\",\(query),\"h\":\"\"}")
        let answers = try client("p", "{\"p\":\"/list/a\",\"d\":{\"new\":\"\(order)\"}}")
        #expect(answers.last == ok)
        #expect(answers.dropLast().joined().contains("\"new\":\"\(order)\""))
        #expect(answers.dropLast().joined().contains("\"r\":\(client.number - 1),"))
        #expect(try client("n", "{\"p\":\"/list\",\(query)}").last == ok)
      }
    }
  }

  @Test("a stream of a query over many children gets its value first, and every change behind it")
  func streams() async throws {
    try await serving { served in
      try await fill(served, 5_000)
      let http = try served.client()
      let target = "/list.json?ns=app&orderBy=%22n%22&startAt=4990"
      for round in 0..<5 {
        let stream = try served.stream(target)
        for number in 0..<10 {
          _ = try http(
            "PUT", "/list/s\(number).json?ns=app", "{\"n\":\(5_000 + round * 10 + number)}")
        }
        let first = try stream.event()
        #expect(first.hasPrefix("put {\"path\":\"/\",\"data\":{"))
        var isThere = first.contains("\"n\":\(5_000 + round * 10 + 9)}")
        while !isThere {
          isThere = try stream.event().contains("{\"n\":\(5_000 + round * 10 + 9)}")
        }
      }
    }
  }
}
