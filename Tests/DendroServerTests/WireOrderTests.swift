import Dendro
import DendroServer
import DendroTestSupport
import Dispatch
import Synchronization
import Testing

/// In which order a client gets answers and pushes.
@Suite("serving: the order of a client's messages")
struct WireOrderTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let listening = "{\"s\":\"ok\",\"d\":{}}"

  @Test("what follows a conditional write is done after it", arguments: Transport.allCases)
  func afterTransactions(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      for round in 0..<50 {
        let path = "\"p\":\"/n\(round)\""
        try client.request("p", "{\(path),\"d\":10,\"h\":\"\"}")
        try client.request("p", "{\(path),\"d\":11,\"h\":\"+r5aI9HvKKagELki8SYKBk0q7D4=\"}")
        try client.request("p", "{\(path),\"d\":12,\"h\":\"+r5aI9HvKKagELki8SYKBk0q7D4=\"}")
        try client.request("m", "{\"p\":\"/\",\"d\":{\"m\(round)\":true}}")
        #expect(try client("g", "{\(path),\"q\":{}}").last == "{\"s\":\"ok\",\"d\":11}")
        try client.request("p", "{\(path),\"d\":1,\"h\":\"wrong\"}")
        #expect(try client("p", "{\(path),\"d\":\"last\"}").last == ok)
        #expect(try client("g", "{\(path),\"q\":{}}") == ["{\"s\":\"ok\",\"d\":\"last\"}"])
      }
    }
  }

  @Test(
    "messages that wait for a conditional write are bounded, and none is lost",
    arguments: Transport.allCases)
  func manyWaiting(transport: Transport) async throws {
    try await serving({ $0.backlogByteLimit = 4096 }) { served in
      let client = try transport.client(served)
      let text = String(repeating: "x", count: 500)
      for _ in 0..<300 {
        try client.request("p", "{\"p\":\"/n\",\"d\":\"\(text)\",\"h\":\"none\"}")
        try client.request("p", "{\"p\":\"/n\",\"d\":\"\(text)\"}")
      }
      let answers = try (0..<600).map { _ in try client.push() }
      #expect(answers.filter { $0.contains("datastale") }.count == 300)
      #expect(Set(answers.map { $0.prefix { $0 != "," } }).count == 600)
    }
  }

  @Test(
    "what follows a listen with a hash is done after it, whether the hash is right or not",
    arguments: Transport.allCases)
  func afterHashes(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      for round in 0..<5 {
        let path = "\"p\":\"/n\(round)\""
        #expect(try client("p", "{\(path),\"d\":10}") == [ok])
        try client.request("q", "{\(path),\"h\":\"+r5aI9HvKKagELki8SYKBk0q7D4=\"}")
        #expect(
          try client("p", "{\(path),\"d\":11}") == [
            "\"r\":\(client.number - 1),\"b\":\(listening)",
            "\"a\":\"d\",\"b\":{\"p\":\"n\(round)\",\"d\":11}", ok,
          ])
        #expect(try client("n", "{\(path)}") == [ok])
        try client.request("q", "{\(path),\"h\":\"+r5aI9HvKKagELki8SYKBk0q7D4=\"}")
        #expect(
          try client("p", "{\(path),\"d\":12}") == [
            "\"a\":\"d\",\"b\":{\"p\":\"n\(round)\",\"d\":11}",
            "\"r\":\(client.number - 1),\"b\":\(listening)",
            "\"a\":\"d\",\"b\":{\"p\":\"n\(round)\",\"d\":12}", ok,
          ])
      }
    }
  }

  @Test("nothing is pushed for a listen after it was ended")
  func afterCancel() async throws {
    try await serving({ $0.secret = "s" }) { served in
      let isOver = Atomic<Bool>(false)
      let writing = DispatchGroup()
      let port = served.server.port
      DispatchQueue(label: "writer").async(group: writing) {
        guard let writer = try? WebSocketClient(port: port) else { return }
        _ = try? writer("gauth", "{\"cred\":\"s\"}")
        var number = 0
        while !isOver.load(ordering: .relaxed) {
          number += 1
          for _ in 0..<16 { _ = try? writer.request("p", "{\"p\":\"/a\",\"d\":\(number)}") }
          for _ in 0..<16 { _ = try? writer.message() }
        }
      }
      let client = try WebSocketClient(served)
      for _ in 0..<100 {
        _ = try client("gauth", "{\"cred\":\"s\"}")
        #expect(try client("q", "{\"p\":\"/a\",\"h\":\"\"}").last == listening)
        let answers = try client("unauth", "{}") + client("s", "{\"c\":{}}")
        let end = try #require(answers.firstIndex(of: "\"a\":\"c\",\"b\":{\"p\":\"a\"}"))
        #expect(answers[end...].count == 3)
      }
      isOver.store(true, ordering: .relaxed)
      await withCheckedContinuation { continuation in
        writing.notify(queue: .global()) { continuation.resume() }
      }
    }
  }

  @Test("a bad message after a conditional write closes the connection")
  func malformedWaiting() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      try client.request("p", "{\"p\":\"/n\",\"d\":1,\"h\":\"\"}")
      try client.send("{}")
      #expect(try client.message().contains("\"r\":1,\"b\":{\"s\":\"ok\""))
      #expect(
        try client.message()
          == "{\"t\":\"c\",\"d\":{\"t\":\"e\",\"d\":\"The message is none that clients send.\"}}")
      #expect(try client.closingCode() == 1008)
      #expect(try WebSocketClient(served)("g", "{\"p\":\"/n\"}") == ["{\"s\":\"ok\",\"d\":1}"])
    }
  }

  @Test("what a client has sent before it leaves is done before its last write")
  func leaving() async throws {
    let closing: [UInt8] = [0x03, 0xE8]
    try await serving { served in
      let watcher = try WebSocketClient(served)
      _ = try watcher("q", "{\"p\":\"/x\",\"h\":\"\"}")
      _ = try watcher("q", "{\"p\":\"/y\",\"h\":\"\"}")
      // It is parsed on another thread.
      let long = "{" + (0..<5000).map { "\"k\($0)\":\"a text\"" }.joined(separator: ",") + "}"
      for round in 0..<10 {
        let client = try WebSocketClient(served)
        #expect(try client("o", "{\"p\":\"/x\",\"d\":\"off\"}") == [ok])
        try client.request("p", "{\"p\":\"/x\",\"d\":\(long)}")
        try client.frame(0x8, closing)
        #expect(try watcher.push().contains("k4999"), "round \(round)")
        #expect(try watcher.push().contains("off"), "round \(round)")
      }
      for round in 0..<10 {
        let client = try WebSocketClient(served)
        #expect(try client("o", "{\"p\":\"/y\",\"d\":\"old\"}") == [ok])
        try client.request("oc", "{\"p\":\"/y\",\"d\":null}")
        try client.request("o", "{\"p\":\"/y\",\"d\":\"new \(round)\"}")
        try client.frame(0x8, closing)
        #expect(try watcher.push().contains("new \(round)"))
      }
      // What no client sends ends what waits behind it, and not the last write.
      let client = try WebSocketClient(served)
      #expect(try client("o", "{\"p\":\"/y\",\"d\":\"end\"}") == [ok])
      try client.request("p", "{\"p\":\"/x\",\"d\":1,\"h\":\"none\"}")
      try client.send("{}")
      #expect(try watcher.push().contains("end"))
    }
  }

  @Test(
    "a client that comes back sees its last write, whatever its connection before was doing",
    arguments: Transport.allCases)
  func comingBack(transport: Transport) async throws {
    try await serving { served in
      let long = "{" + (0..<5000).map { "\"k\($0)\":\"a text\"" }.joined(separator: ",") + "}"
      for round in 0..<5 {
        let client = try transport.client(served)
        #expect(try client("o", "{\"p\":\"/x\",\"d\":\"off \(round)\"}") == [ok])
        for _ in 0..<3 { try client.request("p", "{\"p\":\"/x\",\"d\":\(long)}") }
        // Those that the server has not read by then are not made.
        let next = try transport.client(served, after: client.session)
        let shown = "{\"s\":\"ok\",\"d\":\"off \(round)\"}"
        #expect(try next("g", "{\"p\":\"/x\"}") == [shown])
      }
    }
  }

  @Test(
    "values that are read once come between the pushes: none is older than one before it",
    arguments: Transport.allCases)
  func getBetweenPushes(transport: Transport) async throws {
    try await serving { served in
      let client = try transport.client(served)
      let writer = try transport.client(served)
      let count = 2000
      _ = try client("q", "{\"p\":\"/a/n\",\"h\":\"\"}")
      for number in 1...count { try writer.request("p", "{\"p\":\"/a/n\",\"d\":\(number)}") }
      var last = 0
      var isOrdered = true
      func see(_ message: String) {
        let digits = message.split { !$0.isNumber }.last.flatMap { Int($0) } ?? 0
        isOrdered = isOrdered && digits >= last
        last = digits
      }
      while last < count {
        for message in try client("g", "{\"p\":\"/a\",\"q\":{}}") where !message.contains("null") {
          see(message)
        }
      }
      #expect(isOrdered)
    }
  }

  @Test("a slow client gets the answer to its write after the value that replaces the pushes")
  func slowWriter() async throws {
    try await serving({ $0.backlogByteLimit = 64 << 10 }) { served in
      let client = try WebSocketClient(served, receiveBuffer: 4096)
      _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      let text = String(repeating: "x", count: 15_000)
      let count = 60
      let first = try client.request("p", "{\"p\":\"/a\",\"d\":{\"n\":0}}")
      // Everybody's writes come while this client does not read.
      let http = try served.client()
      for number in 1...count {
        try client.request("p", "{\"p\":\"/a\",\"d\":{\"n\":\(number)}}")
        _ = try http("PUT", "/a/t.json?print=silent", "\"\(text)\(number)\"")
      }
      var pushed = -1
      var answered = 0
      while answered <= count {
        let message = try client.push()
        if message.hasPrefix("\"r\":") {
          let number = Int(message.dropFirst(4).prefix { $0.isNumber }) ?? 0
          #expect(pushed >= number - first)
          answered += 1
        } else if let value = message.split(separator: "\"n\":").last?.prefix(while: \.isNumber) {
          pushed = max(pushed, Int(value) ?? -1)
        }
      }
    }
  }

  @Test("what has to be read from the disk comes in its order too")
  func coldReads() async throws {
    let folder = try TemporaryFolder()
    let first = try await Database.open(at: folder.path + "/db")
    let children = (0..<20_000).map { ("k\($0)", ["n": $0]) }
    try await first.reference(withPath: "a").setValue(
      Dictionary(children, uniquingKeysWith: { first, _ in first }))
    try await first.reference(withPath: "b").setValue("here")
    try await first.checkpoint()
    try await first.close()

    let database = try await Database.open(at: folder.path + "/db")
    let server = try await DatabaseServer.start(serving: database)
    let client = try WebSocketClient(Served(database: database, server: server))
    try client.request("q", "{\"p\":\"/a/k7\",\"h\":\"\"}")
    try client.request("p", "{\"p\":\"/a/k7/n\",\"d\":\"new\"}")
    try client.request("g", "{\"p\":\"/a/k7\",\"q\":{}}")
    try client.request("g", "{\"p\":\"/b\",\"q\":{}}")
    var messages: [String] = []
    for _ in 0..<6 { messages.append(try client.push()) }
    #expect(messages[0] == "\"a\":\"d\",\"b\":{\"p\":\"a/k7\",\"d\":{\"n\":7}}")
    #expect(messages[1] == "\"r\":1,\"b\":\(listening)")
    #expect(messages[2] == "\"a\":\"d\",\"b\":{\"p\":\"a/k7/n\",\"d\":\"new\"}")
    #expect(messages.contains("\"r\":2,\"b\":\(ok)"))
    #expect(messages.contains("\"r\":3,\"b\":{\"s\":\"ok\",\"d\":{\"n\":\"new\"}}"))
    #expect(messages.contains("\"r\":4,\"b\":{\"s\":\"ok\",\"d\":\"here\"}"))
    let http = try HTTPClient(port: server.port)
    #expect(try http("GET", "/a/k19999.json").body == "{\"n\":19999}")
    await server.stop()
    try await database.close()
  }
}
