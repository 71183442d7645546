import Synchronization
import Testing

@testable import DendroEngine

@Suite("Threads that wait for the disk")
struct BlockingExecutorTests {
  @Test(
    "a thread that has ended frees its work and its executor, which refer to each other",
    .timeLimit(.minutes(5)))
  func lifetime() async throws {
    final class Work: Sendable {
      let executor: BlockingExecutor
      let runCount = Atomic<Int>(0)

      init(_ executor: BlockingExecutor) { self.executor = executor }
    }
    weak var executor: BlockingExecutor?
    weak var work: Work?
    do {
      let first = BlockingExecutor(name: "test")
      let made = Work(first)
      executor = first
      work = made
      try first.start {
        made.runCount.add(1, ordering: .relaxed).newValue < 3 ? .untilWoken : nil
      }
      first.wake()
      while made.runCount.load(ordering: .relaxed) < 2 { await Task.yield() }
      first.wake()
    }
    while executor != nil || work != nil, !Task.isCancelled { await Task.yield() }
    #expect(executor == nil && work == nil)
  }
}
