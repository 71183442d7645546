import DendroPlatform
import DendroProtocol
import DendroTree
import Dispatch
import Synchronization
import Testing

@testable import DendroServer

/// Messages of which frames are made elsewhere than on the thread that serves all sockets.
@Suite("serving: long messages", .timeLimit(.minutes(5)))
struct LongMessageTests {
  private static let text = String(repeating: "é😀x", count: 40_000)

  /// A text that is made while it is sent: of many children and of strings that are longer than a frame.
  private static func value() throws -> AnswerText {
    let children = (0..<2_000).map { "\"k\($0)\":\"value \($0)\"" }
    let json = "{\"a\":\"\(text)\",\(children.joined(separator: ",")),\"z\":\"\(text)\"}"
    var message = AnswerText("[")
    message.append(try JSONParser.parse(json), JSONStyle())
    message.append("]")
    return message
  }

  @Test("a message has the same frames, in pieces of any size", arguments: [1, 10_000, 1 << 20])
  func pieces(byteCount: Int) throws {
    var text = try Self.value()
    var message = OutgoingMessage(MessageFrames(text))
    var frames: [[UInt8]] = []
    while !message.isAtEnd {
      message.make(byteCount: byteCount)
      while let frame = message.popFirst() { frames.append(frame) }
    }
    #expect(frames.count > 10)
    #expect(frames == MessageFrames.split(text.rest()))
    #expect(message.byteCount == 0)
  }

  @Test("while a message is made its client is heard, and what is behind it waits for it")
  func elsewhere() async throws {
    let held = try HeldConnection()
    var text = try Self.value()
    held.connection.send(text)
    held.connection.send(AnswerText("behind"))
    held.start()
    var heard = held.heard.makeAsyncIterator()
    for number in 0..<3 {
      try held.client.send("message \(number)")
      #expect(await heard.next() == Array("message \(number)".utf8))
      #expect(!held.client.hasInput)
    }
    held.pieces.release()
    #expect(try held.client.message() == String(decoding: text.rest(), as: UTF8.self))
    #expect(try held.client.message() == "behind")
    held.connection.close(1000)
    #expect(try held.client.closingCode() == 1000)
    #expect(await heard.next() == nil)
    #expect(held.connection.account.byteCount == 0)
  }

  @Test("a message up to 64 KiB is made at once", arguments: [16_385, 40_000, 65_536])
  func short(byteCount: Int) throws {
    let held = try HeldConnection()
    let text = String(repeating: "x", count: byteCount)
    held.connection.send(AnswerText(text))
    held.connection.send(AnswerText("behind"))
    held.start()
    #expect(try held.client.message() == text)
    #expect(try held.client.message() == "behind")
  }

  enum End: CaseIterable { case close, drop, loop }

  @Test(
    "a connection ends although a message is made for it, and nothing of it is kept",
    arguments: End.allCases)
  func ended(by end: End) async throws {
    let held = try HeldConnection()
    held.connection.send(try Self.value())
    held.start()
    var heard = held.heard.makeAsyncIterator()
    try held.client.send("message")
    #expect(await heard.next() == Array("message".utf8))
    switch end {
    case .close: try held.client.frame(0x8, [0x03, 0xE8])
    case .drop: held.connection.drop()
    case .loop: held.loop.end()
    }
    #expect(try held.client.closingCode() == [.close: 1000, .drop: 1013, .loop: 1001][end])
    #expect(throws: HTTPClient.Ended.self) { try held.client.rawFrame() }
    #expect(await heard.next() == nil)
    #expect(held.connection.account.byteCount == 0)
    weak let connection = held.connection
    let pieces = held.pieces
    held.forget()
    pieces.release()
    while connection != nil { await Task.yield() }
  }
}

/// A connection whose client is the test, and for which frames are made elsewhere when the test says so.
private final class HeldConnection {
  let loop: SocketLoop
  let pieces = HeldPieces()
  let client: WebSocketClient
  /// What the client has sent. It ends with the connection.
  let heard: AsyncStream<[UInt8]>
  private let receiver: Receiver
  private var own: WebSocketConnection?

  init() throws {
    let loop = try SocketLoop()
    try loop.start()
    var sockets: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
    client = WebSocketClient(upgraded: HTTPClient(socket: sockets[1]))
    let address = try #require(ClientAddress("127.0.0.1"))
    let account = SessionAccount(address, limit: 1 << 30, SessionAccounts(limit: 1 << 30))
    own = WebSocketConnection(
      sockets[0], loop, FairQueue(threadCount: 1) { [pieces] in pieces.add($0) }, early: [],
      WireLimits(DatabaseServerOptions()), account, ServerFigures())
    self.loop = loop
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
    heard = stream
    receiver = Receiver(continuation)
  }

  deinit { loop.end() }

  var connection: WebSocketConnection {
    guard let own else { preconditionFailure("the connection was forgotten") }
    return own
  }

  func start() { connection.start(receiver) }

  func forget() { own = nil }
}

/// Work that is done when the test says so.
private final class HeldPieces: Sendable {
  private let held = Mutex<[FairQueue.Work]?>([])

  func add(_ piece: @escaping FairQueue.Work) {
    let isReleased = held.withLock { held in
      held?.append(piece)
      return held == nil
    }
    if isReleased { DispatchQueue.global().async(execute: piece) }
  }

  func release() {
    let pieces = held.withLock { held in
      defer { held = nil }
      return held ?? []
    }
    for piece in pieces { DispatchQueue.global().async(execute: piece) }
  }
}

private final class Receiver: WireReceiver {
  let isFull = false
  private let heard: AsyncStream<[UInt8]>.Continuation

  init(_ heard: AsyncStream<[UInt8]>.Continuation) { self.heard = heard }

  func handle(_ message: [UInt8]) -> Bool {
    heard.yield(message)
    return true
  }
  func refuseTooLarge(_ number: Int64) {}
  func outboxIsEmpty() {}
  func leave() { heard.finish() }
}
