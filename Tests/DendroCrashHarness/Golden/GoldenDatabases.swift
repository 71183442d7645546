import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import DendroTestSupport

/// G19: one database for each thing that the format can say. From format version 1 on those of every
/// version are kept and must open for ever; those of version 0 are made again when it changes.
package enum GoldenDatabases {
  package static func all() throws -> [GoldenDatabase] {
    try [
      empty(), writes(), segments(), checkpoints(), behindACheckpoint(), history(), torn(),
      killed(), unsealed(), unreadableCheckpoint(), shortRecords(),
      secondRoot(),
    ]
  }

  // MARK: Databases

  /// Opened and closed.
  private static func empty() throws -> GoldenDatabase {
    let run = try GoldenRun(1)
    try run.close()
    return try run.database("empty")
  }

  /// Every kind of write and value, in one segment that was closed in order.
  private static func writes() throws -> GoldenDatabase {
    let run = try GoldenRun(2)
    try run.write(GoldenWrites.everyKind())
    try run.close()
    return try run.database("writes")
  }

  /// Several segments with their seals, and idle records of several openings in between.
  private static func segments() throws -> GoldenDatabase {
    let run = try GoldenRun(3)
    for part in UInt64(0)..<4 {
      try run.write(GoldenWrites.random(part, count: 12))
      if part == 2 { try run.reopen() }
      try run.engine.roll()
    }
    try run.write(GoldenWrites.random(9, count: 3))
    try run.close()
    return try run.database("segments")
  }

  /// Two checkpoints, and the log from the older one on.
  private static func checkpoints() throws -> GoldenDatabase {
    let run = try GoldenRun(4)
    try run.write(GoldenWrites.everyKind())
    for part in UInt64(10)..<13 {
      try run.write(GoldenWrites.random(part, count: 20))
      try run.engine.checkpoint()
    }
    try run.write(GoldenWrites.random(14, count: 5))
    try run.close()
    return try run.database("checkpoints")
  }

  /// Nothing in the log behind the newest checkpoint.
  private static func behindACheckpoint() throws -> GoldenDatabase {
    let run = try GoldenRun(5)
    try run.write(GoldenWrites.random(20, count: 30))
    try run.engine.checkpoint()
    try run.close()
    return try run.database("behind-a-checkpoint")
  }

  /// All history, with checkpoints to begin from.
  private static func history() throws -> GoldenDatabase {
    let run = try GoldenRun(6, history: .all)
    for part in UInt64(30)..<34 {
      try run.write(GoldenWrites.random(part, count: 10))
      try run.engine.checkpoint()
    }
    try run.write(GoldenWrites.random(40, count: 4))
    try run.close()
    return try run.database("history", hasPast: true)
  }

  /// The last record was cut short by a crash: the writes in it never happened.
  private static func torn() throws -> GoldenDatabase {
    let run = try GoldenRun(7)
    try run.write(GoldenWrites.random(50, count: 8))
    let kept = run.engine.head
    let size = try run.contentByteCount()
    try run.write([.set(Path("lost"), Node(.string(String(repeating: "never ", count: 20))))])
    run.kill()
    run.disk.resize(run.lastSegment, to: size + 40)
    return try run.database("torn", head: kept)
  }

  /// Killed between two writes, with space taken ahead.
  private static func killed() throws -> GoldenDatabase {
    let run = try GoldenRun(8)
    try run.write(GoldenWrites.random(60, count: 8))
    let head = run.engine.head
    run.kill()
    return try run.database("killed", head: head)
  }

  /// A crash in a roll: the successor is there, the seal is not.
  private static func unsealed() throws -> GoldenDatabase {
    let run = try GoldenRun(9)
    try run.write(GoldenWrites.random(70, count: 8))
    let head = run.engine.head
    let segment = run.lastSegment
    let size = try run.contentByteCount()
    try run.engine.roll()
    run.kill()
    run.disk.resize(segment, to: size)
    return try run.database("unsealed", head: head)
  }

  /// The newest checkpoint cannot be read: the older one serves.
  private static func unreadableCheckpoint() throws -> GoldenDatabase {
    let run = try GoldenRun(10)
    for part in UInt64(80)..<82 {
      try run.write(GoldenWrites.random(part, count: 10))
      try run.engine.checkpoint()
    }
    try run.write(GoldenWrites.random(83, count: 3))
    let head = run.engine.head
    try run.close()
    guard let newest = run.disk.checkpointPaths.last else {
      preconditionFailure("two checkpoints were taken")
    }
    run.disk.flipBit(8 * 100, of: newest)
    return try run.database("unreadable-checkpoint", head: head, verifyStatus: 2)
  }

  /// Sets that are commits of their own, some of which have their beginning in common.
  private static func shortRecords() throws -> GoldenDatabase {
    let run = try GoldenRun(11)
    for part in 0..<3 {
      for number in 0..<8 {
        let path = Path("posts/-N\(number / 3)post/\(["uid", "title", "stars"][number % 3])")
        try run.write([
          .set(path, Node(number % 3 == 2 ? .integer(Int64(part)) : .string("value \(number)")))
        ])
      }
      if part == 0 { try run.reopen() }
      if part == 1 { try run.engine.roll() }
    }
    try run.close()
    return try run.database("short-records")
  }

  /// Writes to the second root: with the data and alone, with who made them, before and behind a checkpoint of both.
  private static func secondRoot() throws -> GoldenDatabase {
    let run = try GoldenRun(12)
    try run.write(GoldenWrites.random(90, count: 6))
    try run.writeBoth(GoldenWrites.random(91, count: 6))
    try run.engine.checkpoint()
    try run.writeBoth(GoldenWrites.random(92, count: 6))
    let (head, system) = (run.engine.head, run.engine.systemNode(at: .root))
    try run.close()
    return try run.database("second-root", head: head, system: system)
  }
}

