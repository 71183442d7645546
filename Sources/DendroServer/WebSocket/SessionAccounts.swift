import Dispatch
import Synchronization

/// What all sessions together make a server hold. If that is too much, those that hold most are closed: first clients that have
/// not signed in, and among these, those of the address that holds most. So one that holds little goes on whatever others do.
/// A client that has left counts until all that it has sent was done, or is given up here.
final class SessionAccounts: Sendable {
  private let limit: Int
  private let all = Atomic<Int>(0)
  private let isRelieving = Atomic<Bool>(false)
  private let state = Mutex(State())
  /// A caller may hold locks that the closing of a connection takes.
  private let queue = DispatchQueue(label: "dendro-session-memory")

  private struct State {
    var holders: [ObjectIdentifier: Holder] = [:]
  }

  private struct Holder: Sendable {
    let transport: any WireTransport
    /// Whether it was told to close. What it holds, and what it still takes, will be gone.
    var isLeaving = false
  }

  /// - Parameter limit: in bytes.
  init(limit: Int) { self.limit = limit }

  /// In bytes.
  var byteCount: Int { all.load(ordering: .relaxed) }

  func add(_ count: Int) {
    let (_, new) = all.wrappingAdd(count, ordering: .relaxed)
    guard count > 0, new > limit, !isRelieving.exchange(true, ordering: .relaxed) else { return }
    queue.async { self.relieve() }
  }

  func register(_ transport: any WireTransport) {
    state.withLock {
      $0.holders[ObjectIdentifier(transport.account)] = Holder(transport: transport)
    }
  }

  func remove(_ account: SessionAccount) {
    state.withLock { _ = $0.holders.removeValue(forKey: ObjectIdentifier(account)) }
  }

  /// Closes those that hold most, if all that stay hold too much.
  func relieve() {
    isRelieving.store(false, ordering: .relaxed)
    for transport in choose() {
      transport.drop()
      transport.account.relieve()
    }
  }

  /// Those that have to leave.
  private func choose() -> [any WireTransport] {
    state.withLock { state in
      var counts: [ClientAddress: Int] = [:]
      let present = state.holders.filter { !$0.value.isLeaving }.map { id, holder in
        let byteCount = holder.transport.account.byteCount
        counts[holder.transport.account.address, default: 0] += byteCount
        return (id: id, transport: holder.transport, byteCount: byteCount)
      }
      var excess = present.reduce(-limit) { $0 + $1.byteCount }
      if excess <= 0 { return [] }
      func rank(_ transport: any WireTransport, _ byteCount: Int) -> (Int, Int, Int) {
        let account = transport.account
        return (
          account.isUser.load(ordering: .relaxed) ? 0 : 1, counts[account.address] ?? 0, byteCount
        )
      }
      let sorted = present.sorted { a, b in
        rank(a.transport, a.byteCount) > rank(b.transport, b.byteCount)
      }
      var chosen: [any WireTransport] = []
      for holder in sorted where excess > 0 && holder.byteCount > 0 {
        excess -= holder.byteCount
        state.holders[holder.id]?.isLeaving = true
        chosen.append(holder.transport)
      }
      return chosen
    }
  }
}
