import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Testing

@testable import DendroCluster

/// Each statement alone on which it rests that servers never acknowledge different writes with one number.
@Suite(
  "What PostgreSQL decides", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct StatementTests {
  private let postgres: PostgresServer
  private let first: ClusterSession
  private let second: ClusterSession

  init() throws {
    let postgres = try PostgresServer()
    func session(_ number: UInt8) throws -> ClusterSession {
      var settings = ClusterSettings(
        address: postgres.address, namespace: "shop",
        serverID: ServerID(bytes: Array(repeating: number, count: 16)))
      settings.statementTimeout = .seconds(20)
      return try ClusterSession(
        settings, try Interruption(), newClusterID: Array(repeating: 7, count: 16))
    }
    self.postgres = postgres
    first = try session(1)
    second = try session(2)
  }

  // MARK: The log

  private func token(_ number: UInt8) -> [UInt8] { Array(repeating: number, count: 16) }

  /// A chain that no log has.
  private func chain(_ number: UInt8) throws -> LogChain {
    try #require(LogChain(bytes: Array(repeating: number, count: 32)))
  }

  /// A batch of one write behind a position.
  private func batch(
    _ epoch: Epoch, behind before: LogPosition, _ number: UInt8
  ) throws -> SharedBatch {
    SharedBatch(
      epoch: epoch, before: before,
      after: LogPosition(lsn: before.lsn.next, chain: try chain(number)), body: [number])
  }

  private func append(_ batch: SharedBatch, _ session: ClusterSession) throws -> Bool {
    try session.append(batch, timeout: .seconds(20))
  }

  private func bodies() throws -> [[UInt8]] {
    try first.batches(behind: .zero).map(\.body)
  }

  @Test("of two servers that begin an epoch behind the same one, one does")
  func takingOver() throws {
    let start = try first.head()
    let (epoch, end) = try #require(try first.takeOver(from: start.epoch, token: token(1)))
    #expect(epoch == Epoch(number: 1, token: token(1)))
    #expect(end == start.position)
    #expect(try second.takeOver(from: start.epoch, token: token(2)) == nil)
    // The same number, of one that believes that it has begun.
    let other = Epoch(number: 1, token: token(2))
    #expect(try second.takeOver(from: other, token: token(3)) == nil)
    #expect(try second.head().epoch == epoch)
    #expect(try second.takeOver(from: epoch, token: token(2))?.epoch.number == 2)
  }

  @Test("a batch is appended once, in the epoch of its leader, behind the log that it follows")
  func appending() throws {
    let start = try first.head()
    let (epoch, end) = try #require(try first.takeOver(from: start.epoch, token: token(1)))
    let one = try batch(epoch, behind: end, 1)
    for other in [
      start.epoch, Epoch(number: 1, token: token(2)), Epoch(number: 2, token: token(1)),
    ] {
      #expect(try !append(try batch(other, behind: end, 9), second))
    }
    #expect(try append(one, first))
    #expect(try first.stands(one) == true)
    // Sent again, since its answer was missing.
    #expect(try !append(one, first))
    #expect(try second.stands(one) == true)
    let lost = LogPosition(lsn: one.after.lsn, chain: try chain(8))
    #expect(try !append(try batch(epoch, behind: lost, 9), first))
    let ahead = LogPosition(lsn: one.after.lsn.next, chain: one.after.chain)
    #expect(try !append(try batch(epoch, behind: ahead, 9), first))
    #expect(try bodies() == [[1]])

    let (next, _) = try #require(try second.takeOver(from: epoch, token: token(2)))
    let late = try batch(epoch, behind: one.after, 2)
    #expect(try !append(late, first))
    #expect(try first.stands(late) == false)
    // It has the same number and the same end, and is of another leader.
    let two = try batch(next, behind: one.after, 2)
    #expect(try append(two, second))
    #expect(try first.stands(late) == false)
    #expect(try second.stands(two) == true)
    #expect(try bodies() == [[1], [2]])
    #expect(try first.head().position == two.after)
  }

  @Test("only who leads leaves that to another one")
  func resigning() throws {
    let start = try first.head()
    let (epoch, _) = try #require(try first.takeOver(from: start.epoch, token: token(1)))
    let own = ServerID(bytes: Array(repeating: 1, count: 16))
    try second.resign(start.epoch)
    try second.resign(Epoch(number: 1, token: token(2)))
    try second.resignAsSuccessor()
    #expect(try second.head().leader == own)
    try first.resign(epoch, to: ServerID(bytes: Array(repeating: 2, count: 16)))
    try first.resignAsSuccessor()
    #expect(try first.head().leader == ServerID(bytes: Array(repeating: 2, count: 16)))
    try second.resignAsSuccessor()
    #expect(try first.head().leader == .none)
  }

  // MARK: What is passed on

  private func row(_ numbers: ClosedRange<UInt64>) throws -> ArraySlice<ForwardedWrite> {
    let forwarding = Forwarding(client: second.client, limits: Forwarding.Limits())
    forwarding.setOpen(true)
    forwarding.begin(epoch: 1)
    for number in 1...numbers.upperBound {
      let write = EncodedWrite(.set(try Path(parsing: "a"), Node(.integer(Int64(number)))))
      #expect(forwarding.add(write) { _ in })
    }
    return try #require(forwarding.nextRow()).filter { numbers.contains($0.number) }[...]
  }

  private func left(_ epoch: Int64) throws -> [ClosedRange<UInt64>] {
    try first.requests(epoch: epoch).map { $0.number...($0.number + UInt64($0.count) - 1) }
  }

  @Test("a leader sees the rows of its own epoch; one that is there stays as it is until the next")
  func rows() throws {
    try second.request(try row(1...2), of: second.client, epoch: 3)
    #expect(try left(3) == [1...2])
    #expect(try left(2).isEmpty)
    #expect(try left(4).isEmpty)
    // Left again by a server that got no answer: the leader may have it in hand.
    try second.request(try row(1...4), of: second.client, epoch: 3)
    #expect(try left(3) == [1...2])
    try second.request(try row(1...4), of: second.client, epoch: 2)
    #expect(try left(3) == [1...2])
    let taken = try #require(try first.requests(epoch: 3).first)
    #expect(try first.body(of: taken, epoch: 3) == RequestBody.encode(try row(1...2)))

    // The next leader gets what is waited for still, and the one before does not remove that.
    try second.request(try row(1...3), of: second.client, epoch: 4)
    #expect(try left(3).isEmpty)
    #expect(try left(4) == [1...3])
    #expect(try first.body(of: taken, epoch: 3) == nil)
    try first.removeRequest(taken, epoch: 3)
    #expect(try left(4) == [1...3])
    try first.forgetRequests(before: 4)
    #expect(try left(4) == [1...3])
    try first.removeRequest(taken, epoch: 4)
    #expect(try left(4).isEmpty)
  }

  private func answers(_ epoch: Int64) throws -> [String] {
    try second.answers(to: second.client, epoch: epoch).map {
      "\($0.number) \($0.lsn) \($0.answer)"
    }
  }

  private func say(_ number: UInt64, _ answer: ForwardedAnswer, at lsn: UInt64, epoch: Int64) throws
  {
    let said = Requests.Answer(
      client: second.client, number: number, answer: answer, lsn: LogSequenceNumber(lsn))
    try first.answer([said][...], epoch: epoch)
  }

  @Test("what a leader says stays as it is in its epoch, and takes the place of earlier leaders'")
  func saying() throws {
    try say(1, .nothing, at: 5, epoch: 3)
    let one = try answers(3)
    #expect(one == ["1 5 \(ForwardedAnswer.nothing)"])
    try say(1, .stale, at: 6, epoch: 3)
    try say(1, .stale, at: 6, epoch: 2)
    #expect(try answers(3) == one)
    #expect(try answers(2).isEmpty)
    try say(1, .stale, at: 7, epoch: 4)
    #expect(try answers(3).isEmpty)
    #expect(try answers(4) == ["1 7 \(ForwardedAnswer.stale)"])
    // Who has noted the answer of an earlier leader removes that alone.
    let seen = try second.answers(to: second.client, epoch: 4)
    try second.forget(seen, to: second.client, epoch: 3)
    #expect(try answers(4).count == 1)
    try first.forgetRequests(before: 4)
    #expect(try answers(4).count == 1)
    try second.forget(seen, to: second.client, epoch: 4)
    #expect(try answers(4).isEmpty)
  }
}
