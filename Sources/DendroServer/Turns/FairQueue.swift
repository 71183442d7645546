import Dendro
import DendroTree
import Dispatch
import Synchronization

/// Runs the long work of many clients on a few threads. Each client's work is done in its order, a piece at a time, and the clients
/// take turns: a client that asks for much work waits for it, and the other clients do not. The clients of one address share its turns: an address
/// with many connections gets no more turns than an address with one.
///
/// The work may not wait for the disk.
final class FairQueue: Sendable {
  typealias Work = @Sendable () -> Void

  /// Nil for clients of whom no address is known.
  private typealias Address = ClientAddress?

  private struct Client {
    let address: Address
    /// What waits.
    var work = Queue<Work>()
  }

  private struct State {
    /// A client is here while some of its work waits or is done.
    var clients: [ObjectIdentifier: Client] = [:]
    /// Clients of whose work nothing is done now, by their addresses, and these in the order of their turns.
    var waiting: [Address: Queue<ObjectIdentifier>] = [:]
    var turns = Queue<Address>()
    var threadCount = 0

    /// A client waits for its turn, behind the others of its address.
    mutating func wait(_ client: ObjectIdentifier, at address: Address) {
      if waiting[address] == nil { turns.append(address) }
      waiting[address, default: Queue()].append(client)
    }
  }

  private let state = Mutex(State())
  private let threadCountMax: Int
  private let start: @Sendable (@escaping Work) -> Void

  /// - Parameters:
  ///   - threadCount: the most pieces that are done at the same time.
  ///   - start: does work on another thread.
  init(
    threadCount: Int = max(1, processorCount / 2),
    start: @escaping @Sendable (@escaping Work) -> Void = LongWorkThreads.async
  ) {
    threadCountMax = threadCount
    self.start = start
  }

  /// Does a piece of a client's work when it is its turn.
  ///
  /// - Parameter address: where the client is; the same for all of its work.
  func async(
    for client: AnyObject, at address: ClientAddress? = nil, _ work: @escaping Work
  ) {
    let client = ObjectIdentifier(client)
    let begins = state.withLock { state in
      if state.clients[client] == nil { state.wait(client, at: address) }
      state.clients[client, default: Client(address: address)].work.append(work)
      guard state.threadCount < threadCountMax, !state.turns.isEmpty else { return false }
      state.threadCount += 1
      return true
    }
    if begins { start { self.run() } }
  }

  /// Does one piece: the threads serve other queues as well.
  private func run() {
    guard let (client, work) = next() else { return }
    work()
    state.withLock { state in
      if let known = state.clients[client], !known.work.isEmpty {
        state.wait(client, at: known.address)
      } else {
        state.clients[client] = nil
      }
    }
    start { self.run() }
  }

  private func next() -> (ObjectIdentifier, Work)? {
    state.withLock { state in
      guard let address = state.turns.popFirst(), let client = state.waiting[address]?.popFirst(),
        let work = state.clients[client]?.work.popFirst()
      else {
        state.threadCount -= 1
        return nil
      }
      if state.waiting[address]?.isEmpty ?? true {
        state.waiting[address] = nil
      } else {
        state.turns.append(address)
      }
      return (client, work)
    }
  }
}
