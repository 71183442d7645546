import Dispatch
import DendroTestSupport
import Testing

@testable import Dendro

extension TransactionTests {
  @Test("what was cancelled behind a stuck block leaves the queue, and frees what it holds")
  func cancelledWaiting() async throws {
    final class Captured: Sendable {}
    let database = Database.inMemory()
    let ref = database.reference().child("a")
    let block = StuckBlock()
    await block.start(at: ref) { _ in }
    for _ in 0..<50 {
      var captured: Captured? = Captured()
      weak let released = captured
      let waiting = Task { [captured] in
        try await ref.child("b").transaction { [captured] data in
          data.value = captured == nil
        }
      }
      captured = nil
      while database.transactions.count < 2 { await Task.yield() }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
      #expect(database.transactions.count == 1)
      while released != nil { await Task.yield() }
    }
    block.end()
    try await ref.child("b").transaction { $0.value = 1 }
    #expect(try await ref.child("b").getData().int == 1)
  }

  @Test("what took too long behind a stuck block gives its place back")
  func placesOfLate() async throws {
    var options = DatabaseOptions()
    options.transactionTimeLimit = .milliseconds(100)
    let database = Database.inMemory(options: options)
    let ref = database.reference().child("a")
    let block = StuckBlock()
    await block.start(at: ref) { _ in }
    let ended = Shared(0)
    for _ in 0..<(TransactionQueue.limit + 10) {
      // Would wait for a place for ever.
      ref.runTransactionBlock {
        .success(withValue: $0)
      } andCompletionBlock: { error, _, _ in
        #expect((error as? DatabaseError)?.code == .timedOut)
        ended.withLock { $0 += 1 }
      }
    }
    while ended.withLock({ $0 }) < TransactionQueue.limit + 10 { await Task.yield() }
    #expect(database.transactions.count == 1)
    block.end()
  }

  @Test("a database that was closed with transactions that waited is freed")
  func closedIsFreed() async throws {
    weak var released: Database?
    let block = StuckBlock()
    do {
      let database = Database.inMemory()
      released = database
      let ref = database.reference().child("a")
      await block.start(at: ref) { _ in }
      for _ in 0..<10_000 {
        ref.child("b").withoutWaiting { $0.runTransactionBlock { .success(withValue: $0) } }
      }
      try await database.close()
      #expect(database.transactions.count == 1)
    }
    block.end()
    while released != nil { await Task.yield() }
  }
}
