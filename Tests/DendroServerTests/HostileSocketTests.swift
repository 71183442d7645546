import Dendro
import DendroServer
import Testing

/// WebSockets whose clients send what takes memory, and nothing else.
@Suite("serving: hostile WebSockets")
struct HostileSocketTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let ping = "{\"t\":\"c\",\"d\":{\"t\":\"p\",\"d\":{}}}"
  private let pong = "{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":{}}}"

  @Test(
    "a client that reads no answers to its pings is not read from, and gets all of them once it does"
  )
  func pings() async throws {
    try await serving { served in
      let client = try WebSocketClient(served, receiveBuffer: 4096)
      let payload = [UInt8](repeating: 7, count: 125)
      let frame = WebSocketClient.frame(0x9, payload)
      let limit = 32 << 20
      let sentCount = try client.flood(frame, limit: limit)
      #expect(sentCount < limit)
      for _ in 0..<sentCount / frame.count {
        let (opcode, answer) = try client.rawFrame()
        try #require(opcode == 0xA && answer == payload)
      }
      // The last one was sent in part.
      try client.send(bytes: Array(frame[(sentCount % frame.count)...]))
      #expect(try client.rawFrame().payload == payload)
      #expect(try client("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
    }
  }

  @Test("a message may come in any number of fragments, and its limit is that of all together")
  func fragments() async throws {
    try await serving({ $0.messageByteLimit = 1000 }) { served in
      let client = try WebSocketClient(served)
      let padded = Array(ping.utf8) + [UInt8](repeating: 32, count: 1000 - ping.utf8.count)
      for (index, byte) in padded.enumerated() {
        try client.frame(index == 0 ? 0x1 : 0x0, [byte], isFinal: false)
        if index % 100 == 0 { try client.frame(0x0, [], isFinal: false) }
      }
      try client.frame(0x0, [])
      #expect(try client.message() == pong)
      for sizes in [[1001], [600, 401], [999, 1, 1]] {
        let other = try WebSocketClient(served)
        for (index, size) in sizes.enumerated() {
          try? other.frame(
            index == 0 ? 0x1 : 0x0, [UInt8](repeating: 32, count: size),
            isFinal: index == sizes.count - 1)
        }
        #expect(try other.closingCode() == 1009, "\(sizes)")
      }
      try client.send(ping)
      #expect(try client.message() == pong)
    }
  }

  @Test("text that is cut within a character is put together, and text that is none is refused")
  func cutCharacters() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      let put = Array(
        "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"p\",\"b\":{\"p\":\"/a\",\"d\":\"é😀\"}}}".utf8)
      for (index, byte) in put.enumerated() {
        try client.frame(index == 0 ? 0x1 : 0x0, [byte], isFinal: index == put.count - 1)
      }
      #expect(try client.push() == "\"r\":1,\"b\":\(ok)")
      #expect(try served.client()("GET", "/a.json").body == "\"é😀\"")
      try client.frame(0x1, [0xC3], isFinal: false)
      try client.frame(0x0, [0x28])
      #expect(try client.closingCode() == 1007)
    }
  }
}
