import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

/// A checkpoint whose pages are read when they are touched for the first time.
@Suite("Pages that are read on demand")
struct LoadingTests {
  /// Chunks of a few pages, so that a small tree has many.
  static func options(_ loading: EngineOptions.Loading = .onDemand) -> EngineOptions {
    var options = EngineOptions.inline
    options.checkpointChunkByteLimit = 200
    options.loading = loading
    return options
  }

  static func open(
    _ disk: SimulatedDisk, _ loading: EngineOptions.Loading = .onDemand
  ) throws -> Engine {
    try Engine.open(at: "/db", options: options(loading), environment: disk.environment)
  }

  /// A closed database with a checkpoint of 30 objects of 20 leaves each, and one record behind it.
  ///
  /// - Parameter paths: where the record sets leaves.
  @discardableResult
  static func database(_ disk: SimulatedDisk, behind paths: [String] = ["behind"]) throws -> Node {
    let engine = try open(disk)
    for object in 0..<30 {
      for leaf in 0..<20 {
        engine.submit(
          try set("o\(object)/leaf\(leaf)", .string("\(object) \(leaf)")), completion: nil)
      }
    }
    engine.pump()
    try engine.checkpoint()
    for path in paths { engine.submit(try set(path, .bool(true)), completion: nil) }
    engine.pump()
    let root = engine.head.root
    try engine.close()
    return root
  }

  private static func checkpoint(_ disk: SimulatedDisk) throws -> CheckpointReader {
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    let newest = try #require(try directory.contents().checkpoints.max())
    return try CheckpointReader.open(directory, lsn: newest)
  }

  @Test("opening reads the top, a read what it needs, and everything what there is")
  func onDemand() throws {
    let disk = SimulatedDisk(seed: 1)
    let root = try Self.database(disk)
    let engine = try Self.open(disk)
    let chunkCount = try Self.checkpoint(disk).chunkCount
    #expect(chunkCount > 20 && engine.statistics().unreadChunkCount >= chunkCount - 3)
    #expect(try engine.node(at: .root).node.childCount == 31)
    let before = engine.statistics().unreadChunkCount
    #expect(try engine.view(at: path("o7/leaf3")).scalar == .string("7 3"))
    #expect(before - engine.statistics().unreadChunkCount <= 3)
    let other = engine.statistics().unreadChunkCount
    #expect(try engine.view(at: path("o7")) == root.node(at: path("o7")))
    #expect(other - engine.statistics().unreadChunkCount <= 3)
    #expect(try engine.wholeHead().root == root)
    #expect(engine.statistics().unreadChunkCount == 0)
    try engine.close()
    let whole = try Self.open(disk, .whole)
    #expect(whole.statistics().unreadChunkCount == 0 && whole.head.root == root)
    try whole.close()
  }

