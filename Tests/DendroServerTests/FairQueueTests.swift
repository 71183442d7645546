import DendroPlatform
import Dispatch
import Synchronization
import Testing

@testable import DendroServer

@Suite struct FairQueueTests {
  private final class Client: Sendable {}

  @Test("clients take turns, whatever one of them asks for, and each gets its work in its order")
  func turns() async {
    let queue = FairQueue(threadCount: 1)
    let clients = (0..<3).map { _ in Client() }
    let order = Mutex<[String]>([])
    let begun = DispatchSemaphore(value: 0)
    let counts = [6, 2, 1]
    await withCheckedContinuation { continuation in
      let left = Atomic(counts.reduce(0, +))
      // Nothing is done before all is asked for.
      queue.async(for: begun) { begun.wait() }
      for (client, count) in zip(clients.indices, counts) {
        for number in 0..<count {
          queue.async(for: clients[client]) {
            order.withLock { $0.append("\(client).\(number)") }
            if left.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { continuation.resume() }
          }
        }
      }
      begun.signal()
    }
    let expected = ["0.0", "1.0", "2.0", "0.1", "1.1", "0.2", "0.3", "0.4", "0.5"]
    #expect(order.withLock(\.self) == expected)
  }

  @Test("addresses take turns before their clients do")
  func addresses() async throws {
    let queue = FairQueue(threadCount: 1)
    let many = try #require(ClientAddress("192.0.2.1"))
    let one = try #require(ClientAddress("192.0.2.2"))
    let clients = (0..<4).map { _ in Client() }
    let order = Mutex<[String]>([])
    let begun = DispatchSemaphore(value: 0)
    await withCheckedContinuation { continuation in
      let left = Atomic(8)
      queue.async(for: begun) { begun.wait() }
      for (number, client) in clients.enumerated() {
        for piece in 0..<2 {
          queue.async(for: client, at: number < 3 ? many : one) {
            order.withLock { $0.append("\(number).\(piece)") }
            if left.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { continuation.resume() }
          }
        }
      }
      begun.signal()
    }
    #expect(
      order.withLock(\.self) == ["0.0", "3.0", "1.0", "3.1", "2.0", "0.1", "1.1", "2.1"])
  }

  @Test("long work leaves the processors to others, and one queue does not keep another waiting")
  func threads() async {
    let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
    let busy = FairQueue(threadCount: 1000)
    let other = FairQueue(threadCount: 1)
    let isOver = Atomic(false)
    let clients = (0..<100).map { _ in Client() }
    // Each of them asks for more as soon as it has got something.
    @Sendable func ask(_ client: Client) {
      busy.async(for: client) { if !isOver.load(ordering: .relaxed) { ask(client) } }
    }
    for client in clients { ask(client) }
    let priority = await withCheckedContinuation { continuation in
      other.async(for: clients[0]) {
        continuation.resume(
          returning: getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
      }
    }
    isOver.store(true, ordering: .relaxed)
    #expect(priority == max(own, LongWorkThreads.niceValue))
  }
}
