import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// Whole files and records where they do not belong, and two damages at once: each is refused, or what
/// is served is right.
package enum MisplacedFiles {
  package static let scenarios = [
    Scenario("segments that are gone, without a checkpoint", gaps),
    Scenario("a segment under another name", renamedSegment),
    Scenario("a checkpoint under another name", renamedCheckpoint),
    Scenario("a record behind the end of the log", misplacedRecords),
    Scenario("the other's segment behind a common beginning", otherSegment),
    Scenario("a checkpoint of another database", otherCheckpoint),
    Scenario("the past of another database", otherPast),
    Scenario("a checkpoint of a fork", forkedCheckpoint),
    Scenario("a checkpoint in the middle of a record", laterCheckpoint),
    Scenario("the log cut before its checkpoint") { try cutLog(isDamaged: false) },
    Scenario("the log cut before a checkpoint that cannot be read") {
      try cutLog(isDamaged: true)
    },
    Scenario("two chunks of a checkpoint in each other's place", swappedChunks),
    Scenario("one damaged checkpoint after the other", damagedTwice),
    Scenario("zeros in the middle of the log", zeros),
    Scenario("a damaged last record after an orderly end", lastRecord),
  ]

  @Sendable private static func gaps() throws {
    let recording = try EngineRecording(
      seed: 1,
      steps: [
        .set("a", .integer(1)), .roll, .set("b", .integer(2)), .roll, .set("c", .integer(3)), .roll,
        .set("d", .integer(4)),
      ])
    let paths = recording.disk.segmentPaths
    // Without any file it is a new database.
    for subset in 1..<(1 << paths.count) - 1 {
      let disk = recording.disk.copy()
      for (index, path) in paths.enumerated() where subset >> index & 1 == 1 { disk.erase(path) }
      try requireRefusal(of: disk, "without \(String(subset, radix: 2))")
    }
  }

  @Sendable private static func renamedSegment() throws {
    let recording = try EngineRecording(
      seed: 1, steps: [.set("a", .integer(1)), .roll, .set("b", .integer(2))])
    for path in recording.disk.segmentPaths {
      let disk = recording.disk.copy()
      disk.relabel(path, as: EngineRecording.directory + "/00000000000000000007.log")
      try requireRefusal(of: disk)
    }
  }

  @Sendable private static func renamedCheckpoint() throws {
    let recording = try EngineRecording(
      seed: 1, steps: [.set("a", .integer(1)), .set("b", .integer(2)), .checkpoint])
    let disk = recording.disk.copy()
    disk.relabel(
      disk.checkpointPaths[0], as: EngineRecording.directory + "/00000000000000000001.checkpoint")
    let engine = try EngineRecording.open(disk)
    if engine.head.root != recording.trees.last { throw Violation("another tree") }
    try require(engine.report.unreadableCheckpoints.count == 1, "was used")
  }

  /// What a disk that writes to the wrong place leaves: nothing durable is missing, so nothing is refused.
  @Sendable private static func misplacedRecords() throws {
    let recording = try EngineRecording(
      seed: 1, steps: (0..<4).map { .set("a/\($0)", .integer(Int64($0))) })
    let path = recording.disk.segmentPaths[0]
    let reading = recording.disk.copy()
    let directory = try DatabaseDirectory.open(
      EngineRecording.directory, environment: reading.environment, mode: .readOnly)
    var records: [RecordInfo] = []
    let cursor = LogCursor(directory)
    while try cursor.step({ if case .record(let record, _, _) = $0 { records.append(record) } }) {}
    directory.close()
    guard records.count >= 4, let bytes = reading.contents(of: path) else {
      throw Violation("\(records.count) records")
    }
    for record in records {
      let disk = recording.disk.copy()
      disk.overwrite(
        path, at: bytes.count, with: Array(bytes[Int(record.offset)..<Int(record.endOffset)]))
      try inContext("a copy of the record at \(record.offset)") {
        let engine = try EngineRecording.open(disk)
        try require(engine.head.root == recording.trees.last, "another tree")
      }
    }
  }

  /// Two forks of one database, each of which began a segment at the same write.
  @Sendable private static func otherSegment() throws {
    let base = try EngineRecording(seed: 21, steps: [.set("a", .integer(1))])
    let one = try EngineRecording(seed: 31, steps: [.roll, .set("b", .integer(2))], after: base)
    let other = try EngineRecording(seed: 32, steps: [.roll, .set("b", .integer(3))], after: base)
    let path = one.disk.segmentPaths[1]
    let disk = one.disk.copy()
    disk.replace(path, with: other.disk.contents(of: path) ?? [])
    try requireRefusal(of: disk)
  }

  @Sendable private static func otherCheckpoint() throws {
    let one = try EngineRecording(seed: 1, steps: [.set("a", .integer(1)), .checkpoint])
    let other = try EngineRecording(seed: 2, steps: [.set("a", .integer(2)), .checkpoint])
    let path = one.disk.checkpointPaths[0]
    let disk = one.disk.copy()
    disk.replace(path, with: other.disk.contents(of: path) ?? [])
    // It is passed over, and the log from its beginning on serves.
    let engine = try EngineRecording.open(disk)
    try require(engine.head.root == one.trees.last, "another tree")
    try require(engine.report.unreadableCheckpoints.count == 1, "was used")
  }

  /// What an opening does not read, and the past does.
  @Sendable private static func otherPast() throws {
    func database(_ value: Int64, seed: UInt64) throws -> SimulatedDisk {
      let disk = SimulatedDisk(seed: seed)
      var options = EngineRecording.options()
      options.history = .all
      let engine = try Engine.open(
        at: EngineRecording.directory, options: options, environment: disk.environment)
      for number in 0..<3 {
        try engine.put("a", .integer(value + Int64(number)))
        try engine.roll()
      }
      try engine.checkpoint()
      try engine.close()
      return disk
    }
    let disk = try database(10, seed: 1)
    let path = disk.segmentPaths[0]
    disk.replace(path, with: try database(20, seed: 2).contents(of: path) ?? [])
    let engine = try Engine.open(
      at: EngineRecording.directory, environment: disk.environment, mode: .readOnly)
    try require(engine.integer(at: "a") == 12, "another tree")
    let error = try requireError("the past was read") { () throws(EngineError) in
      try engine.root(at: HistoryPoint.lsn(LogSequenceNumber(1)), isCancelled: { false })
    }
    guard case .storage(.corrupt(path: path, _, _, _)) = error else { throw Violation("\(error)") }
  }

  /// Two that went on from one database, and took a checkpoint each at the same write.
  @Sendable private static func forkedCheckpoint() throws {
    let base = try EngineRecording(seed: 21, steps: [.set("a", .integer(1))])
    let one = try EngineRecording(
      seed: 31, steps: [.set("b", .integer(2)), .checkpoint], after: base)
    let other = try EngineRecording(
      seed: 32, steps: [.set("b", .integer(3)), .checkpoint], after: base)
    let path = one.disk.checkpointPaths[0]
    try require(path == other.disk.checkpointPaths[0], "the checkpoints have other names")
    let disk = one.disk.copy()
    disk.replace(path, with: other.disk.contents(of: path) ?? [])
    let engine = try EngineRecording.open(disk)
    try require(engine.head.root == one.trees.last, "another tree")
    try require(engine.report.unreadableCheckpoints.count == 1, "was used")
  }

  /// A checkpoint of a write in the middle of a record.
  @Sendable private static func laterCheckpoint() throws {
    // All in one record.
    let increments = Array(repeating: Write.increment(Path("n"), .integer(1)), count: 5)
    let one = try EngineRecording(seed: 1, steps: [.write(increments)])
    let other = try EngineRecording(seed: 1, steps: [.write(Array(increments[..<3])), .checkpoint])
    let disk = one.disk.copy()
    let directory = try DatabaseDirectory.open(
      EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: false))
    guard let end = try LogReader.read(directory, visit: { _, _ in }), let tree = other.trees.last
    else { throw Violation("there is no log") }
    _ = try CheckpointCoding.write(
      TreeRoots(data: tree), lsn: LogSequenceNumber(3), time: 0, databaseID: end.databaseID,
      to: directory,
      isCancelled: { false })
    directory.close()
    let engine = try EngineRecording.open(disk)
    if engine.report.checkpointLSN != LogSequenceNumber(3) {
      throw Violation("the checkpoint is not used")
    }
    try require(engine.head.root == one.trees.last, "another tree")
  }

  /// Whether the newest checkpoint can be read or not: what it proves durable is there, or is missed.
  private static func cutLog(isDamaged: Bool) throws {
    let recording = try EngineRecording(
      seed: 1,
      steps: [
        .set("a", .integer(1)), .checkpoint, .set("b", .integer(2)), .set("c", .integer(3)),
        .checkpoint,
      ])
    let paths = recording.disk.segmentPaths
    let newest = recording.disk.checkpointPaths.last ?? ""
    guard paths.count == 2, let size = recording.disk.contents(of: paths[0])?.count else {
      throw Violation("\(paths)")
    }
    for length in 64...size {
      let disk = recording.disk.copy()
      if isDamaged { disk.flipBit(70 * 8, of: newest) }
      disk.erase(paths[1])
      disk.resize(paths[0], to: length)
      do {
        let head = try EngineRecording.open(disk).head
        try require(
          head.root == recording.trees.last && head.lsn == LogSequenceNumber(3),
          "cut to \(length) bytes: served up to write \(head.lsn)")
      } catch let error as EngineError where error.isDamage {}
    }
  }

  /// Each is whole and of the same size; the tree would be another one.
  @Sendable private static func swappedChunks() throws {
    var random = SeededRandomness(seed: 3)
    let steps: [Step] = (0..<3).map { index in
      let bytes = (0..<300_000).map { _ in UInt8.random(in: 0x21...0x7e, using: &random) }
      return .set("k\(index)", .string(String(decoding: bytes, as: UTF8.self)))
    }
    let recording = try EngineRecording(seed: 1, steps: steps + [.checkpoint])
    let disk = recording.disk.copy()
    let path = disk.checkpointPaths[0]
    let directory = try DatabaseDirectory.open(
      EngineRecording.directory, environment: disk.environment, mode: .readOnly)
    let reader = try CheckpointReader.open(directory, lsn: LogSequenceNumber(3))
    let places = (0..<reader.chunkCount).map { Int(reader.offset(ofChunk: $0)) }
    directory.close()
    guard places.count == 4, places[1] - places[0] == places[2] - places[1],
      let bytes = disk.contents(of: path)
    else { throw Violation("chunks at \(places)") }
    disk.overwrite(path, at: places[0], with: Array(bytes[places[1]..<places[2]]))
    disk.overwrite(path, at: places[1], with: Array(bytes[places[0]..<places[1]]))
    let part = try EngineRecording.open(disk)
    for key in ["k0", "k1"] {
      _ = try requireError("served") { () throws(EngineError) in try part.view(at: Path(key)) }
    }
    try require(try part.view(at: Path("k2")) == recording.trees[3].node(at: Path("k2")), "k2")
    try part.close()
    let engine = try EngineRecording.open(disk, EngineRecording.whole())
    if engine.head.root != recording.trees.last { throw Violation("another tree") }
    try require(engine.report.unreadableCheckpoints.count == 1, "was used")
  }

  /// After the newest could not be read, two readable ones are kept again.
  @Sendable private static func damagedTwice() throws {
    let recording = try EngineRecording(
      seed: 1,
      steps: [.set("a", .integer(1)), .checkpoint, .set("b", .integer(2)), .checkpoint])
    let disk = recording.disk.copy()
    disk.flipBit(70 * 8, of: disk.checkpointPaths[1])
    let engine = try EngineRecording.open(disk)
    engine.submit(Draft(.set(Path("c"), Node(.integer(3)))), completion: nil)
    engine.pump()
    try engine.checkpoint()
    let root = engine.head.root
    try engine.close()
    guard let newest = disk.checkpointPaths.last else { throw Violation("no checkpoint") }
    disk.flipBit(70 * 8, of: newest)
    let again = try EngineRecording.open(disk)
    try require(again.head.root == root, "another tree")
  }

  /// A sector that reads as zeros: what was durable is missed, wherever it lies.
  @Sendable private static func zeros() throws {
    let recording = try EngineRecording(
      seed: 1, steps: (0..<8).map { .set("a/\($0)", .string("text number \($0)")) })
    let path = recording.disk.segmentPaths[0]
    let size = recording.disk.contents(of: path)?.count ?? 0
    // Not so late that the last record and the idle record that proves it durable go together.
    for start in 64..<max(64, size - 64) {
      let disk = recording.disk.copy()
      disk.overwrite(path, at: start, with: Array(repeating: 0, count: 32))
      try inContext("zeros at \(start)") {
        do {
          let root = try EngineRecording.open(disk).head.root
          try require(root == recording.trees.last, "another tree")
        } catch let error as EngineError where error.isDamage {}
      }
    }
  }

  /// The end was orderly, so all that was there is missed.
  @Sendable private static func lastRecord() throws {
    let recording = try EngineRecording(
      seed: 1, steps: [.set("a", .integer(1)), .set("b", .string("the last one"))])
    let path = recording.disk.segmentPaths[0]
    let text = Array("the last one".utf8)
    guard let bytes = recording.disk.contents(of: path),
      let place = bytes.indices.first(where: { bytes[$0...].starts(with: text) })
    else { throw Violation("no such text") }
    let disk = recording.disk.copy()
    disk.flipBit(place * 8, of: path)
    try requireRefusal(of: disk)
  }
}
