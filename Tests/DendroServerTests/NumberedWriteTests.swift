import Dendro
import DendroEngine
import DendroRules
import DendroServer
import DendroTestSupport
import DendroTree
import Testing

/// Writes with numbers, which a server makes once however often they come.
@Suite("serving: numbered writes")
struct NumberedWriteTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private static let client = "0123456789abcdef0123456789abcdef"
  private static let increment = "{\".sv\":{\"increment\":1}}"

  private static func body(
    _ data: String, _ number: Int, lowest: Int = 1, incarnation: Int = 0, path: String = "/a",
    hash: String? = nil
  ) -> String {
    let condition = hash.map { ",\"h\":\"\($0)\"" } ?? ""
    let digits = String(incarnation, radix: 16)
    let opening = String(repeating: "0", count: 16 - digits.count) + digits
    let name = "\"c\":\"\(client)\",\"i\":\"\(opening)\""
    return
      "{\"p\":\"\(path)\",\"d\":\(data)\(condition),\"n\":{\(name),\"n\":\(number),\"l\":\(lowest)}}"
  }

  /// What the server says of its database.
  private func branch(_ client: any WireClient) -> String? {
    client.hello.split(separator: "\"branch\":\"").dropFirst().first.map {
      String($0.prefix { $0 != "\"" })
    }
  }

  @Test("one is made once and answered each time, also by the next server after a kill")
  func killed() throws {
    let folder = try TemporaryFolder()
    var server = try ServerProcess(folder.path + "/db")
    var client = try Transport.webSocket.client(port: server.port, "ns=db")
    let branch = branch(client)
    #expect(branch?.utf8.count == 32)
    #expect(try client("p", Self.body(Self.increment, 1)) == [ok])
    #expect(try client("p", Self.body(Self.increment, 1)) == [ok])
    #expect(try client("p", Self.body(Self.increment, 2)) == [ok])
    #expect(try client("p", Self.body("5", 2))[0].contains("\"s\":\"failure\""))
    #expect(try client("m", Self.body("{\"b\":1}", 3, path: "/m")) == [ok])
    server.kill()
    server = try ServerProcess(folder.path + "/db")
    client = try Transport.webSocket.client(port: server.port, "ns=db")
    #expect(self.branch(client) == branch)
    #expect(try client("p", Self.body(Self.increment, 2)) == [ok])
    #expect(try client("m", Self.body("{\"b\":1}", 3, path: "/m")) == [ok])
    // Another opening of the client's directory counts for itself.
    #expect(try client("p", Self.body(Self.increment, 2, incarnation: 1)) == [ok])
    #expect(try client("p", Self.body(Self.increment, 4, lowest: 4)) == [ok])
    #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":4}"])
    // The client has the answers below 4: what comes with such a number is a copy that was late.
    #expect(try client("p", Self.body(Self.increment, 3, lowest: 3)) == [ok])
    #expect(try client("p", Self.body(Self.increment, 2, incarnation: 1)) == [ok])
    #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":4}"])
    #expect(server.stop() == 0)
  }

  @Test(
    "a conditional one is made once; as long as it was not made, its condition is looked at each time"
  )
  func conditional() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      let first = Self.body("1", 1, hash: "")
      #expect(try client("p", first) == [ok])
      #expect(try client("p", first) == [ok], "what is there has another hash by now")
      let second = Self.body("2", 2, hash: "")
      #expect(try client("p", second)[0].contains("datastale"))
      #expect(try client("p", Self.body("null", 3)) == [ok])
      #expect(try client("p", second) == [ok])
      #expect(try client("p", Self.body("2", 2, hash: "x"))[0].contains("\"s\":\"failure\""))
      #expect(try client("p", Self.body("2", 2))[0].contains("\"s\":\"failure\""))
      #expect(try client("p", Self.body("3", 4)) == [ok])
      #expect(try client("p", second) == [ok])
      #expect(try await served.database.reference(withPath: "a").getData().int == 3)
    }
  }

  @Test(
    "what is no number is refused, and nothing is written",
    arguments: [
      "{}", "1", "null", "[]", "{\"c\":\"0\",\"i\":\"0000000000000000\",\"n\":1,\"l\":1}",
      "{\"c\":\"\(client)\",\"i\":\"0\",\"n\":1,\"l\":1}",
      "{\"c\":\"\(client.uppercased())\",\"i\":\"0000000000000000\",\"n\":1,\"l\":1}",
      "{\"c\":\"\(client)\",\"i\":\"0000000000000000\",\"n\":0,\"l\":0}",
      "{\"c\":\"\(client)\",\"i\":\"0000000000000000\",\"n\":1,\"l\":2}",
      "{\"c\":\"\(client)\",\"i\":\"0000000000000000\",\"n\":1,\"l\":0}",
      "{\"c\":\"\(client)\",\"i\":\"0000000000000000\",\"n\":4294967296,\"l\":1}",
      "{\"c\":\"\(client)\",\"i\":\"0000000000000000\",\"n\":1.5,\"l\":1}",
    ])
  func malformed(number: String) async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      let answer = try client("p", "{\"p\":\"/a\",\"d\":1,\"n\":\(number)}")
      #expect(answer[0].contains("\"s\":\"failure\""))
      #expect(try await !served.database.reference(withPath: "a").getData().exists())
    }
  }

  @Test("many copies at once, over several connections")
  func copies() async throws {
    try await serving { served in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            let client = try WebSocketClient(served)
            for number in 1...50 { try client.request("p", Self.body(Self.increment, number)) }
            for _ in 1...50 {
              #expect(try client.push().hasSuffix("\"b\":{\"s\":\"ok\",\"d\":\"\"}"))
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await served.database.reference(withPath: "a").getData().int == 50)
    }
  }

  @Test("a refusal of a user is kept, and is the answer after the rules have changed")
  func denials() async throws {
    let rules = try Rules(
      #"{"rules":{".read":true,"a":{".write":"auth.uid == 'ann' && newData.val() < 9"}}}"#)
    try await serving { options in
      options.rules = rules
      options.trustsUnsignedTokens = true
    } _: { served in
      let client = try WebSocketClient(served)
      let engine = try served.database.servedEngine()
      #expect(try client("p", Self.body("1", 1))[0].contains("permission_denied"))
      #expect(engine.systemNode(at: .root).isEmpty, "nothing is written for strangers")
      _ = try client("auth", "{\"cred\":\"\(SignedTokens.unsigned("ann"))\"}")
      #expect(try client("p", Self.body("10", 2))[0].contains("permission_denied"))
      #expect(try client("p", Self.body("10", 2))[0].contains("permission_denied"))
      #expect(try client("p", Self.body("2", 2))[0].contains("failure"))
      #expect(try client("p", Self.body("2", 3)) == [ok])
      #expect(!engine.systemNode(at: .root).isEmpty)
    }
  }

  @Test("a write that a client sends again is not made again, even after a hundred later openings")
  func openings() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      for opening in 1...100 {
        #expect(try client("p", Self.body(Self.increment, opening, incarnation: opening)) == [ok])
      }
      for opening in [1, 2, 50, 100] {
        #expect(try client("p", Self.body(Self.increment, opening, incarnation: opening)) == [ok])
      }
      #expect(try await served.database.reference(withPath: "a").getData().int == 100)
    }
  }

  @Test("what a client needs no more goes at once, or 16 together from one that does not wait")
  func givenBack() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      let engine = try served.database.servedEngine()
      let name = "\(Self.client)/\(String(repeating: "0", count: 16))"
      let results = try Path(parsing: "numbered/results/anonymous/\(name)")
      func kept() -> [Int] {
        engine.systemNode(at: results).children.compactMap { Int($0.key.string) }
      }
      for number in 1...5 {
        #expect(try client("p", Self.body("\(number)", number, lowest: number)) == [ok])
        #expect(kept() == [number])
      }
      for number in 6...200 {
        let lowest = max(5, number - 10)
        #expect(try client("p", Self.body("\(number)", number, lowest: lowest)) == [ok])
        let kept = kept()
        #expect(kept.last == number && kept == Array(kept[0]...number))
        #expect(kept[0] <= lowest && lowest - kept[0] < 16)
      }
    }
  }

  @Test("the server keeps a digest of a stranger's address, and nothing of a user's")
  func addresses() async throws {
    try await serving { options in
      options.trustsUnsignedTokens = true
    } _: { served in
      let client = try WebSocketClient(served)
      let engine = try served.database.servedEngine()
      let results = try Path(parsing: "numbered/results")
      func json() -> String { JSONWriter.string(engine.systemNode(at: results)) }
      #expect(try client("p", Self.body("1", 1)) == [ok])
      #expect(json().contains("\"from\""))
      // As a text and as a number.
      for address in ["127.0.0.1", "2130706433"] { #expect(!json().contains(address)) }
      _ = try client("auth", "{\"cred\":\"\(SignedTokens.unsigned("ann"))\"}")
      #expect(try client("p", Self.body("2", 2)) == [ok])
      #expect(json().split(separator: "\"from\"").count == 2)
    }
  }

  @Test("a state that is restored is another history")
  func restored() async throws {
    let folder = try TemporaryFolder()
    let server = try ServerProcess(folder.path + "/db")
    let client = try Transport.webSocket.client(port: server.port, "ns=db")
    let branch = branch(client)
    #expect(try client("p", Self.body(Self.increment, 1)) == [ok])
    #expect(server.stop() == 0)
    let database = try await Database.open(at: folder.path + "/db")
    _ = try database.servedEngine().restore(
      .lsn(database.servedEngine().head.lsn), to: folder.path + "/restored")
    try await database.close()
    let next = try ServerProcess(folder.path + "/restored")
    let again = try Transport.webSocket.client(port: next.port, "ns=db")
    #expect(self.branch(again) != nil && self.branch(again) != branch)
    // It has the results nevertheless.
    #expect(try again("p", Self.body(Self.increment, 1)) == [ok])
    #expect(try again("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":1}"])
    #expect(next.stop() == 0)
  }
}
