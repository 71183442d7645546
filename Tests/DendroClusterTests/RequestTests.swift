import DendroEngine
import DendroStorage
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
    forwarding = Forwarding(
      ServerID(bytes: Array(0..<16)), Numbers(), limits: limits)
    forwarding.setOpen(true)
  }

  private final class Numbers: Randomness {
    func next() -> UInt64 { 7 }
  }

  /// What completions got.
  private final class Results: Sendable {
    private let results = Mutex<[String]>([])
    var all: [String] { results.withLock { $0 } }

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
      of: WriteOrigin(client: forwarding.client, number: 1))
    completion?(.success(nil))
    forwarding.begin(epoch: 4)
    #expect(forwarding.nextRow()?.map(\.number) == [2, 3])
    forwarding.end(2, .noData)
    #expect(results.all == ["1 nothing", "2 refused"])
    #expect(forwarding.completion(of: WriteOrigin(client: [1], number: 3)) == nil)
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
    for value in 1...2 { #expect(forwarding.add(try write(value), results.completion("\(value)"))) }
    let body = RequestBody.encode(try #require(forwarding.nextRow()))
    #expect(
      RequestBody.decode(body, count: 2)?.map(\.keptBytes)
        == [try write(1), try write(2)].map(\.keptBytes))
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
      .memoryLimit(bytes: 7, limit: 6),
    ] {
      let fields = answer.fields
      #expect(
        ForwardedAnswer(
          kind: fields.kind, first: fields.first, second: fields.second, text: fields.text)
          == answer)
    }
    #expect(ForwardedAnswer(.unavailable("")) == nil)
    #expect(ForwardedAnswer(.closed) == nil)
  }
}
