import Dendro
import DendroServer
import DendroTestSupport
import Dispatch
import Testing

/// Clients that make a server hold what they send.
@Suite("serving: what sessions hold")
struct HeldMemoryTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let listening = "{\"s\":\"ok\",\"d\":{}}"

  // MARK: Listens

  @Test("of a listen's query the server keeps what it means")
  func unknownMembers() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      let junk = String(repeating: "x", count: 40_000)
      for number in 0..<40 {
        let query = "\"q\":{\"junk\":\"\(junk)\",\"l\":\(number + 1),\"sin\":\"\(junk)\"}"
        #expect(
          try client("q", "{\"p\":\"/a\",\(query),\"t\":\(number + 1),\"h\":\"\"}") == [listening])
      }
      #expect(try served.figure("listens") == 40)
      #expect(try served.figure("session_bytes") < 40 << 10)
      for number in 0..<40 {
        #expect(
          try client("n", "{\"p\":\"/a\",\"q\":{\"l\":\(number + 1)},\"t\":\(number + 1)}") == [ok])
      }
      #expect(try served.figure("session_bytes") == 0)
    }
  }

  @Test("listens count, and one that would be too much is refused")
  func listens() async throws {
    try await serving({
      $0.sessionByteLimit = 400_000
    }) { served in
      let client = try WebSocketClient(served)
      let text = String(repeating: "x", count: 50_000)
      func listen(_ number: Int) throws -> String? {
        try client(
          "q",
          "{\"p\":\"/a\",\"q\":{\"i\":\".value\",\"sp\":\"\(text)\(number)\"},\"t\":\(number),\"h\":\"\"}"
        ).last
      }
      #expect(try (1...2).map { try listen($0) } == [listening, listening])
      #expect(try listen(3)?.hasPrefix("{\"s\":\"unavailable\"") == true)
      let query = "\"q\":{\"i\":\".value\",\"sp\":\"\(text)1\"},\"t\":1"
      #expect(try client("n", "{\"p\":\"/a\",\(query)}") == [ok])
      #expect(try listen(3) == listening)
    }
  }

  // MARK: The end of a session

  @Test("what was registered and cancelled or replaced does not count", arguments: [false, true])
  func cancelled(isOnDisk: Bool) async throws {
    let folder = try TemporaryFolder()
    let database = isOnDisk ? try await Database.open(at: folder.path + "/data") : .inMemory()
    var options = DatabaseServerOptions.patient
    options.sessionByteLimit = 100_000
    let server = try await DatabaseServer.start(serving: database, options: options)
    let client = try WebSocketClient(port: server.port)
    let text = String(repeating: "x", count: 20_000)
    for round in 0..<20 {
      for number in 0..<4 {
        let child = "\"p\":\"/left/\(round)/\(number)\""
        #expect(try client("o", "{\(child),\"d\":\"\(text)\"}") == [ok])
      }
      let whole = "\"p\":\"/left/\(round)\""
      #expect(try client("om", "{\(whole),\"d\":{\"0\":1,\"1\":null}}") == [ok])
      #expect(try client("oc", "{\(whole),\"d\":null}") == [ok])
    }
    #expect(try client("o", "{\"p\":\"/left/last\",\"d\":\"\(text)\"}") == [ok])
    await server.stop()
    let left = try await database.reference(withPath: "left").getData()
    #expect(left.childrenCount == 1 && left.hasChild("last"))
    try await database.close()
  }

  // MARK: All sessions together

  @Test(
    "sessions that hold too much together are closed, those with most first",
    arguments: [false, true])
  func budget(isUser: Bool) async throws {
    try await serving({ $0.sessionsByteLimit = 400_000 }) { served in
      let honest = try WebSocketClient(served)
      #expect(try honest("q", "{\"p\":\"/a\",\"h\":\"\"}") == [listening])
      // A message of another one is under way, which is larger than those of strangers.
      let large = try WebSocketClient(served)
      if isUser { _ = try large("gauth", "{\"cred\":\"owner\"}") }
      try large.send("2")
      let start = "{\"t\":\"d\",\"d\":{\"r\":9,\"a\":\"p\",\"b\":{\"p\":\"/big\",\"d\":\""
      try large.send(start + String(repeating: "x", count: 100_000))
      let part = [UInt8](repeating: UInt8(ascii: "x"), count: 70_000)
      var hostile: [WebSocketClient] = []
      for number in 0..<20 {
        let client = try WebSocketClient(served)
        try? client.frame(0x1, part, isFinal: false)
        hostile.append(client)
        #expect(try honest("p", "{\"p\":\"/b\",\"d\":\(number)}") == [ok])
      }
      while try served.figure("session_bytes") > 400_000 {}
      while try served.figure("sessions") > 8 {}
      if isUser {
        try large.send("\"}}}")
        #expect(try large.push() == "\"r\":9,\"b\":\(ok)")
      } else {
        #expect(try large.closingCode() == 1013)
      }
      #expect(try honest("p", "{\"p\":\"/a\",\"d\":1}").last == ok)
      hostile = []
      while try served.figure("session_bytes") > 100_000 {}
    }
  }

  @Test("what clients have sent before they left counts until it is done, or is given up")
  func left() async throws {
    /// Decides no write at `/slow` before it may.
    final class Gate: Authorizer {
      let semaphore = DispatchSemaphore(value: 0)

      func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
        if request.path == "/slow", case .write = request.operation {
          semaphore.wait()
          semaphore.signal()
        }
        return .allow
      }
    }
    let gate = Gate()
    try await serving({
      $0.authorizer = gate
      $0.sessionsByteLimit = 1_200_000
    }) { served in
      let text = String(repeating: "x", count: 100_000)
      let slow = try WebSocketClient(served)
      // Longer messages are performed elsewhere, one after the other.
      try slow.request("p", "{\"p\":\"/slow\",\"d\":\"\(text)\"}")
      for number in 0..<8 {
        try slow.request("p", "{\"p\":\"/left/\(number)\",\"d\":\"\(text)\"}")
      }
      while try served.figure("session_bytes") < 900_000 {}
      try slow.frame(0x8, [0x03, 0xE8])
      #expect(try slow.closingCode() == 1000)
      #expect(try served.figure("session_bytes") >= 900_000)
      // Another one, which holds less, makes it too much.
      let other = try WebSocketClient(served)
      try? other.frame(0x1, [UInt8](repeating: UInt8(ascii: "x"), count: 310_000), isFinal: false)
      while try !(400_000..<500_000).contains(served.figure("session_bytes")) {}
      gate.semaphore.signal()
      try other.frame(0x8, [0x03, 0xE8])
      while try served.figure("session_bytes") > 0 {}
      while try served.figure("sessions") > 0 {}
      let http = try served.client()
      #expect(try http("GET", "/slow.json?ns=app").body == "\"\(text)\"")
      #expect(try http("GET", "/left.json?ns=app").body == "null")
    }
  }

  @Test("parts of polls, and what is registered for the end, count as well")
  func polls() async throws {
    try await serving({
      $0.sessionsByteLimit = 200_000
      $0.trustsUnsignedTokens = false
    }) { served in
      let client = try WebSocketClient(served)
      let text = String(repeating: "x", count: 80_000)
      #expect(try client("o", "{\"p\":\"/left\",\"d\":\"\(text)\"}") == [ok])
      while try !(80_000..<100_000).contains(served.figure("session_bytes")) {}
      #expect(try client("oc", "{\"p\":\"/left\",\"d\":null}") == [ok])
      #expect(try served.figure("session_bytes") < 2_000)
      let session = try PollSession(served)
      let data = String(repeating: "A", count: 4_000)
      for serial in 0..<20 {
        _ = try session.poll(served, serial, "&seg0=\(serial)&ts0=30&d0=\(data)")
        while try served.figure("session_bytes") < (serial + 1) * 2_900 {}
      }
      // What was registered is written when the client has to leave. It counts twice while it is handled, and is
      // not too much even then.
      let other = try WebSocketClient(served)
      #expect(try other("o", "{\"p\":\"/left\",\"d\":\"\(text.prefix(30_000))\"}") == [ok])
      let last = try WebSocketClient(served)
      #expect(try last("o", "{\"p\":\"/last\",\"d\":\"\(text.prefix(45_000))\"}") == [ok])
      try last.frame(0x1, Array("20".utf8))
      try last.frame(0x1, Array(text.utf8), isFinal: false)
      #expect(try last.closingCode() == 1013)
      #expect(try other("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
      while try served.client()("GET", "/last.json?ns=app").body == "null" {}
    }
  }
}
