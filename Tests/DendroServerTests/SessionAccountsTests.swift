import DendroProtocol
import Synchronization
import Testing

@testable import DendroServer

@Suite struct SessionAccountsTests {
  private let accounts = SessionAccounts(limit: 200)
  private let address: ClientAddress

  init() throws { address = try #require(ClientAddress("192.0.2.1")) }

  private func holder(_ byteCount: Int) -> Holder {
    let holder = Holder(SessionAccount(address, limit: 1_000_000, accounts))
    holder.account.open(holder)
    holder.account.add(byteCount)
    return holder
  }

  @Test("one that was told to close and still takes more does not make others close")
  func leaving() {
    let honest = holder(80)
    let hostile = holder(130)
    accounts.relieve()
    #expect(hostile.isDropped && !honest.isDropped)
    for _ in 0..<10 {
      hostile.account.add(50)
      accounts.relieve()
    }
    #expect(!honest.isDropped)
    hostile.account.close()
    #expect(accounts.byteCount == 80)
    // It counts no more: the others have what is left.
    let large = holder(119)
    accounts.relieve()
    #expect(!large.isDropped && !honest.isDropped)
    large.account.add(2)
    accounts.relieve()
    #expect(large.isDropped && !honest.isDropped)
    for holder in [honest, large] { holder.account.close() }
    #expect(accounts.byteCount == 0)
  }

  @Test("what a session has of its client counts until it is done, although the client has left")
  func left() {
    let honest = holder(80)
    let left = holder(10)
    left.account.addOwn(60)
    left.account.addOwn(40)
    left.account.close()
    #expect(accounts.byteCount == 180)
    // What carried the session still takes back what it had.
    left.account.add(-10)
    #expect(accounts.byteCount == 180)
    let third = holder(30)
    accounts.relieve()
    #expect(left.isDropped && !honest.isDropped && !third.isDropped)
    left.account.addOwn(-100)
    left.account.finish()
    for holder in [honest, third] { holder.account.close() }
    #expect(accounts.byteCount == 0)
  }

  /// A transport that notes whether it was told to close.
  private final class Holder: WireTransport {
    let account: SessionAccount
    private let dropped = Atomic<Bool>(false)

    init(_ account: SessionAccount) { self.account = account }

    var isDropped: Bool { dropped.load(ordering: .relaxed) }
    var waitingByteCount: Int { 0 }

    func drop() { dropped.store(true, ordering: .relaxed) }
    func send(_ message: AnswerText, isPush: Bool) -> Bool { true }
    func reserve() -> ReservedPlace { ReservedPlace(transport: self, number: 0) }
    func fill(_ place: Int, _ messages: [AnswerText]) {}
    func close(_ code: UInt16) {}
    func refill() {}
    func wake() {}
  }
}
