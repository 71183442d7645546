import Dendro
import DendroProtocol
import DendroServer
import DendroTestSupport
import DendroTree
import Dispatch
import Synchronization
import Testing

@Suite("serving: many clients")
struct ManyClientsTests {
  @Test("64 clients of all kinds, many of which leave without a word, and a stop in their midst")
  func mixed() async throws {
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/data")
    let server = try await DatabaseServer.start(serving: database)
    let port = server.port
    let record = ClientRecord()
    let done = DispatchGroup()
    for number in 0..<64 {
      DispatchQueue(label: "client").async(group: done) {
        let client = MixedClient(number, port, record)
        switch number % 4 {
        case 0: client.runRequests()
        case 1: client.runStreams()
        default: client.runWebSockets()
        }
      }
    }
    await Self.wait { record.steps.wait() }
    await server.stop()
    await Self.wait { done.wait() }

    let root = try await database.reference().getData()
    let facts = record.facts
    for (place, range) in facts.values {
      let found = root.childSnapshot(forPath: place).value as? Int ?? 0
      #expect(range.contains(found), "\(place) is \(found), and should be in \(range)")
    }
    for place in facts.left {
      let found = root.childSnapshot(forPath: place).value as? Bool
      #expect(found == true, "\(place) was to be written at the end of a connection")
    }
    let count = root.childSnapshot(forPath: "count").value as? Int ?? 0
    #expect((facts.increments...facts.increments + facts.openIncrements).contains(count))
    #expect(facts.events > 0 && facts.increments > 0 && !facts.left.isEmpty)
    #expect(facts.wrong == [])
    try await database.close()
  }

  /// Waits on a thread of its own.
  private static func wait(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "waiter").async {
        body()
        continuation.resume()
      }
    }
  }
}

/// What the clients know.
private final class ClientRecord: Sendable {
  struct Facts {
    /// What each place may have: from what was acknowledged last to what was sent last.
    var values: [String: ClosedRange<Int>] = [:]
    /// What was registered for the end of a connection, and acknowledged.
    var left: [String] = []
    /// Conditional writes that were acknowledged, and those without an answer.
    var increments = 0
    var openIncrements = 0
    var events = 0
    var wrong: [String] = []
  }

  /// Signalled when the clients have done so much that the server is to be stopped.
  let steps = DispatchSemaphore(value: 0)
  private let state = Mutex((facts: Facts(), left: Scale.share < 1 ? 1_500 : 6_000))

  var facts: Facts { state.withLock { $0.facts } }

  func change(_ body: (inout Facts) -> Void) { state.withLock { body(&$0.facts) } }

  /// A write was acknowledged, or an event has come.
  func step() {
    let isLast = state.withLock { state in
      state.left -= 1
      return state.left == 0
    }
    if isLast { steps.signal() }
  }
}

/// One of the clients, on a thread of its own. Its work ends when the server does.
private struct MixedClient {
  private let number: Int
  private let port: UInt16
  private let record: ClientRecord
  private let place: String

  init(_ number: Int, _ port: UInt16, _ record: ClientRecord) {
    self.number = number
    self.port = port
    self.record = record
    place = "values/c\(number)"
  }

  private struct Refused: Error {}

  private func require(_ condition: Bool) throws { if !condition { throw Refused() } }

  /// Notes a value before it is sent, and after it was acknowledged.
  private func write(_ value: Int, _ send: () throws -> Void) throws {
    record.change { $0.values[place] = ($0.values[place]?.lowerBound ?? 0)...value }
    try send()
    record.change { $0.values[place] = value...value }
    record.step()
  }

  /// Adds one to the count that all clients share.
  private func count(_ send: () throws -> Bool) throws {
    record.change { $0.openIncrements += 1 }
    let isWritten = try send()
    record.change { facts in
      facts.openIncrements -= 1
      if isWritten { facts.increments += 1 }
    }
    record.step()
  }

  // MARK: REST

