import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import Testing

@testable import DendroCluster

@Suite("Lines of servers that follow, as the leader has them")
struct FollowerLineTests {
  private let epoch = Epoch(number: 2, token: [7])
  private let requests: Requests
  private let server: ServerLines
  private let caller: ServerLines

  private final class Ear: Line.Handler {
    private let state = Mutex((isWelcome: false, hasEnded: false))

    var isWelcome: Bool { state.withLock { $0.isWelcome } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func take(_ message: LineMessage, from line: Line) -> Bool {
      if case .welcome = message { state.withLock { $0.isWelcome = true } }
      return true
    }

    func lineEnded(_ line: Line) { state.withLock { $0.hasEnded = true } }
  }

  init() throws {
    server = try ServerLines(listeningAt: "127.0.0.1")
    caller = try ServerLines(listeningAt: "127.0.0.1")
    let engine = try Engine.open(at: "/db", environment: SimulatedDisk(seed: 1).environment)
    requests = Requests(epoch, engine, handler: { (nil, false) }, changed: {})
    server.add(requests, of: "shop")
  }

  /// - Parameter client: has so many bytes.
  private func call(_ epoch: Epoch, client byteCount: Int = 24) throws -> (line: Line, ear: Ear) {
    let ear = Ear()
    let hello = LineMessage.hello(
      version: LineMessage.version, namespace: "shop",
      client: Array(repeating: 1, count: byteCount), epoch: epoch)
    let address = try #require(server.address)
    return (try #require(try caller.call(address, hello: hello, ear)), ear)
  }

  @Test("the leader takes lines of its own epoch alone, and of names that servers have")
  func welcome() async throws {
    let long = WriteOrigin.clientByteCountMax + 1
    for (epoch, count) in [
      (Epoch(number: 1, token: [7]), 24), (Epoch(number: 3, token: [7]), 24),
      (Epoch(number: 2, token: [8]), 24), (epoch, long),
    ] {
      let (_, ear) = try call(epoch, client: count)
      try await eventually("the line ends") { ear.hasEnded }
      #expect(!ear.isWelcome)
    }
    let (_, ear) = try call(epoch)
    try await eventually("it is welcome") { ear.isWelcome }
    #expect(requests.lineCount == 1)
    requests.end()
    try await eventually("the line ends") { ear.hasEnded }
    let (_, late) = try call(epoch)
    try await eventually("a leader that is at its end takes none") { late.hasEnded }
    #expect(!late.isWelcome)
  }
}