/// One engine on a simulated disk, driven step by step.
private final class GoldenRun {
  let disk: SimulatedDisk
  private var options: EngineOptions
  private(set) var engine: Engine
  private var states: [Node] = [.empty]

  init(_ seed: UInt64, history: HistoryRetention = .none) throws {
    disk = SimulatedDisk(seed: seed)
    options = EngineRecording.options()
    options.history = history
    engine = try EngineRecording.open(disk, options)
  }

  func write(_ writes: [Write]) throws {
    let session = Session(engine, disk)
    for write in writes {
      let before = engine.head.lsn
      session.submit(write, expecting: nil)
      engine.pump()
      for answer in session.takeAnswers() {
        // Drawn where nothing is that could have a priority.
        if case .failure(.noData) = answer.result { continue }
        _ = try answer.result.get()
      }
      if engine.head.lsn > before { states.append(engine.head.root) }
    }
    engine.setObserver(nil)
  }

  /// Makes each write, and notes it in the second root: the write itself, and of every third one its number alone.
  func writeBoth(_ writes: [Write]) throws {
    for (number, write) in writes.enumerated() {
      let kept = Node(keeping: EncodedWrite(write))
      let change = Write.set(
        Path("kept/\(engine.head.lsn)"), number % 3 == 2 ? Node(.integer(Int64(number))) : kept)
      engine.submit(
        EncodedWrite(
          number % 3 == 1 ? nil : EncodedWrite(write), system: EncodedWrite(change),
          origin: number % 2 == 0
            ? WriteOrigin(client: Array("client".utf8), number: UInt64(number)) : nil),
        completion: nil)
      engine.pump()
    }
  }

  func reopen() throws {
    try engine.close()
    engine = try EngineRecording.open(disk, options)
  }

  func close() throws { try engine.close() }

  /// What was written stays, but nothing is put in order any more.
  func kill() { disk.disconnect() }

  var lastSegment: String { disk.segmentPaths.last ?? "" }

  /// Bytes of the last segment up to the zeros behind its records.
  func contentByteCount() throws -> Int {
    let bytes = disk.contents(of: lastSegment) ?? []
    return (bytes.lastIndex { $0 != 0 } ?? 0) + 1
  }

