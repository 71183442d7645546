import DendroEngine
import DendroStorage
import DendroTestSupport
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
  func backupsWhileWriting() async throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    let flag = Flag()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask { try await Self.write(engine, writer, until: flag.isDone) }
      }
      // On a busy machine the writers may begin late.
      while engine.head.lsn == .zero { await Task.yield() }
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

  /// Copies the directory as a tool that knows nothing of it would: name by name, block by block, while
  /// the writer writes, rolls, takes checkpoints and removes what nothing needs any more.
  private func plainCopy(
    _ disk: SimulatedDisk, seed: UInt64, beside write: (inout SeededRandomness) throws -> Void
  ) throws -> SimulatedDisk {
    var random = SeededRandomness(seed: seed)
    let copy = SimulatedDisk(seed: seed)
    try copy.createDirectory("/db")
    var names = disk.names(in: "/db").shuffled(using: &random)
    var copied: Set<String> = []
    while let name = names.popLast() {
      copied.insert(name)
      // A name that came meanwhile may be met or not.
      if Bool.random(using: &random) {
        names = disk.names(in: "/db").filter { !copied.contains($0) }.shuffled(using: &random)
      }
      let path = "/db/" + name
      // Who has a file open reads on in it, also when its name is gone.
      guard let file = try? disk.open(path, .read) else { continue }
      _ = try copy.open(path, .create)
      var offset = 0
      let blockByteCount = [64, 512, 4096].randomElement(using: &random)!
      while true {
        var block = [UInt8](repeating: 0, count: blockByteCount)
        let count = try block.withUnsafeMutableBytes { try file.read(into: $0, at: UInt64(offset)) }
        if count == 0 { break }
        copy.overwrite(path, at: offset, with: Array(block[..<count]))
        offset += count
        if Int.random(in: 0..<3, using: &random) == 0 { try write(&random) }
      }
      if Int.random(in: 0..<2, using: &random) == 0 { try write(&random) }
    }
    return copy
  }

  @Test("a plain copy of the directory while it is written opens to some prefix, or is refused")
  func plainCopyWhileWriting() throws {
    var outcomes = (prefix: 0, refused: 0)
    for seed in 0..<150 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
      var trees: [Node] = [.empty]
      func write(_ random: inout SeededRandomness) throws {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try engine.roll()
        case 1: try engine.checkpoint()
        default:
          for _ in 0..<Int.random(in: 1...3, using: &random) {
            let key = "k\(Int.random(in: 0..<20, using: &random))"
            engine.submit(
              try set(key, .string("\(trees.count) \(incompressible(40))")), completion: nil)
            trees.append(engine.head.root)
          }
          engine.pump()
        }
      }
      var random = SeededRandomness(seed: seed &+ 1000)
      for _ in 0..<12 { try write(&random) }
      let copy = try plainCopy(disk, seed: seed, beside: write)
      let more = try set("on", .integer(1))
      do throws(EngineError) {
        let opened = try Engine.open(at: "/db", options: .inline, environment: copy.environment)
        let (root, lsn) = opened.head
        #expect(root == trees[Int(lsn.rawValue)], "seed \(seed)")
        opened.submit(more, completion: nil)
        try opened.close()
        outcomes.prefix += 1
      } catch {
        guard error.isDamage else {
          Issue.record("seed \(seed): \(error)")
          continue
        }
        outcomes.refused += 1
      }
      try engine.close()
    }
    #expect(outcomes.prefix > 10 && outcomes.refused > 10, "\(outcomes)")
  }

  @Test(
    "a reader follows a writer that has cut records which the reader had read, and written others")
  func readerAcrossACutLog() throws {
    for tornCount in stride(from: 1, through: 150, by: 7) {
      let disk = SimulatedDisk(seed: 1)
      func open(_ mode: Engine.Mode) throws -> Engine {
        try Engine.open(at: "/db", options: .inline, environment: disk.environment, mode: mode)
      }
      func write(_ engine: Engine, _ place: String, _ value: Int64) throws {
        engine.submit(try set(place, .integer(value)), completion: nil)
        engine.pump()
      }
      // The first writer dies in its third write.
      try {
        let killed = try open(.readWrite)
        try write(killed, "a", 1)
        try write(killed, "b", 2)
        disk.inject(DiskFault(.partial(tornCount, 5), of: [.write], at: 1, isPermanent: true))
        disk.inject(.failure(of: .truncate, at: 1, with: 5, isPermanent: true))
        disk.inject(.failure(of: .synchronize, at: 1, with: 5, isPermanent: true))
        killed.submit(
          try set("c", .string(String(repeating: "torn", count: 40))), completion: nil)
        killed.pump()
      }()
      disk.removeFaults()
      let reader = try open(.readOnly)
      // The whole record may have come through; then it is a write like any other.
      let seen = reader.head
      #expect(seen.lsn == LogSequenceNumber(2) || seen.lsn == LogSequenceNumber(3))

      let second = try open(.readWrite)
      #expect(second.head.lsn >= seen.lsn)
      for round in 0..<6 {
        try write(second, "r\(round)", Int64(round))
        switch round % 3 {
        case 1: try second.roll()
        case 2: try second.checkpoint()
        default: break
        }
        // What it shows stays, until it asks.
        if round == 0 { #expect(reader.head.root == seen.root) }
        let lsn = try reader.refresh()
        #expect(lsn == second.head.lsn, "torn at \(tornCount), round \(round)")
        #expect(reader.head.root == second.head.root, "torn at \(tornCount), round \(round)")
      }
      try reader.close()
      // No reader is left: the next checkpoints remove the old log.
      for round in 0..<3 {
        try write(second, "s", Int64(round))
        try second.checkpoint()
      }
      let late = try open(.readOnly)
      #expect(late.head.root == second.head.root)
      try late.close()
      try second.close()
    }
  }

  @Test("a clock that steps back makes no time go back, before and after reopening")
  func clockThatStepsBack() throws {
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
    var all: [Int64] { times.value }
    func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
      let time = commit.time
      times.withLock { $0.append(time) }
      return false
    }
  }
}

extension Engine {
  func checkTree() throws { try head.root.checkInvariants() }
}
