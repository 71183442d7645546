import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTestSupport
import DendroTree
import Testing

@testable import DendroEngine

/// Updates in packed form do what the same updates as drafts do.
@Suite("Packed updates")
struct PackedUpdateTests {
  private static func open(_ disk: SimulatedDisk) throws -> Engine {
    try Engine.open(at: "/db", options: .inline, environment: disk.environment)
  }

  @Test(
    "the same tree, numbers, changes and answers, also after opening again",
    arguments: Scale.seeds(15), [false, true])
  func differential(seed: UInt64, isObserved: Bool) throws {
    var generator = WriteGenerator(seed: seed)
    generator.stringByteCountMax = [20, 300][Int(seed % 2)]
    let disks = [SimulatedDisk(seed: seed), SimulatedDisk(seed: seed)]
    let engines = try disks.map(Self.open)
    let mirrors = [Mirror(), Mirror()]
    let answers = [Received<LogSequenceNumber?>(), Received<LogSequenceNumber?>()]
    if isObserved { for (engine, mirror) in zip(engines, mirrors) { engine.setObserver(mirror) } }
    var packedCount = 0
    for step in 0..<400 {
      let write = generator.write()
      engines[0].submit(Draft(write)) { answers[0].add(try? $0.get()) }
      if let update = PackedUpdate(write) {
        packedCount += 1
        engines[1].submit(update, at: write.path) { answers[1].add(try? $0.get()) }
      } else {
        engines[1].submit(Draft(write)) { answers[1].add(try? $0.get()) }
      }
      #expect(engines[0].head.lsn == engines[1].head.lsn, "seed \(seed), step \(step)")
      if step % 40 == 0 {
        for engine in engines { engine.pump() }
        let root = engines[1].head.root
        try root.checkInvariants()
        try #require(root == engines[0].head.root, "seed \(seed), step \(step)")
        if isObserved { #expect(mirrors[1].root == root) }
      }
    }
    #expect(packedCount > 20)
    for engine in engines { engine.pump() }
    #expect(answers[0].all == answers[1].all)
    let root = engines[1].head.root
    for engine in engines { try engine.close() }
    for disk in disks {
      let again = try Self.open(disk)
      #expect(again.head.root == root)
      try again.close()
    }
  }

  @Test("a disk that refuses an update leaves the tree as it was")
  func undone() throws {
    let disk = SimulatedDisk(seed: 2)
    let engine = try Self.open(disk)
    engine.submit(try set("a/b", .integer(1)), completion: nil)
    engine.submit(try set("c", .string("kept")), completion: nil)
    engine.pump()
    let root = engine.head.root
    var update = PackedUpdate()
    try update.increment("a/b", by: .integer(5))
    try update.set("c", .string("lost"))
    try update.set("d/e/f", .bool(true))
    try update.set("tree", root)
    try update.remove("a/none")
    try update.finish(at: .root)
    disk.inject(.failure(of: .write, at: 1, with: ENOSPC))
    let answer = Received<Bool>()
    engine.submit(update, at: .root) { answer.add((try? $0.get()) != nil) }
    #expect(try engine.view(at: path("a/b")).scalar == .integer(6))
    engine.pump()
    #expect(answer.all == [false] && engine.head.root == root)
    disk.removeFaults()
    try engine.close()
  }

  @Test("what is not valid has the error of the same draft")
  func refused() throws {
    let deep = String(repeating: "/k", count: 33)
    for paths in [
      ["a", "a/b"], ["a/b", "a"], ["x", "x"], ["", "x"], [deep], ["b", "a/c", "a"],
    ] {
      var update = PackedUpdate()
      for path in paths { try update.set(path, .integer(1)) }
      let entries = try paths.map {
        Write.Entry(path: try path($0), action: .set(Node(.integer(1))))
      }
      let expected = #expect(throws: ValidationError.self) {
        try Write.update(.root, entries.inOrder).validate()
      }
      let error = #expect(throws: ValidationError.self) { try update.finish(at: .root) }
      #expect(error?.message == expected?.message, "\(paths)")
    }
    var update = PackedUpdate()
    #expect(throws: ValidationError.self) { try update.set("a.b", .integer(1)) }
  }

  @Test("many entries in any order are put in order", arguments: 1...6 as ClosedRange<UInt64>)
  func order(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var update = PackedUpdate()
    var keys = Set<Int>()
    while keys.count < 2_000 { keys.insert(random.below(100_000)) }
    let ordered = seed % 2 == 0 ? keys.sorted() : Array(keys)
    for key in ordered { try update.set("k\(key)/f", .integer(Int64(key))) }
    try update.finish(at: try path("base"))
    let draft = update.draft(at: try path("base"))
    guard case .update(_, let entries) = draft.write else {
      Issue.record("no update")
      return
    }
    #expect(entries.count == 2_000)
    #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.path < $1.path })
    try draft.write.validate()
  }
}
