import DendroPlatform
import Synchronization
import Testing

@testable import DendroServer

@Suite struct SocketLoopTests {
  @Test(
    "others are served between any two turns of clients that always want one", arguments: [1, 50])
  func turns(busyCount: Int) async throws {
    let loop = try SocketLoop()
    try loop.start()
    let answered = AsyncStream<Int>.makeStream()
    var sockets: [Int32] = [-1, -1]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
    let turnCount = TurnCount()
    let honest = HonestClient(sockets[0]) { answered.continuation.yield(turnCount.value) }
    loop.add(honest)
    for _ in 0..<busyCount { loop.add(try BusyClient(turnCount, sockets[1])) }
    var counts: [Int] = []
    for await count in answered.stream.prefix(20) { counts.append(count) }
    loop.end()
    close(sockets[1])
    // Every hundredth turn asks for an answer, which comes before the next one.
    #expect(counts == (1...20).map { $0 * 100 })
  }

  @Test("a client that is closed while it waits for a turn gets none")
  func closed() async throws {
    let loop = try SocketLoop()
    let ended = AsyncStream<Int>.makeStream()
    let client = try ClosingClient { ended.continuation.yield($0) }
    // It is served twice before the first turn.
    loop.add(client)
    loop.wake(client)
    try loop.start()
    for await turnCount in ended.stream.prefix(1) { #expect(turnCount == 0) }
    // What is asked later comes later.
    var sockets: [Int32] = [-1, -1]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
    let answered = AsyncStream<Bool>.makeStream()
    loop.add(HonestClient(sockets[0]) { answered.continuation.yield(true) })
    #expect(write(sockets[1], "x", 1) == 1)
    for await _ in answered.stream.prefix(1) {}
    #expect(client.turnCount.value == 0)
    loop.end()
    close(sockets[1])
  }

  @Test("a client that wants a turn, none, and one again before its turn gets one, as the others")
  func wavering() async throws {
    let loop = try SocketLoop()
    let wavering = try TurningClient([.turn, [], .turn])
    let counts = AsyncStream<Int>.makeStream()
    let steady = try TurningClient([]) { turn in
      if turn == 20 { counts.continuation.yield(wavering.turnCount.value) }
    }
    // It is served three times before the first turn.
    loop.add(wavering)
    loop.wake(wavering)
    loop.wake(wavering)
    loop.add(steady)
    try loop.start()
    for await count in counts.stream.prefix(1) { #expect((19...21).contains(count)) }
    loop.end()
  }

  @Test("the loop reports a lost peer once to a client that waits for nothing")
  func lost() async throws {
    let loop = try SocketLoop()
    var sockets: [Int32] = [-1, -1, -1, -1]
    for pair in [0, 2] {
      let result = sockets[pair...].withUnsafeMutableBufferPointer {
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, $0.baseAddress)
      }
      try #require(result == 0)
    }
    let waiting = WaitingClient(sockets[0])
    loop.add(waiting)
    let answered = AsyncStream<Void>.makeStream()
    loop.add(HonestClient(sockets[2]) { answered.continuation.yield() })
    try loop.start()
    var answers = answered.stream.makeAsyncIterator()
    close(sockets[1])
    for _ in 0..<100 {
      #expect(write(sockets[3], "x", 1) == 1)
      await answers.next()
    }
    // When it is added, and when its peer has gone.
    #expect(waiting.serveCount.value == 2)
    // The loop reports it again when the client waits for something.
    waiting.wantsToRead.store(true, ordering: .relaxed)
    loop.wake(waiting)
    for await _ in waiting.ended.stream {}
    loop.end()
    close(sockets[3])
  }
}

/// Waits for nothing.
private final class WaitingClient: SocketLoop.Client {
  let descriptor: Int32
  let serveCount = TurnCount()
  let wantsToRead = Atomic(false)
  let ended = AsyncStream<Void>.makeStream()

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  func serve(isReadable: Bool) -> SocketLoop.Interest? {
    _ = serveCount.add()
    guard wantsToRead.load(ordering: .relaxed) else { return [] }
    if !isReadable { return .reading }
    close(descriptor)
    ended.continuation.finish()
    return nil
  }

  func end() { close(descriptor) }
}

private final class TurnCount: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  func add() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
}

/// Says when it was asked something.
private final class HonestClient: SocketLoop.Client {
  let descriptor: Int32
  private let answer: @Sendable () -> Void

  init(_ descriptor: Int32, _ answer: @escaping @Sendable () -> Void) {
    self.descriptor = descriptor
    self.answer = answer
  }

  func serve(isReadable: Bool) -> SocketLoop.Interest? {
    var byte: UInt8 = 0
    while recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) == 1 { answer() }
    return .reading
  }

  func end() { close(descriptor) }
}

/// Always asks for another turn, but for what it is to answer first.
private final class TurningClient: SocketLoop.Client {
  let descriptor: Int32
  let turnCount = TurnCount()
  private let firstAnswers: Mutex<[SocketLoop.Interest]>
  private let noteTurn: @Sendable (Int) -> Void

  init(
    _ firstAnswers: [SocketLoop.Interest], noteTurn: @escaping @Sendable (Int) -> Void = { _ in }
  ) throws {
    descriptor = try quietDescriptor()
    self.firstAnswers = Mutex(firstAnswers)
    self.noteTurn = noteTurn
  }

  func serve(isReadable: Bool) -> SocketLoop.Interest? {
    firstAnswers.withLock { $0.isEmpty ? .turn : $0.removeFirst() }
  }

  func takeTurn() -> SocketLoop.Interest? {
    noteTurn(turnCount.add())
    return .turn
  }

  func end() { close(descriptor) }
}

/// Always asks for another turn; every hundredth of all such clients asks the honest one something.
private final class BusyClient: SocketLoop.Client {
  let descriptor: Int32
  private let turns: TurnCount
  private let other: Int32

  init(_ turns: TurnCount, _ other: Int32) throws {
    descriptor = try quietDescriptor()
    self.turns = turns
    self.other = other
  }

  func serve(isReadable: Bool) -> SocketLoop.Interest? { .turn }

  func takeTurn() -> SocketLoop.Interest? {
    if turns.add() % 100 == 0 { _ = write(other, "x", 1) }
    return .turn
  }

  func end() { close(descriptor) }
}

/// Asks for a turn, and closes before it comes.
private final class ClosingClient: SocketLoop.Client {
  let descriptor: Int32
  let turnCount = TurnCount()
  private let ended: @Sendable (Int) -> Void
  private let isSecond = Atomic(false)

  init(_ ended: @escaping @Sendable (Int) -> Void) throws {
    descriptor = try quietDescriptor()
    self.ended = ended
  }

  func serve(isReadable: Bool) -> SocketLoop.Interest? {
    if isSecond.exchange(true, ordering: .relaxed) {
      close(descriptor)
      ended(turnCount.value)
      return nil
    }
    return [.reading, .turn]
  }

  func takeTurn() -> SocketLoop.Interest? {
    _ = turnCount.add()
    return [.reading, .turn]
  }

  func end() { close(descriptor) }
}

/// A socket on which nothing happens.
private func quietDescriptor() throws -> Int32 {
  let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
  try #require(descriptor >= 0)
  return descriptor
}