  @Test(
    "random writes of every kind: the tree is that of the model, before and after it is opened again",
    arguments: Scale.seeds(12))
  func random(seed: UInt64) throws {
    let disk = SimulatedDisk(seed: seed)
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = [2, 3, 20][Int(seed % 3)]
    generator.wideKeyCount = [30, 400, 3_000][Int(seed / 3 % 3)]
    var model = ModelTree()
    var unreadCount = 0
    for round in 0..<8 {
      let engine = try Self.open(disk)
      let mirror = Mirror()
      if round == 3 { engine.setObserver(mirror) }
      let before = round == 3 ? try engine.wholeHead().root : .empty
      unreadCount += engine.statistics().unreadChunkCount
      for step in 0..<60 {
        let write = generator.write()
        if case .setPriority(let path, _) = write, try engine.view(at: path).isEmpty { continue }
        if generator.random.oneIn(5) {
          engine.transact(at: write.path) { error in
            Issue.record("\(error)")
          } decide: { _ in
            TransactionDecision(Draft(.set(write.path, Node(.integer(Int64(step)))))) { _ in }
          }
          model.apply(.set(write.path, Node(.integer(Int64(step)))))
        } else {
          engine.submit(Draft(write), completion: nil)
          model.apply(write)
        }
        if generator.random.oneIn(4) {
          let path = generator.path()
          #expect(
            ModelTree(try engine.view(at: path))
              == model.node(at: path.keys.map { Array($0.string.utf8) }), "\(seed), \(step)")
        }
        if generator.random.oneIn(20) { engine.pump() }
      }
      engine.pump()
      if round % 2 == 0 { try engine.checkpoint() }
      if round == 3 {
        var expected = before
        _ = expected
        expected = try engine.wholeHead().root
        #expect(ModelTree(expected) == model)
      }
      if round == 6 { try engine.wholeHead().root.checkInvariants() }
      try engine.close()
      let reader = try Engine.open(
        at: "/db", options: Self.options(.whole), environment: disk.environment, mode: .readOnly)
      try #require(ModelTree(reader.head.root) == model, "seed \(seed), round \(round)")
      try reader.head.root.checkInvariants()
      try reader.close()
    }
    #expect(unreadCount > 0)
  }

  @Test("each damaged chunk fails what needs it, names file and offset, and nothing else")
  func damage() throws {
    let disk = SimulatedDisk(seed: 1)
    // Two checkpoints of the same tree, so that the older one can serve.
    _ = try Self.database(disk)
    let again = try Self.open(disk)
    try again.checkpoint()
    let root = try again.wholeHead().root
    try again.close()
    let checkpoint = try Self.checkpoint(disk)
    for chunk in 0..<checkpoint.chunkCount - 1 {
      let hurt = disk.copy()
      let offset = checkpoint.offset(ofChunk: chunk)
      hurt.flipBit(Int(offset + 40) * 8, of: checkpoint.path)
      let engine = try Self.open(hurt)
      #expect(engine.report.unreadableCheckpoints.isEmpty)
      var failed = 0
      for object in 0..<30 {
        let place = try path("o\(object)")
        do throws(EngineError) {
          #expect(try engine.view(at: place) == root.node(at: place))
        } catch {
          guard case .storage(.corrupt(checkpoint.path, let found, _, _)) = error else {
            Issue.record("chunk \(chunk): \(error)")
            continue
          }
          #expect(found >= offset && found < offset + 100)
          failed += 1
          expectRefusal(of: try set("o\(object)/leaf0/new", .bool(true)), engine, chunk)
        }
      }
      #expect(failed > 0 && failed < 30, "chunk \(chunk) fails \(failed) of 30")
      #expect(throws: EngineError.self) { try engine.wholeHead() }
      let isFailure: Result<Node, any Error> = Result {
        try engine.node(at: .root).reading { root, _ in
          _ = ModelTree(root)
          return root
        }
      }
      #expect(throws: EngineError.self) { try isFailure.get() }
      // A checkpoint would need what cannot be read; the older files stay.
      // At the first or the last key: one of the two needs no page of the chunk.
      let lsn = engine.head.lsn
      var place = try path("a")
      engine.submit(try set("a", .integer(1)), completion: nil)
      if engine.head.lsn == lsn {
        place = try path("z")
        engine.submit(try set("z", .integer(1)), completion: nil)
      }
      engine.pump()
      let files = hurt.names(in: "/db").filter { $0.hasSuffix(".checkpoint") }
      #expect(throws: EngineError.self) { try engine.checkpoint() }
      #expect(hurt.names(in: "/db").filter { $0.hasSuffix(".checkpoint") } == files)
      try engine.close()
      // Opened whole, the older checkpoint serves, and a new one ends the damage.
      let whole = try Self.open(hurt, .whole)
      #expect(whole.report.unreadableCheckpoints.count == 1)
      var expected = root
      _ = expected.apply(.set(place, Node(.integer(1))))
      #expect(whole.head.root == expected)
      try whole.checkpoint()
      try whole.close()
      let good = try Self.open(hurt)
      #expect(try good.wholeHead().root == expected)
      try good.close()
    }
  }

  private func expectRefusal(of draft: Draft, _ engine: Engine, _ chunk: Int) {
    let lsn = engine.head.lsn
    let results = Received<Result<LogSequenceNumber?, EngineError>>()
    engine.submit(draft) { results.add($0) }
    engine.transact(at: draft.write.path, refused: { results.add(.failure($0)) }) { _ in
      TransactionDecision(draft) { _ in results.add(.success(nil)) }
    }
    let judge = FixedJudge(isAllowed: true)
    engine.submit(EncodedWrite(draft), judge: judge) { results.add($0) }
    engine.pump()
    #expect(results.all.count == 3 && engine.head.lsn == lsn, "chunk \(chunk)")
    for result in results.all { #expect(throws: EngineError.self) { try result.get() } }
  }

  @Test("a chunk that the disk refuses for a while is read when it can be")
  func refusedForAWhile() throws {
    let disk = SimulatedDisk(seed: 1)
    let root = try Self.database(disk)
    let engine = try Self.open(disk)
    disk.inject(
      DiskFault(
        .error(SystemError.inputOutput.code), of: [.read], at: 1, isPermanent: true,
        pathPart: ".checkpoint"))
    #expect(throws: EngineError.self) { try engine.view(at: path("o7")) }
    expectRefusal(of: try set("o7/leaf0/new", .bool(true)), engine, 0)
    disk.removeFaults()
    #expect(try engine.wholeHead().root == root)
    try engine.close()
  }

  @Test("pages stay readable when their checkpoint is removed")
  func removed() throws {
    let disk = SimulatedDisk(seed: 1)
    var expected = try Self.database(disk)
    let engine = try Self.open(disk)
    let first = try Self.checkpoint(disk).lsn
    let held = engine.head.root
    for number in 0..<3 {
      engine.submit(try set("n", .integer(Int64(number))), completion: nil)
      _ = expected.apply(.set(try path("n"), Node(.integer(Int64(number)))))
      engine.pump()
      try engine.checkpoint()
    }
    #expect(engine.statistics().unreadChunkCount > 0)
    #expect(
      try !DatabaseDirectory.open("/db", environment: disk.environment, mode: .readOnly)
        .contents().checkpoints.contains(first))
    #expect(try engine.wholeHead().root == expected)
    #expect(held.childCount == 31)
    try engine.close()
  }

  @Test("a reader beside the writer, and a state of the past")
  func readers() throws {
    let disk = SimulatedDisk(seed: 1)
    let root = try Self.database(disk)
    let writer = try Self.open(disk)
    let reader = try Engine.open(
      at: "/db", options: Self.options(), environment: disk.environment, mode: .readOnly)
    let old = try reader.node(at: try path("o3"))
    writer.submit(try set("o3/leaf1", .integer(1)), completion: nil)
    writer.pump()
    try writer.checkpoint()
    try reader.refresh()
    // A node of the state before is read from the file of that state.
    #expect(try old.whole() == root.node(at: path("o3")))
    #expect(try reader.view(at: path("o3/leaf1")).scalar == .integer(1))
    #expect(try reader.state(at: .time(.max))?.root == (try writer.wholeHead().root))
    try reader.close()
    try writer.close()
  }
}
