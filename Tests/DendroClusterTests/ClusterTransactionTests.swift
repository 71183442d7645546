import Dendro
import DendroEngine
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite(
  "Transactions of programs at any server",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct ClusterTransactionTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  private final class Counter: Sendable {
    private let value = Atomic(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
  }

  private static func add(_ number: Int, to reference: DatabaseReference) async throws -> Int? {
    let (_, snapshot) = try await reference.runTransactionBlock { data in
      data.value = ((data.value as? Int) ?? 0) + number
      return .success(withValue: data)
    }
    return snapshot.value as? Int
  }

  @Test(
    "a follower's transaction is made from what is there, or runs again", arguments: [false, true])
  func transactions(hasLines: Bool) async throws {
    cluster.hasLines = hasLines
    let first = try cluster.open("1")
    let second = try cluster.open("2")
    let count = second.reference(withPath: "shop/count")
    #expect(try await Self.add(1, to: count) == 1)
    #expect(try await first.value("shop/count") == 1)
    // The leader's later write is not lost, though the follower may not have seen it.
    for number in 1...50 {
      try await first.reference(withPath: "shop/count").setValue(number * 1000)
      #expect(try await Self.add(1, to: count) == number * 1000 + 1)
    }
    // What is elsewhere does not matter, what is below does.
    try await first.reference(withPath: "other").setValue(1)
    let (isCommitted, aborted) = try await count.runTransactionBlock { _ in .abort() }
    #expect(!isCommitted)
    #expect(aborted.value as? Int == 50_001)
    let (_, removed) = try await second.reference(withPath: "shop").runTransactionBlock { data in
      #expect(data.childData(byAppendingPath: "count").value as? Int == 50_001)
      data.value = nil
      return .success(withValue: data)
    }
    #expect(!removed.exists())
    #expect(try await first.reference(withPath: "shop").getData().exists() == false)
    // One that changes nothing returns as well.
    let (isDone, nothing) = try await second.reference(withPath: "shop").runTransactionBlock {
      .success(withValue: $0)
    }
    #expect(isDone && !nothing.exists())
    // A whole database, with priorities and server values.
    let (_, root) = try await second.reference().runTransactionBlock { data in
      data.childData(byAppendingPath: "time").value = ServerValue.timestamp()
      data.childData(byAppendingPath: "other").priority = 7
      return .success(withValue: data)
    }
    #expect((root.childSnapshot(forPath: "time").value as? Int ?? 0) > 1_700_000_000_000)
    try await eventually("both have it") { first.root == second.root }
    try await second.close()
    try await first.close()
  }

  @Test(
    "counts of programs at all servers come out right, also when the leader goes",
    arguments: [false, true])
  func racing(hasLines: Bool) async throws {
    cluster.hasLines = hasLines
    let first = try cluster.open("1")
    let others = [try cluster.open("2"), try cluster.open("3")]
    let made = Counter()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for database in others {
        group.addTask {
          var count = 0
          while count < 60 {
            do {
              _ = try await Self.add(1, to: database.reference(withPath: "count"))
              count += 1
              made.add()
            } catch let error as DatabaseError where error.code == .maxRetry {
              // The other one was always faster. Nothing was made.
            }
          }
          return count
        }
      }
      try await eventually("some are made") { made.count > 30 }
      try await first.close()
      try await group.waitForAll()
    }
    for database in others {
      try await eventually("all are there") { database.root == others[0].root }
    }
    #expect(try await others[0].value("count") == 120)
    for database in others { try await database.close() }
  }

  @Test("a transaction that no leader takes fails in time, and so does one at a closing server")
  func nobody() async throws {
    let first = try cluster.open("1")
    let second = try cluster.open("2") { $0.takeoverDelay = .seconds(3600) }
    cluster.postgres.freeze(true)
    let task = Task { try await Self.add(1, to: second.reference(withPath: "a")) }
    try await eventually("it waits") { second.node?.forwarding.hasWaiting ?? false }
    let closing = Task { try await second.close() }
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect([.unavailable, .pending, .closed].contains(error?.code))
    cluster.postgres.freeze(false)
    try await closing.value
    try await first.close()
  }
}
