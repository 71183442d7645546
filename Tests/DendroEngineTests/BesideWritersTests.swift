import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import Testing

@Suite("Beside running writers")
struct BesideWritersTests {
  /// Writes the same number to two places in one write, again and again.
  private static func write(_ engine: Engine, _ writer: Int, until isDone: borrowing Atomic<Bool>)
    async throws
  {
    var number: Int64 = 0
    while !isDone.load(ordering: .relaxed) {
      number += 1
      let leaf = Node(.integer(number))
      try await engine.write(
        Draft(
          .update(
            .root,
            [
              .init(path: try path("left/\(writer)"), action: .set(leaf)),
              .init(path: try path("right/\(writer)"), action: .set(leaf)),
            ])))
    }
  }

  private final class Flag: Sendable {
    let isDone = Atomic<Bool>(false)
  }

  @Test("a backup and a checkpoint hold a state that was: nothing half done, nothing after it")
  func backups() async throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    let flag = Flag()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask { try await Self.write(engine, writer, until: flag.isDone) }
      }
      for copy in 0..<10 {
        let before = engine.head.lsn
        try engine.backup(to: "/copy\(copy)")
        try await engine.checkpoint()
        let backup = try Engine.open(
          at: "/copy\(copy)", options: .inline, environment: disk.environment)
        #expect(backup.head.lsn >= before)
        #expect(backup.head.root.child(try Key("left")) == backup.head.root.child(try Key("right")))
        try backup.checkTree()
        try await backup.close()
      }
      flag.isDone.store(true, ordering: .relaxed)
      try await group.waitForAll()
    }
    let root = engine.head.root
    try await engine.close()
    let again = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    #expect(again.head.root == root)
    #expect(again.report.checkpointLSN != nil)
    try await again.close()
  }

  @Test("a clock that steps back makes no time go back, before and after reopening")
  func clock() throws {
    let disk = SimulatedDisk(seed: 1)
    let times = Times()
    for step in 0..<4 {
      let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
      engine.setObserver(times)
      for i in 0..<5 {
        disk.clock.advance(by: i == 2 ? -1_000_000 : 1000)
        engine.submit(try set("k", .integer(Int64(step * 10 + i))), completion: nil)
        engine.pump()
      }
      try engine.close()
    }
    #expect(times.all.count == 20)
    #expect(times.all == times.all.sorted())
  }

  private final class Times: CommitObserver {
    private let times = Mutex<[Int64]>([])
    var all: [Int64] { times.withLock { $0 } }
    func committed(_ commit: borrowing Commit, root: borrowing Node) {
      let time = commit.time
      times.withLock { $0.append(time) }
    }
  }
}

extension Engine {
  func checkTree() throws { try head.root.checkInvariants() }
}
