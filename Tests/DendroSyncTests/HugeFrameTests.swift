import Dendro
import Testing

@testable import DendroSync

/// Servers that send more than a client can keep.
@Suite("synced databases: huge frames")
struct HugeFrameTests {
  /// What such a server sends.
  enum Flood: String, CaseIterable, Sendable {
    case frameOf4EiB
    case frameOfNegativeLength
    case frameAboveLimit
    case fragments
    case tinyFragments
    case parts
    case binary

    /// What the client says about it.
    var reason: String {
      switch self {
      case .frameOf4EiB, .frameOfNegativeLength, .frameAboveLimit, .fragments:
        "the server breaks the protocol of WebSockets"
      case .tinyFragments: "the server sends a message in too many frames"
      case .parts: "the server sends a message that is too large"
      case .binary: "the server sends what is no text"
      }
    }

    func send(over server: ScriptedServer, limit: Int) throws {
      let part = [UInt8](repeating: UInt8(ascii: "x"), count: 16 << 10)
      switch self {
      case .frameOf4EiB: try server.write([0x81, 127, 0x40, 0, 0, 0, 0, 0, 0, 0, 7])
      case .frameOfNegativeLength: try server.write([0x81, 127, 0x80, 0, 0, 0, 0, 0, 0, 0])
      case .frameAboveLimit:
        let length = (0..<8).map { UInt8(truncatingIfNeeded: (limit + 1) >> (56 - 8 * $0)) }
        try server.write([0x81, 127] + length + [7])
      case .fragments:
        for index in 0...limit / part.count {
          try server.write([index == 0 ? 0x01 : 0x00, 126, 0x40, 0x00] + part)
        }
      case .tinyFragments:
        let fragment: [UInt8] = [0x00, 1, UInt8(ascii: "x")]
        try server.write([0x01, 1, UInt8(ascii: "x")])
        try server.write(Array(repeatElement(fragment, count: 70_000).joined()))
      case .parts:
        try server.send(0x1, Array("999999".utf8))
        for _ in 0...limit / part.count { try server.send(0x1, part) }
      case .binary: try server.send(0x2, [7])
      }
    }
  }

  @Test(
    "a frame or a message that is too large ends the connection, and the next one goes on",
    arguments: Flood.allCases)
  func flood(_ flood: Flood) async throws {
    let server = try ScriptedServer()
    let log = LogLines()
    var limits = SyncLimits()
    limits.messageByteLimit = 1 << 20
    let database = synced(server.port, limits: limits) { $0.logging = { log.note($0) } }
    let viewer = Viewer(database)
    try server.accept()
    viewer.listen("v", database.reference(withPath: "a"))
    _ = try server.request()
    do {
      try flood.send(over: server, limit: limits.messageByteLimit)
      try server.framesUntilEnd()
    } catch let failure as ScriptedServer.Failure where failure.isEnd {
      // It may leave while the server still sends.
    }
    try await goesOn(server, database, viewer)
    try await eventually { log.contains(flood.reason) }
    try await database.close()
  }

  @Test("a message of the largest size comes through in frames, fragments and parts")
  func largest() async throws {
    let server = try ScriptedServer()
    var limits = SyncLimits()
    limits.messageByteLimit = 1 << 20
    let database = synced(server.port, limits: limits)
    let viewer = Viewer(database)
    try server.accept()
    viewer.listen("v", database.reference(withPath: "a"))
    let (number, _, _) = try server.request()
    try server.answer(number)
    _ = try await viewer.take(1)
    let (head, tail) = (#"{"t":"d","d":{"a":"d","b":{"p":"a","d":"#, "}}}")
    for round in 1...3 {
      let space = limits.messageByteLimit - head.utf8.count - tail.utf8.count - 1
      let text = head + "\(round)" + String(repeating: " ", count: space) + tail
      let bytes = Array(text.utf8)
      switch round {
      case 1: try server.send(0x1, bytes)
      case 2:
        let half = bytes.count / 2
        try server.write([0x01, 127, 0, 0, 0, 0, 0, 0x08, 0, 0] + bytes[..<half])
        try server.write([0x80, 127, 0, 0, 0, 0, 0, 0x08, 0, 0] + bytes[half...])
      default: try server.send(text)
      }
      #expect(try await viewer.take(1)["v"]?.last == .value(try node("\(round)")))
    }
    try await database.close()
  }

  @Test("a server that pings without end, and reads no answers, is left")
  func pings() async throws {
    let server = try ScriptedServer()
    let log = LogLines()
    let database = synced(server.port) { $0.logging = { log.note($0) } }
    let viewer = Viewer(database)
    try server.accept()
    viewer.listen("v", database.reference(withPath: "a"))
    _ = try server.request()
    let ping = [0x89, 125] + [UInt8](repeating: 7, count: 125)
    let pings = Array(repeatElement(ping, count: 1000).joined())
    #expect(throws: ScriptedServer.Failure.self) {
      // More than the buffers of both systems hold.
      for _ in 0..<2000 { try server.write(pings) }
    }
    try await goesOn(server, database, viewer)
    try await eventually { log.contains("the server reads no answers to its pings") }
    try await database.close()
  }

  private func goesOn(
    _ server: ScriptedServer, _ database: Database, _ viewer: Viewer
  ) async throws {
    try server.accept()
    let (number, action, _) = try server.request()
    #expect(action == "q")
    try server.push("d", #"{"p":"a","d":1}"#)
    try server.answer(number)
    #expect(try await viewer.take(1) == ["v": [.value(try node("1"))]])
  }
}
