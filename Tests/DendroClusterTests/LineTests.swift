import Dendro
import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite("Lines between servers")
struct LineTests {
  /// Notes what comes.
  private final class Ear: Line.Handler, LineLeader {
    private let state = Mutex((texts: [String](), lines: [Line](), endCount: 0))
    private static let epoch = Epoch(number: 1, token: [7])

    var texts: [String] { state.withLock { $0.texts } }
    var lines: [Line] { state.withLock { $0.lines } }
    var endCount: Int { state.withLock { $0.endCount } }

    func welcome(_ line: Line, client: [UInt8], epoch: Epoch) -> Bool {
      guard epoch == Self.epoch else { return false }
      line.hand(to: self)
      line.send(.welcome(epoch))
      state.withLock { $0.lines.append(line) }
      return true
    }

    func take(_ message: LineMessage, from line: Line) -> Bool {
      let text =
        switch message {
        case .request(let number, _, let body): "\(number): \(body.count)"
        case .welcome(let epoch): "welcome \(epoch.number)"
        default: "\(message)"
        }
      state.withLock { $0.texts.append(text) }
      return true
    }

    func lineEnded(_ line: Line) { state.withLock { $0.endCount += 1 } }
  }

  private let server: ServerLines
  private let caller: ServerLines
  private let leader = Ear()
  private let follower = Ear()

  init() throws {
    server = try ServerLines(listeningAt: "127.0.0.1", port: 0, advertisedHost: "127.0.0.1")
    caller = try ServerLines(listeningAt: "localhost", port: 0, advertisedHost: "localhost")
    server.add(leader, of: "shop")
  }

  private func hello(
    _ namespace: String = "shop", epoch: Int64 = 1, token: [UInt8] = [7],
    version: UInt64 = LineMessage.version
  ) -> LineMessage {
    .hello(
      version: version, namespace: namespace, client: [1],
      epoch: Epoch(number: epoch, token: token))
  }

  @Test("messages of all lengths arrive whole and in their order, both ways")
  func messages() async throws {
    let address = try #require(server.address)
    let line = try #require(try caller.call(address, hello: hello(), follower))
    try await eventually("it is welcome") { follower.texts == ["welcome 1"] }
    let back = try #require(leader.lines.first)
    let lengths = [0, 1, 200, 16_384, 16_385, 1_000_000, 3, 9_000_000, 5]
    for (number, length) in lengths.enumerated() {
      let message = LineMessage.request(
        number: UInt64(number + 1), count: 1, body: Array(repeating: 1, count: length))
      line.send(message)
      back.send(message)
    }
    let expected = lengths.enumerated().map { "\($0.offset + 1): \($0.element)" }
    try await eventually("all have come") {
      leader.texts.count >= lengths.count && follower.texts.count > lengths.count
    }
    #expect(leader.texts == expected)
    #expect(Array(follower.texts.dropFirst()) == expected)
    line.close()
    try await eventually("both hear of the end") {
      follower.endCount == 1 && leader.endCount == 1
    }
    #expect(!line.send(.ping))
  }

  @Test("whoever has another key, asks for another epoch, or leads nothing, gets no line")
  func refused() async throws {
    let address = try #require(server.address)
    let wrongKey = try #require(
      LineAddress(address.text, key: Array(repeating: 0, count: LineAddress.keyByteCount)))
    for (address, hello) in [
      (wrongKey, hello()), (address, hello(epoch: 2)), (address, hello("blog")),
      (address, hello(token: [8])), (address, hello(version: 2)),
      (address, .welcome(Epoch(number: 1, token: [7]))), (address, .ping),
    ] {
      let ear = Ear()
      let line = try #require(try caller.call(address, hello: hello, ear))
      if case .ping = hello { continue }
      try await eventually("the line ends") { ear.endCount == 1 }
      #expect(line.hasEnded)
      #expect(ear.texts.isEmpty)
    }
    #expect(leader.lines.isEmpty)
    #expect(leader.texts.isEmpty)
  }

  @Test("strangers that say nothing, or nonsense, keep nobody out")
  func strangers() async throws {
    let address = try #require(server.address)
    var sockets: [Int32] = []
    defer { for socket in sockets { DendroPlatform.close(socket) } }
    for number in 0..<100 {
      let socket = try LineSocket.connect("127.0.0.1", port: address.port, patience: .seconds(5))
      sockets.append(socket)
      if number % 2 == 0 { _ = write(socket, "GET / HTTP/1.1\r\n\r\n", 18) }
    }
    // Those that say nothing are left after some seconds; until then there may be no room.
    try await eventually("a server gets in") {
      let ear = Ear()
      let line = try caller.call(address, hello: hello(), ear)
      let deadline = ContinuousClock.now + .milliseconds(500)
      while ear.texts.isEmpty, ear.endCount == 0, .now < deadline { usleep(1000) }
      defer { line?.close() }
      return ear.texts == ["welcome 1"]
    }
  }

  @Test("an end that takes nothing is left before it fills the memory")
  func deaf() async throws {
    let address = try #require(server.address)
    let line = try #require(try caller.call(address, hello: hello(), follower))
    try await eventually("it is welcome") { !follower.texts.isEmpty }
    let back = try #require(leader.lines.first)
    let message = LineMessage.request(
      number: 1, count: 1, body: Array(repeating: 1, count: 16 << 20))
    // Faster than they can be sent.
    while back.send(frame: message.frame) {}
    try await eventually("the line ends") { follower.endCount == 1 && leader.endCount == 1 }
    #expect(line.hasEnded)
  }

  @Test("addresses of IPv6 and names are read as they are written")
  func addresses() throws {
    let key = Array(repeating: 1 as UInt8, count: LineAddress.keyByteCount)
    for (text, host, port) in [
      ("a.example:80", "a.example", 80), ("::1:9000", "::1", 9000),
      ("10.0.0.1:65535", "10.0.0.1", 65535),
    ] as [(String, String, UInt16)] {
      let address = try #require(LineAddress(text, key: key))
      #expect((address.host, address.port) == (host, port))
      #expect(address.text == text)
    }
    for text in ["", "a", ":1", "a:", "a:0", "a:65536", "a:b"] {
      #expect(LineAddress(text, key: key) == nil, "\(text)")
    }
    #expect(LineAddress("a:1", key: [1]) == nil)
  }
}
