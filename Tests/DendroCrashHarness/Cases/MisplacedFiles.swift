import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// Whole files and records where they do not belong, and two damages at once: each is refused, or what
/// is served is right.
package enum MisplacedFiles {
  package static let sweep = Sweep.cases(
    "misplaced",
    [
      Case("segments that are gone, without a checkpoint", gaps),
      Case("a segment under another name", renamedSegment),
      Case("a checkpoint under another name", renamedCheckpoint),
      Case("a record behind the end of the log", misplacedRecords),
      Case("the other's segment behind a common beginning", otherSegment),
      Case("a checkpoint of another database", otherCheckpoint),
      Case("a checkpoint in the middle of a record", laterCheckpoint),
      Case("the log cut before its checkpoint") { try cutLog(isDamaged: false) },
      Case("the log cut before a checkpoint that cannot be read") { try cutLog(isDamaged: true) },
      Case("two chunks of a checkpoint in each other's place", swappedChunks),
      Case("one damaged checkpoint after the other", damagedTwice),
      Case("zeros in the middle of the log", zeros),
      Case("a damaged last record after an orderly end", lastRecord),
    ])

  @Sendable private static func gaps() throws -> String? {
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
      if let problem = refusal(of: disk) {
        return "without \(String(subset, radix: 2)): \(problem)"
      }
    }
    return nil
  }

  @Sendable private static func renamedSegment() throws -> String? {
    let recording = try EngineRecording(
      seed: 1, steps: [.set("a", .integer(1)), .roll, .set("b", .integer(2))])
    for path in recording.disk.segmentPaths {
      let disk = recording.disk.copy()
      disk.relabel(path, as: EngineRecording.directory + "/00000000000000000007.log")
      if let problem = refusal(of: disk) { return problem }
    }
    return nil
  }

  @Sendable private static func renamedCheckpoint() throws -> String? {
    let recording = try EngineRecording(
      seed: 1, steps: [.set("a", .integer(1)), .set("b", .integer(2)), .checkpoint])
    let disk = recording.disk.copy()
    disk.relabel(
      disk.checkpointPaths[0], as: EngineRecording.directory + "/00000000000000000001.checkpoint")
    let engine = try EngineRecording.open(disk)
    if engine.head.root != recording.trees.last { return "another tree" }
    return engine.report.unreadableCheckpoints.count == 1 ? nil : "was used"
  }

  /// What a disk that writes to the wrong place leaves: nothing durable is missing, so nothing is refused.
  @Sendable private static func misplacedRecords() throws -> String? {
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
      return "\(records.count) records"
    }
    for record in records {
      let disk = recording.disk.copy()
      disk.overwrite(
        path, at: bytes.count, with: Array(bytes[Int(record.offset)..<Int(record.endOffset)]))
      do throws(EngineError) {
        let engine = try EngineRecording.open(disk)
        if engine.head.root != recording.trees.last { return "another tree" }
      } catch {
        return "a copy of the record at \(record.offset): \(error)"
      }
    }
    return nil
  }

  /// Two that went on from one database, and began a segment each at the same write.
  @Sendable private static func otherSegment() throws -> String? {
    let base = try EngineRecording(seed: 21, steps: [.set("a", .integer(1))])
    let one = try EngineRecording(seed: 31, steps: [.roll, .set("b", .integer(2))], after: base)
    let other = try EngineRecording(seed: 32, steps: [.roll, .set("b", .integer(3))], after: base)
    let path = one.disk.segmentPaths[1]
    let disk = one.disk.copy()
    disk.replace(path, with: other.disk.contents(of: path) ?? [])
    return refusal(of: disk)
  }

  @Sendable private static func otherCheckpoint() throws -> String? {
    let one = try EngineRecording(seed: 1, steps: [.set("a", .integer(1)), .checkpoint])
    let other = try EngineRecording(seed: 2, steps: [.set("a", .integer(2)), .checkpoint])
    let path = one.disk.checkpointPaths[0]
    let disk = one.disk.copy()
    disk.replace(path, with: other.disk.contents(of: path) ?? [])
    return refusal(of: disk)
  }

  /// A checkpoint that was copied in from where the log was rolled for it: here a record lies across it.
  @Sendable private static func laterCheckpoint() throws -> String? {
    // All in one record.
    let increments = Array(repeating: Write.increment(Path("n"), .integer(1)), count: 5)
    let one = try EngineRecording(seed: 1, steps: [.write(increments)])
    let other = try EngineRecording(seed: 1, steps: [.write(Array(increments[..<3])), .checkpoint])
    let path = other.disk.checkpointPaths[0]
    let disk = one.disk.copy()
    try disk.make(path, other.disk.contents(of: path) ?? [])
    let engine = try EngineRecording.open(disk)
    if engine.report.checkpointLSN != LogSequenceNumber(3) { return "the checkpoint is not used" }
    return engine.head.root == one.trees.last ? nil : "another tree"
  }

  /// Whether the newest checkpoint can be read or not: what it proves durable is there, or is missed.
  private static func cutLog(isDamaged: Bool) throws -> String? {
    let recording = try EngineRecording(
      seed: 1,
      steps: [
        .set("a", .integer(1)), .checkpoint, .set("b", .integer(2)), .set("c", .integer(3)),
        .checkpoint,
      ])
    let paths = recording.disk.segmentPaths
    let newest = recording.disk.checkpointPaths.last ?? ""
    guard paths.count == 2, let size = recording.disk.contents(of: paths[0])?.count else {
      return "\(paths)"
    }
    for length in 64...size {
      let disk = recording.disk.copy()
      if isDamaged { disk.flipBit(70 * 8, of: newest) }
      disk.erase(paths[1])
      disk.resize(paths[0], to: length)
      do throws(EngineError) {
        let head = try EngineRecording.open(disk).head
        if head.root != recording.trees.last || head.lsn != LogSequenceNumber(3) {
          return "cut to \(length) bytes: served up to write \(head.lsn)"
        }
      } catch {
        guard case .storage(.corrupt) = error else { return "refused as \(error)" }
      }
    }
    return nil
  }

  /// Each is whole and of the same size; the tree would be another one.
  @Sendable private static func swappedChunks() throws -> String? {
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
    guard places.count == 3, places[1] - places[0] == places[2] - places[1],
      let bytes = disk.contents(of: path)
    else { return "chunks at \(places)" }
    disk.overwrite(path, at: places[0], with: Array(bytes[places[1]..<places[2]]))
    disk.overwrite(path, at: places[1], with: Array(bytes[places[0]..<places[1]]))
    let engine = try EngineRecording.open(disk)
    if engine.head.root != recording.trees.last { return "another tree" }
    return engine.report.unreadableCheckpoints.count == 1 ? nil : "was used"
  }

  /// After the newest could not be read, two readable ones are kept again.
  @Sendable private static func damagedTwice() throws -> String? {
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
    guard let newest = disk.checkpointPaths.last else { return "no checkpoint" }
    disk.flipBit(70 * 8, of: newest)
    let again = try EngineRecording.open(disk)
    return again.head.root == root ? nil : "another tree"
  }

  /// A sector that reads as zeros: what was durable is missed, wherever it lies.
  @Sendable private static func zeros() throws -> String? {
    let recording = try EngineRecording(
      seed: 1, steps: (0..<8).map { .set("a/\($0)", .string("text number \($0)")) })
    let path = recording.disk.segmentPaths[0]
    let size = recording.disk.contents(of: path)?.count ?? 0
    // Not so late that the last record and the mark that proves it durable go together.
    for start in 64..<max(64, size - 64) {
      let disk = recording.disk.copy()
      disk.overwrite(path, at: start, with: Array(repeating: 0, count: 32))
      do throws(EngineError) {
        if try EngineRecording.open(disk).head.root != recording.trees.last {
          return "zeros at \(start): another tree"
        }
      } catch {
        guard case .storage(.corrupt) = error else { return "zeros at \(start): \(error)" }
      }
    }
    return nil
  }

  /// The end was orderly, so all that was there is missed.
  @Sendable private static func lastRecord() throws -> String? {
    let recording = try EngineRecording(
      seed: 1, steps: [.set("a", .integer(1)), .set("b", .string("the last one"))])
    let path = recording.disk.segmentPaths[0]
    let text = Array("the last one".utf8)
    guard let bytes = recording.disk.contents(of: path),
      let place = bytes.indices.first(where: { bytes[$0...].starts(with: text) })
    else { return "no such text" }
    let disk = recording.disk.copy()
    disk.flipBit(place * 8, of: path)
    return refusal(of: disk)
  }
}
