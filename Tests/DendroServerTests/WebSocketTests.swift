import Dendro
import DendroEngine
import DendroServer
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Testing

@Suite("serving: WebSockets")
struct WebSocketTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let listening = "{\"s\":\"ok\",\"d\":{}}"

  @Test("hello, ping and keep-alive")
  func hello() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      #expect(client.hello.hasPrefix("{\"t\":\"c\",\"d\":{\"t\":\"h\",\"d\":{\"ts\":"))
      #expect(client.hello.contains("\"v\":\"5\",\"h\":\"127.0.0.1\""))
      try client.send("0")
      try client.send("{\"t\":\"c\",\"d\":{\"t\":\"p\",\"d\":{}}}")
      #expect(try client.message() == "{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":{}}}")
      #expect(try client("s", "{\"c\":{\"sdk.js.12-18-0\":1}}") == [ok])
    }
  }

  @Test("what a server that was killed leaves is written by the next one, once")
  func leftovers() async throws {
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/db")
    let server = try await DatabaseServer.start(serving: database)
    let client = try WebSocketClient(Served(database: database, server: server))
    #expect(try client("o", "{\"p\":\"/me\",\"d\":\"gone\"}") == [ok])
    #expect(try client("om", "{\"p\":\"/a\",\"d\":{\"b\":1,\"c\":2}}") == [ok])
    #expect(try client("oc", "{\"p\":\"/a/b\",\"d\":null}") == [ok])
    #expect(try client("p", "{\"p\":\"/me\",\"d\":\"here\"}") == [ok])
    // The files as a kill at this moment would leave them.
    let files = FileManager.default
    try files.copyItem(atPath: folder.path + "/db", toPath: folder.path + "/killed")
    await server.stop()
    #expect(try await database.reference(withPath: "me").getData().string == "gone")
    #expect(try database.servedEngine().systemNode(at: .root).isEmpty)
    try await database.close()

    let again = try await Database.open(at: folder.path + "/killed")
    #expect(try await again.reference(withPath: "me").getData().string == "here")
    let next = try await DatabaseServer.start(serving: again)
    #expect(try await again.reference(withPath: "me").getData().string == "gone")
    #expect(try await again.reference(withPath: "a").getData().childrenCount == 1)
    #expect(try await again.reference(withPath: "a/c").getData().int == 2)
    #expect(try again.servedEngine().systemNode(at: .root).isEmpty)
    await next.stop()
    try await again.close()
  }

  @Test(
    "what an older release has left in files beside the database is taken over, and written once")
  func olderFiles() async throws {
    let folder = try TemporaryFolder()
    let files = FileManager.default
    let kept = folder.path + "/db.on-disconnect"
    try files.createDirectory(atPath: kept, withIntermediateDirectories: false)
    func request(_ action: String, _ body: String) -> String {
      let message = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"\(action)\",\"b\":\(body)}}"
      return "\(message.utf8.count)\n\(message)"
    }
    let increment = "{\"p\":\"/n\",\"d\":{\".sv\":{\"increment\":1}}}"
    // A last one that was cut short was never answered.
    let first =
      request("o", increment) + request("o", "{\"p\":\"/me\",\"d\":\"gone\"}") + "70\n{\"t\":\"d\""
    let second =
      request("om", "{\"p\":\"/a\",\"d\":{\"b\":1,\"c\":2}}")
      + request("oc", "{\"p\":\"/a/b\",\"d\":null}")
    try Data(first.utf8).write(to: URL(fileURLWithPath: kept + "/one"))
    try Data(second.utf8).write(to: URL(fileURLWithPath: kept + "/two"))
    for _ in 0..<2 {
      let database = try await Database.open(at: folder.path + "/db")
      let server = try await DatabaseServer.start(serving: database)
      #expect(try await database.reference(withPath: "n").getData().int == 1)
      #expect(try await database.reference(withPath: "me").getData().string == "gone")
      #expect(try await database.reference(withPath: "a").getData().childrenCount == 1)
      #expect(!files.fileExists(atPath: kept))
      #expect(try database.servedEngine().systemNode(at: .root).isEmpty)
      await server.stop()
      try await database.close()
    }
  }

  @Test("cancelling where nothing was registered writes nothing")
  func cancelledNothing() async throws {
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/db")
    let server = try await DatabaseServer.start(serving: database)
    let client = try WebSocketClient(Served(database: database, server: server))
    #expect(try client("oc", "{\"p\":\"/a\",\"d\":null}") == [ok])
    #expect(try !database.servedEngine().takesSecondRoot)
    #expect(try database.servedEngine().head.lsn == .zero)
    await server.stop()
    try await database.close()
  }

  @Test("what a session keeps is put together once most of it is not needed any more")
  func keptTogether() async throws {
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/db")
    let server = try await DatabaseServer.start(serving: database)
    let client = try WebSocketClient(Served(database: database, server: server))
    let text = String(repeating: "x", count: 1_000)
    for number in 0..<200 {
      #expect(try client("o", "{\"p\":\"/me\",\"d\":\"\(text)\(number)\"}") == [ok])
    }
    let kept = try database.servedEngine().systemNode(at: .root)
    // 64 KiB beside twice what is needed.
    #expect(kept.leafCount() <= 70)
    try FileManager.default.copyItem(
      atPath: folder.path + "/db", toPath: folder.path + "/killed")
    await server.stop()
    try await database.close()
    let again = try await Database.open(at: folder.path + "/killed")
    let next = try await DatabaseServer.start(serving: again)
    #expect(try await again.reference(withPath: "me").getData().string == text + "199")
    await next.stop()
    try await again.close()
  }

  @Test("long messages in parts, both ways")
  func chunks() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      let text = String(repeating: "é", count: 40_000)
      let message =
        "{\"t\":\"d\",\"d\":{\"r\":100,\"a\":\"p\",\"b\":{\"p\":\"/a\",\"d\":\"\(text)\"}}}"
      let scalars = Array(message.unicodeScalars)
      let parts = stride(from: 0, to: scalars.count, by: 16_384).map { start in
        var part = String.UnicodeScalarView()
        part.append(contentsOf: scalars[start..<min(start + 16_384, scalars.count)])
        return String(part)
      }
      try client.send("\(parts.count)")
      for part in parts { try client.send(part) }
      #expect(try client.push() == "\"r\":100,\"b\":\(ok)")
      #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":\"\(text)\"}"])
    }
  }

  @Test("a message over the limit is refused by its number, and the connection stays")
  func tooLarge() async throws {
    try await serving({ $0.messageByteLimit = 50_000 }) { served in
      let client = try WebSocketClient(served)
      let part = String(repeating: "x", count: 16_384)
      try client.send("5")
      try client.send(#"{"t":"d","d":{"r":100,"a":"p","b":{"p":"/a","d":""#)
      for _ in 0..<4 { try client.send(part) }
      #expect(
        try client.push()
          == "\"r\":100,\"b\":{\"s\":\"too_big\",\"d\":\"Data to write exceeds the maximum size that can be "
          + "modified with a single request.\"}")
      #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":null}"])
      // Without a number there is no answer to give.
      try client.send("5")
      for _ in 0..<5 { try client.send(part) }
      #expect(try client.closingCode() == 1009)
    }
  }

  @Test("a client that does not read gets the whole value once it does")
  func slowReader() async throws {
    try await serving({ $0.backlogByteLimit = 64 << 10 }) { served in
      let slow = try WebSocketClient(served, receiveBuffer: 4096)
      try slow.request("q", "{\"p\":\"/a\",\"h\":\"\"}")
      let http = try served.client()
      let text = String(repeating: "x", count: 20_000)
      let count = 800
      for number in 1...count {
        #expect(
          try http("PUT", "/a.json?print=silent", "{\"n\":\(number),\"t\":\"\(text)\"}").status
            == 204)
      }
      var last = ""
      var messages = 0
      repeat {
        last = try slow.message()
        messages += 1
      } while !last.contains("\"d\":{\"n\":\(count),")
      #expect(messages < count)
    }
  }

  @Test("frames that break the protocol close the connection with a reason")
  func brokenFrames() async throws {
    try await serving({ $0.messageByteLimit = 1000 }) { served in
      for (opcode, payload, code) in [
        (0x2, Array("x".utf8), 1003), (0x1, [0xFF, 0xFE], 1007), (0x1, Array("{}".utf8), 1008),
        (0x1, [UInt8](repeating: 32, count: 2000), 1009), (0x3, [], 1002), (0x0, [], 1002),
      ] as [(UInt8, [UInt8], Int)] {
        let client = try WebSocketClient(served)
        try client.frame(opcode, payload)
        #expect(try client.closingCode() == code)
      }
      let parts = try WebSocketClient(served)
      try parts.frame(0x1, Array("{\"t\":\"c\",".utf8), isFinal: false)
      try parts.frame(0x9, Array("ping".utf8))
      try parts.frame(0x0, Array("\"d\":{\"t\":\"p\",\"d\":{}}}".utf8))
      let pong = try parts.rawFrame()
      #expect(pong.opcode == 0xA && pong.payload == Array("ping".utf8))
      #expect(try parts.message().contains("\"o\""))
    }
  }

  @Test("bytes at random leave the server as it was", arguments: 0..<3)
  func garbage(seed: UInt64) async throws {
    try await serving { served in
      var generator = SeededGenerator(seed: seed)
      for _ in 0..<40 {
        let client = try WebSocketClient(served)
        let bytes = (0..<generator.below(200)).map { _ in
          UInt8(truncatingIfNeeded: generator.next())
        }
        try? client.send(bytes: bytes)
        try? client.frame(0x1, bytes)
      }
      #expect(try WebSocketClient(served)("p", "{\"p\":\"/alive\",\"d\":true}") == [ok])
    }
  }

  @Test("a stopped server closes its WebSockets after their last writes")
  func stop() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      #expect(try client("o", "{\"p\":\"/end\",\"d\":1}") == [ok])
      await served.server.stop()
      #expect(try client.closingCode() == 1001)
      let value = try await served.database.reference(withPath: "end").getData()
      #expect(value.int == 1)
    }
  }
}