  func runRequests() {
    var value = 0
    while let http = try? HTTPClient(port: port) {
      do {
        for _ in 0..<12 {
          value += 1
          try write(value) {
            try require(try http("PUT", "/\(place).json?print=silent", "\(value)").status == 204)
          }
          let old = try http("GET", "/count.json", nil, ["X-Firebase-ETag": "true"])
          try require(old.status == 200)
          let next = (Int(old.body) ?? 0) + 1
          try count {
            let answer = try http(
              "PUT", "/count.json", "\(next)", ["if-match": old.headers["etag"] ?? ""])
            try require(answer.status == 200 || answer.status == 412)
            return answer.status == 200
          }
        }
        _ = try http("GET", "/values.json?orderBy=%22$value%22&limitToLast=5")
        // Leaves in the middle of a request.
        try http.send("PUT /half.json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"a\":")
      } catch {
        // The server is at its end.
      }
    }
  }

  // MARK: Streams

  func runStreams() {
    let query = number % 8 == 1 ? "?orderBy=%22$value%22&limitToLast=3" : ""
    while let http = try? HTTPClient(port: port) {
      do {
        try http.send(
          HTTPClient.request(
            "GET", "/values.json\(query)", nil, ["Accept": "text/event-stream"]))
        try require(try http.head().status == 200)
        for index in 0..<20 {
          let event = try http.event()
          let isFirst = event.hasPrefix("put {\"path\":\"/\",\"data\":")
          if index == 0 ? !isFirst : !event.hasPrefix("put {") && !event.hasPrefix("patch {") {
            record.change { $0.wrong.append(event) }
          }
          record.change { $0.events += 1 }
          record.step()
        }
        // Leaves while more comes.
      } catch {
        // The server is at its end.
      }
    }
  }

  // MARK: WebSockets

  func runWebSockets() {
    var value = 0
    var connectionCount = 0
    while let http = try? HTTPClient(port: port) {
      do {
        let client = try WebSocketClient(http)
        connectionCount += 1
        try converse(client, connectionCount, &value)
        // Leaves in the middle of a frame.
        try client.send(bytes: [0x81, 0xFE])
      } catch {
        // The server is at its end.
      }
    }
  }

  private func converse(
    _ client: WebSocketClient, _ connectionCount: Int, _ value: inout Int
  ) throws {
    func ask(_ action: String, _ body: String) throws -> String {
      try client(action, body).last ?? ""
    }
    func isGood(_ answer: String) -> Bool { answer.hasPrefix("{\"s\":\"ok\"") }
    let window = "\"q\":{\"l\":3,\"vf\":\"r\",\"i\":\".value\"},\"t\":1"
    try require(isGood(try ask("q", "{\"p\":\"/values\",\"h\":\"\"}")))
    try require(isGood(try ask("q", "{\"p\":\"/values\",\(window),\"h\":\"\"}")))
    let left = "left/c\(number)/k\(connectionCount)"
    try require(isGood(try ask("o", "{\"p\":\"/\(left)\",\"d\":true}")))
    record.change { $0.left.append(left) }
    for _ in 0..<10 {
      value += 1
      let body = "{\"p\":\"/\(place)\",\"d\":\(value)}"
      try write(value) { try require(isGood(try ask("p", body))) }
      let old = try ask("g", "{\"p\":\"/count\",\"q\":{}}")
      try require(isGood(old))
      let present = old.split(separator: "\"d\":").last.flatMap { Int($0.dropLast()) }
      let hash = present.map { TreeHash.hash(Node(.integer(Int64($0)))) } ?? ""
      try count {
        let answer = try ask(
          "p", "{\"p\":\"/count\",\"d\":\((present ?? 0) + 1),\"h\":\"\(hash)\"}")
        try require(isGood(answer) || answer.contains("datastale"))
        return isGood(answer)
      }
    }
    try require(isGood(try ask("n", "{\"p\":\"/values\"}")))
  }
}