  func database(
    _ name: String, head: (root: Node, lsn: LogSequenceNumber)? = nil, system: Node? = nil,
    verifyStatus: Int32 = 0, hasPast: Bool = false
  ) throws -> GoldenDatabase {
    let (root, lsn) =
      head ?? (states[states.count - 1], LogSequenceNumber(UInt64(states.count) - 1))
    var facts = GoldenFacts(
      format: FileFormat.newestVersion, lastLSN: lsn.rawValue, leafCount: root.leafCount(),
      contentHash: CheckpointCoding.contentHash(of: root), verifyStatus: verifyStatus)
    facts.systemHash = system.map { CheckpointCoding.contentHash(of: $0) }
    for lsn in stride(from: 0, to: hasPast ? states.count : 0, by: 5) {
      let hash = CheckpointCoding.contentHash(of: states[lsn])
      facts.history.append(.init(lsn: UInt64(lsn), contentHash: hash))
    }
    let names = disk.names(in: EngineRecording.directory).filter { !$0.hasSuffix(".lock") }
    return GoldenDatabase(
      name: name,
      files: names.map { ($0, disk.contents(of: "\(EngineRecording.directory)/\($0)") ?? []) },
      facts: facts)
  }
}

private enum GoldenWrites {
  static func random(_ seed: UInt64, count: Int) -> [Write] {
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = 12
    var writes = (0..<count).map { _ in generator.write() }
    // No write of nothing, which has no number, at the beginning.
    writes[0] = .set(Path("seed"), Node(.integer(Int64(seed)), priority: .double(0.5)))
    return writes
  }

  static func everyKind() -> [Write] {
    let long = String(repeating: "k", count: Limits.keyBytes)
    let deep = Path(keys: (0..<Limits.depth).map { Key(of: "level-\($0)") })
    let scalars: [Scalar] = [
      .bool(false), .bool(true), .integer(0), .integer(-1), .integer(.max), .integer(.min),
      .double(0.1), .double(-0.0), .double(.greatestFiniteMagnitude),
      .double(.leastNonzeroMagnitude),
      .double(0x1p60), .string(""), .string("leaf"), .string("über 🌲 \u{FF21}\u{10000}\u{0}"),
      .string(String(repeating: "a long value, again and again; ", count: 1500)),
    ]
    var object = NodeBuilder()
    for (index, scalar) in scalars.enumerated() {
      let priorities: [Scalar?] = [
        nil, .integer(7), .double(-2.5), .string("priority"), .string(""),
      ]
      object.append(Key(of: "v\(index)"), Node(scalar, priority: priorities[index % 5]))
    }
    var wide = NodeBuilder()
    for index in 0..<700 {
      wide.append(Key(of: "w\(index * 37 % 700)"), Node(.integer(Int64(index))))
    }
    var keys = NodeBuilder()
    for key in [
      "0", "-0", "00", "1", "-1", "2147483647", "-2147483648", "2147483648", "é", "e\u{301}",
      "\u{FF21}", "\u{10000}", "a key", long,
    ] {
      keys.append(Key(of: key), Node(.string(key)))
    }
    return [
      .set(Path("values"), object.finish(priority: .string("branch"))),
      .set(Path("keys"), keys.finish()),
      .set(Path("wide"), wide.finish(priority: .integer(3))),
      .set(deep, Node(.bool(true))),
      .increment(Path("counter"), .integer(5)), .increment(Path("counter"), .double(0.25)),
      .increment(Path("values/v4"), .integer(1)),
      .setPriority(Path("wide"), nil), .setPriority(Path("counter"), .double(1.5)),
      .update(
        Path("mixed"),
        [
          .init(path: Path("a/b"), action: .set(Node(.string("x"), priority: .integer(1)))),
          .init(path: Path("a/c"), action: .increment(.integer(-3))),
          .init(path: Path("d"), action: .set(keys.finish())),
        ]),
      .update(
        .root,
        [
          .init(path: Path("mixed/d"), action: .remove),
          .init(path: Path("mixed/a"), action: .setPriority(.string("p"))),
          .init(path: Path("new"), action: .set(Node(.double(2)))),
        ]),
      .remove(Path("wide/w3")), .remove(Path("values/v2")), .setPriority(.root, .integer(9)),
    ]
  }
}
