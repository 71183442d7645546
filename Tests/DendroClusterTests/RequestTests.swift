import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Synchronization
import Testing

@testable import DendroCluster

@Suite("Writes that are passed on")
struct RequestTests {
  private let forwarding: Forwarding

  init() {
    var limits = Forwarding.Limits()
    limits.count = 5
    limits.rowCount = 2
    forwarding = Forwarding(client: Array(0..<24), limits: limits)
    forwarding.setOpen(true)
  }

  /// What completions got.
  private final class Results: Sendable {
    private let results = Mutex<[String]>([])
    var all: [String] { results.value }

    func completion(_ name: String) -> Completion {
      { result in
        let text =
          switch result {
          case .success(let lsn): lsn.map { "\($0)" } ?? "nothing"
          case .failure(.undecided): "undecided"
          case .failure: "refused"
          }
        self.results.withLock { $0.append(name + " " + text) }
      }
    }
  }

  private func write(_ value: Int) throws -> EncodedWrite {
    EncodedWrite(.set(try Path(parsing: "a"), Node(.integer(Int64(value)))))
  }

  @Test("a row is sent as it is until it is known to be there, and goes to the next epoch whole")
  func rows() throws {
    let results = Results()
    forwarding.begin(epoch: 3)
    for value in 1...3 { #expect(forwarding.add(try write(value), results.completion("\(value)"))) }
    let first = try #require(forwarding.nextRow())
    #expect(first.map(\.number) == [1, 2])
    #expect(forwarding.add(try write(4), results.completion("4")))
    #expect(forwarding.nextRow()?.map(\.number) == [1, 2])
    forwarding.sent(first, epoch: 3)
    #expect(forwarding.nextRow()?.map(\.number) == [3, 4])
    forwarding.begin(epoch: 3)
    #expect(forwarding.nextRow()?.map(\.number) == [3, 4])
    // One has come back in the log of the epoch, the other has not.
    let completion = forwarding.completion(
      of: WriteOrigin(client: forwarding.client, number: 1)
    ) { .empty }
    completion?(.success(nil))
    forwarding.begin(epoch: 4)
    #expect(forwarding.nextRow()?.map(\.number) == [2, 3])
    forwarding.note([answer(2, .noData, at: 9)], epoch: 4)
    forwarding.endAnswered(upTo: LogSequenceNumber(9))
    #expect(results.all == ["1 nothing", "2 refused"])
    #expect(forwarding.completion(of: WriteOrigin(client: [1], number: 3)) { .empty } == nil)
  }

  private func answer(
    _ number: UInt64, _ answer: ForwardedAnswer, at lsn: UInt64
  ) -> Forwarding.Answer {
    Forwarding.Answer(number: number, answer: answer, lsn: LogSequenceNumber(lsn))
  }

  @Test("a row whose answer was missing does not keep back what comes behind it, once it was made")
  func missingAnswer() throws {
    let results = Results()
    for value in 1...2 { #expect(forwarding.add(try write(value), results.completion("\(value)"))) }
    #expect(forwarding.nextRow()?.map(\.number) == [1, 2])
    #expect(forwarding.add(try write(3), results.completion("3")))
    // The row is there: the log shows it.
    for number in 1...2 as ClosedRange<UInt64> {
      let origin = WriteOrigin(client: forwarding.client, number: number)
      forwarding.completion(of: origin) { .empty }?(.success(LogSequenceNumber(number)))
    }
    #expect(forwarding.nextRow()?.map(\.number) == [3])
    #expect(results.all == ["1 1", "2 2"])
  }

  @Test(
    "what waits behind a row whose answer is missing is refused in time, and clients hear of the row"
  )
  func patience() throws {
    let results = Results()
    var limits = Forwarding.Limits()
    limits.rowCount = 1
    limits.wait = .zero
    limits.patience = .zero
    let forwarding = Forwarding(client: [1], limits: limits)
    forwarding.setOpen(true)
    let request = SharedRequest(try write(1), context: [1])
    func add(_ name: String) -> Bool {
      forwarding.add(.request(request)) { outcome, _ in
        switch outcome {
        case .made(let lsn): results.completion(name)(.success(lsn))
        case .failed(let error): results.completion(name)(.failure(error))
        case .answered, .stale: results.completion(name)(.success(nil))
        }
      }
    }
    #expect(add("1"))
    _ = forwarding.nextRow()
    #expect(add("2"))
    forwarding.expire()
    #expect(results.all == ["2 refused"])
    forwarding.giveUp()
    forwarding.giveUp()
    #expect(results.all == ["2 refused", "1 undecided"])
    // It stays on its way.
    #expect(forwarding.nextRow()?.map(\.number) == [1])
    forwarding.close("the end")
    #expect(results.all.count == 2)
  }

  @Test("the leader has so many rows at once; what comes meanwhile makes longer ones")
  func outstandingRows() throws {
    let results = Results()
    var limits = Forwarding.Limits()
    limits.outstandingRowCount = 2
    let forwarding = Forwarding(client: [1], limits: limits)
    forwarding.setOpen(true)
    forwarding.begin(epoch: 1)
    for value in 1...2 {
      #expect(forwarding.add(try write(value), results.completion("\(value)")))
      let row = try #require(forwarding.nextRow())
      #expect(row.map(\.number) == [UInt64(value)])
      forwarding.sent(row, epoch: 1)
    }
    for value in 3...5 { #expect(forwarding.add(try write(value), results.completion("\(value)"))) }
    #expect(forwarding.nextRow() == nil)
    let origin = WriteOrigin(client: [1], number: 2)
    forwarding.completion(of: origin) { .empty }?(.success(LogSequenceNumber(1)))
    #expect(forwarding.nextRow()?.map(\.number) == [3, 4, 5])
    // All go to the next leader.
    forwarding.begin(epoch: 2)
    let first = try #require(forwarding.nextRow())
    #expect(first.map(\.number) == [1])
    forwarding.sent(first, epoch: 2)
    // The leader counts on from a row's first number.
    #expect(forwarding.nextRow()?.map(\.number) == [3, 4, 5])
  }

  @Test("what a line that has ended took goes again, without holes, and one way before the other")
  func lostLine() throws {
    let results = Results()
    var limits = Forwarding.Limits()
    limits.wait = .zero
    let forwarding = Forwarding(client: [1], limits: limits)
    forwarding.setOpen(true)
    forwarding.begin(epoch: 1)
    for value in 1...3 { #expect(forwarding.add(try write(value), results.completion("\(value)"))) }
    let row = try #require(forwarding.nextRow(by: .line))
    #expect(row.map(\.number) == [1, 2, 3])
    forwarding.sent(row, epoch: 1, by: .line)
    #expect(forwarding.add(try write(4), results.completion("4")))
    // The leader might see it before the others.
    #expect(forwarding.nextRow(by: .table) == nil)
    let origin = WriteOrigin(client: [1], number: 2)
    forwarding.completion(of: origin) { .empty }?(.success(LogSequenceNumber(2)))
    forwarding.lineLost()
    // Those may be made.
    forwarding.expire()
    #expect(results.all == ["2 2", "4 refused"])
    #expect(forwarding.add(try write(5), results.completion("5")))
    let again = try #require(forwarding.nextRow(by: .table))
    #expect(again.map(\.number) == [1])
    #expect(forwarding.nextRow(by: .line) == nil)
    #expect(forwarding.hasAttempt)
    forwarding.sent(again, epoch: 1, by: .table)
    #expect(!forwarding.hasAttempt)
    #expect(forwarding.nextRow(by: .line) == nil)
    #expect(forwarding.nextRow(by: .table)?.map(\.number) == [3])
    // Nobody has it.
    forwarding.notSent()
    forwarding.completion(of: WriteOrigin(client: [1], number: 1)) { .empty }?(.success(nil))
    #expect(forwarding.nextRow(by: .line)?.map(\.number) == [3])
    forwarding.notSent()
    forwarding.close("the end")
    #expect(results.all.suffix(3) == ["1 nothing", "3 undecided", "5 refused"])
  }

  @Test("an epoch with the same number and another token is another one")
  func token() throws {
    let results = Results()
    forwarding.begin(epoch: 1, token: [1])
    #expect(forwarding.add(try write(1), results.completion("1")))
    forwarding.sent(try #require(forwarding.nextRow()), epoch: 1)
    forwarding.begin(epoch: 1, token: [1])
    #expect(forwarding.nextRow() == nil)
    forwarding.begin(epoch: 1, token: [2])
    #expect(forwarding.nextRow()?.map(\.number) == [1])
  }

  @Test("what no leader admits is refused at once")
  func tooLarge() throws {
    let results = Results()
    let text = String(repeating: "x", count: 9 << 20)
    var node = Node.empty
    for name in ["a", "b"] {
      node.graft(Node(.string(text)), at: try Path(parsing: name))
    }
    let write = EncodedWrite(.set(.root, node))
    #expect(forwarding.add(write, results.completion("1")))
    #expect(results.all == ["1 refused"])
    #expect(!forwarding.hasWaiting)
  }

  @Test(
    "the leader takes a server for gone once it has seen its counter stand still, not while it could not look"
  )
  func peers() {
    let delay = Duration.seconds(3)
    let interval = Duration.seconds(1)
    var peers = Peers(gone: Peers.Row(opening: "old", counter: 7))
    var now = ContinuousClock.now
    func look(_ rows: (String, Int64)..., after time: Duration = .seconds(1)) {
      now += time
      peers.note(
        rows.map { Peers.Row(opening: $0.0, counter: $0.1) }, interval: interval, now: now)
    }
    func hasEnded(_ opening: String) -> Bool { peers.hasEnded(opening, after: delay) }
    #expect(hasEnded("old"))
    // One that is asked for before it was seen.
    #expect(!hasEnded("new"))
    look(("a", 1), ("old", 7))
    for counter in 2...5 as ClosedRange<Int64> {
      look(("a", counter), ("b", 1), ("old", 7))
      #expect(!hasEnded("a"))
    }
    #expect(hasEnded("b"))
    #expect(hasEnded("new"))
    #expect(hasEnded("old"))
    // PostgreSQL did not answer: the leader has seen no counter.
    look(("a", 5), ("b", 1), after: .seconds(20))
    #expect(!hasEnded("a"))
    #expect(!hasEnded("b"))
    for counter in 6...9 as ClosedRange<Int64> { look(("a", 5), ("b", counter)) }
    #expect(hasEnded("a"))
    #expect(!hasEnded("b"))
    // It goes on after all.
    look(("a", 6), ("old", 8))
    #expect(!hasEnded("a"))
    #expect(!hasEnded("old"))
  }

  @Test("an answer counts once all is there that the leader had, and in its epoch alone")
  func early() throws {
    let results = Results()
    for value in 1...2 { #expect(forwarding.add(try write(value), results.completion("\(value)"))) }
    let row = try #require(forwarding.nextRow())
    forwarding.begin(epoch: 3)
    forwarding.sent(row, epoch: 3)
    forwarding.note([answer(1, .nothing, at: 5), answer(2, .nothing, at: 7)], epoch: 3)
    forwarding.note([answer(2, .noData, at: 5)], epoch: 2)
    forwarding.endAnswered(upTo: LogSequenceNumber(4))
    #expect(results.all.isEmpty)
    forwarding.endAnswered(upTo: LogSequenceNumber(6))
    #expect(results.all == ["1 nothing"])
    // What the leader had then may not stand.
    forwarding.begin(epoch: 4)
    forwarding.endAnswered(upTo: LogSequenceNumber(9))
    #expect(results.all == ["1 nothing"])
    #expect(forwarding.nextRow()?.map(\.number) == [2])
  }

  @Test("what a client has numbered comes back under its name, also if it was passed on twice")
  func named() throws {
    let results = Results()
    let origin = WriteOrigin(client: Array("client".utf8), number: 5)
    let request = SharedRequest(try write(1), context: [1])
    func add(_ name: String) -> Bool {
      forwarding.add(.request(request), origin: origin) { outcome, data in
        guard case .made(let lsn) = outcome else { return }
        let value = data?.scalar.map { "\($0)" } ?? ""
        results.completion(name + " " + value)(.success(lsn))
      }
    }
    #expect(add("a") && add("b"))
    let completion = forwarding.completion(of: origin) { Node(.integer(3)) }
    completion?(.success(LogSequenceNumber(8)))
    #expect(results.all == ["a integer(3) 8", "b integer(3) 8"])
    #expect(forwarding.completion(of: origin) { .empty } == nil)
    #expect(!forwarding.hasWaiting)
  }

  @Test("a server that begins to lead gets what waits, and passes on until nothing comes any more")
  func handingOver() throws {
    let results = Results()
    let request = SharedRequest(try write(2), context: [1])
    #expect(forwarding.add(try write(1), results.completion("1")))
    #expect(forwarding.add(.request(request)) { _, _ in })
    #expect(forwarding.takeAll().map { $0.asWrite == nil } == [false, true])
    #expect(forwarding.isOpen)
    #expect(forwarding.add(.request(request)) { _, _ in })
    #expect(forwarding.takeMore().map(\.number) == [3])
    #expect(forwarding.isOpen)
    #expect(forwarding.takeMore().isEmpty)
    #expect(!forwarding.isOpen)
    #expect(!forwarding.add(.request(request)) { _, _ in })
  }

  @Test("what was never sent is refused at the end, and what may stand is not decided")
  func closing() throws {
    let results = Results()
    for value in 1...4 { #expect(forwarding.add(try write(value), results.completion("\(value)"))) }
    let first = try #require(forwarding.nextRow())
    forwarding.sent(first, epoch: 1)
    _ = forwarding.nextRow()
    #expect(forwarding.add(try write(5), results.completion("5")))
    #expect(!forwarding.add(try write(6), results.completion("6")))
    forwarding.close("the end")
    #expect(
      results.all == ["1 undecided", "2 undecided", "3 undecided", "4 undecided", "5 refused"])
    #expect(!forwarding.add(try write(7), results.completion("7")))
  }

  @Test("a row's body is its writes, and damaged ones are none")
  func bodies() throws {
    let results = Results()
    let bytes = EncodedWrite(.set(try Path(parsing: "b"), Node(.bytes([0, 255]))))
    let system = EncodedWrite(try write(1), system: bytes)
    #expect(forwarding.add(system, results.completion("1")))
    let request = SharedRequest(try write(3), context: [7, 8, 9])
    #expect(forwarding.add(.request(request)) { _, _ in })
    let body = RequestBody.encode(try #require(forwarding.nextRow()))
    let contents = try #require(RequestBody.decode(body, count: 2))
    guard case .write(let first) = contents[0], case .request(let second) = contents[1] else {
      Issue.record("\(contents)")
      return
    }
    #expect(first.keptBytes == system.keptBytes)
    #expect(first.system?.keptBytes == bytes.keptBytes)
    #expect(second.write.keptBytes == (try write(3)).keptBytes && second.context == [7, 8, 9])
    #expect(RequestBody.decode(body, count: 3) == nil)
    for end in 0..<body.count { #expect(RequestBody.decode(Array(body[..<end]), count: 2) == nil) }
    for place in body.indices {
      var changed = body
      changed[place] ^= 0xFF
      // Refused, or other writes: never a trap.
      _ = RequestBody.decode(changed, count: 2)
    }
  }

  @Test("an answer comes back as it was given")
  func answers() {
    for answer in [
      ForwardedAnswer.nothing, .noData, .refused("why"), .tooLarge(bytes: 5, limit: 4),
      .memoryLimit(bytes: 7, limit: 6), .answered([1, 0]),
    ] {
      let fields = answer.fields
      #expect(
        ForwardedAnswer(
          kind: fields.kind, first: fields.first, second: fields.second, body: fields.body)
          == answer)
    }
    #expect(ForwardedAnswer(.unavailable("")) == nil)
    #expect(ForwardedAnswer(.closed) == nil)
  }
}
