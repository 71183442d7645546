import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

/// What readers and the writer do where they meet. The pauses in which they look again are the test's own.
@Suite("Readers of the head that meet a writer")
struct HeadReadersTests {
  private let readers = HeadReaders(slotCount: 4)
  private let branch: BranchAddress
  private let tree: Node

  init() throws {
    var tree = Node.empty
    _ = tree.apply(.set(try path("a/b"), Node(.integer(1))))
    self.tree = tree
    branch = try #require(BranchAddress(of: tree))
    readers.publish(branch)
  }

  private var retiredCount: Int { readers.retired.withLock(\.count) }

  // MARK: The reader

  @Test("a reader that meets a change begins once it is over")
  func looksAgain() throws {
    readers.withdraw(branch)
    var pauseCount = 0
    let reading = readers.begin {
      pauseCount += 1
      if pauseCount == 7 { readers.publish(branch) }
    }
    #expect(reading?.branch == branch && pauseCount == 7)
    readers.end(try #require(reading))
  }

  @Test("a reader that meets a long change gives up after 200 pauses")
  func givesUp() {
    readers.withdraw(branch)
    var pauseCount = 0
    #expect(readers.begin { pauseCount += 1 } == nil)
    #expect(pauseCount == 200)
  }

  @Test("a reader does not look again if the tree is not lent, or all slots are taken")
  func asksAtOnce() {
    readers.publish(nil)
    #expect(readers.begin { Issue.record("it waits") } == nil)
    readers.withdraw(nil)
    #expect(readers.begin { Issue.record("it waits") } == nil, "a partial tree changes")
    readers.publish(branch)
    for _ in 0..<4 { #expect(readers.claim() != nil) }
    #expect(readers.begin { Issue.record("it waits") } == nil)
  }

  // MARK: The writer

  @Test("a writer waits for a reader that ends soon, and keeps nothing for it")
  func waits() throws {
    let reading = try #require(readers.begin())
    var pauseCount = 0
    readers.withdraw(branch) {
      pauseCount += 1
      #expect(readers.claim() == nil, "no other one begins meanwhile")
      if pauseCount == 5 { readers.end(reading) }
    }
    #expect(pauseCount == 5 && !readers.hasRetired && retiredCount == 0)
  }

  @Test("a writer keeps the tree for a reader that has not ended after 60 pauses")
  func waitsInVain() throws {
    let reading = try #require(readers.begin())
    var pauseCount = 0
    readers.withdraw(branch) { pauseCount += 1 }
    #expect(pauseCount == 60 && readers.hasRetired && retiredCount == 1)
    readers.end(reading)
    #expect(!readers.hasRetired && retiredCount == 0)
  }

  @Test("a writer does not wait every time for readers that stay")
  func adapts() throws {
    var waitCount = 0
    for _ in 0..<100 {
      readers.publish(branch)
      let reading = try #require(readers.begin())
      var hasWaited = false
      readers.withdraw(branch) { hasWaited = true }
      if hasWaited { waitCount += 1 }
      readers.end(reading)
    }
    // 1, 3, 7, and then 15 of them are left out.
    #expect(waitCount == 9 && !readers.hasRetired)
  }

  @Test("a writer waits for a reader that was not seen to give up yet")
  func unconfirmed() throws {
    let claimed = try #require(readers.claim())
    var pauseCount = 0
    readers.withdraw(branch) {
      pauseCount += 1
      if pauseCount == 2 { #expect(readers.confirm(claimed) == nil) }
    }
    #expect(pauseCount == 2 && !readers.hasRetired)
  }

  // MARK: What is retired

  @Test("a reader that gives up frees what was kept for it")
  func freedByGivingUp() throws {
    let claimed = try #require(readers.claim())
    readers.withdraw(branch)
    #expect(readers.hasRetired)
    #expect(readers.confirm(claimed) == nil && !readers.hasRetired && retiredCount == 0)
  }

  @Test("a reader that ends frees what was kept for it while a writer holds the admission lock")
  func freedBesideTheLock() throws {
    let engine = Engine(inMemory: .inline, environment: SimulatedDisk(seed: 1).environment)
    engine.submit(try set("a/b", .integer(1)), completion: nil)
    let begun = DispatchSemaphore(value: 0)
    let isLocked = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      try? engine.reading { _, _ in
        begun.signal()
        isLocked.wait()
      }
      ended.signal()
    }
    begun.wait()
    engine.submit(try set("a/b", .integer(2)), completion: nil)
    #expect(engine.pipeline.readers.hasRetired)
    let result = engine.pipeline.withAdmission { _ in
      isLocked.signal()
      return ended.wait(timeout: .now() + 60)
    }
    #expect(result == .success, "the end of a reading takes no lock of the writers")
    #expect(!engine.pipeline.readers.hasRetired)
  }
}
