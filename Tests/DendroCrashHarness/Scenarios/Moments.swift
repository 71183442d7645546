import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Dispatch
import Synchronization

/// What another process or thread does at the worst moment: between two calls of the engine.
package enum Moments {
  package static let scenarios = [
    Scenario("the lock file is replaced before it is locked", lockReplaced),
    Scenario("a reader comes while files are removed", readerWaits),
    Scenario("a reader finds what is half written") { try halfWritten(repeats: 1, isShort: true) },
    Scenario("a reader finds a compressed block half written") {
      try halfWritten(repeats: 8, isShort: false)
    },
    Scenario("a reader finds the end of a segment", rolledMeanwhile),
    Scenario("the directory is lost while a checkpoint is written", checkpointElsewhere),
    Scenario("the checkpoint is damaged before the rest is purged", purgeDamaged),
    Scenario("a write gathers while the disk refuses", gathered),
    Scenario("a write comes while the engine is closed", late),
    Scenario("a write comes while too much waits for the disk", backlog),
    Scenario("a write that does nothing", nothingWritten),
    Scenario("a follower ahead of the disk", followerAhead),
  ]

  private static let directory = EngineRecording.directory

  @Sendable private static func lockReplaced() throws {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let between = InterposedDisk(disk)
    let other = Mutex<Engine?>(nil)
    between.interpose(before: .lock, on: "dendro.lock") {
      try? disk.rename(directory + "/dendro.lock", to: directory + "/elsewhere")
      let engine = try? EngineRecording.open(disk)
      other.withLock { $0 = engine }
    }
    let error = try requireError("was let in beside another") { () throws(EngineError) in
      try between.open()
    }
    guard case .storage(.locked) = error else { throw Violation("refused as \(error)") }
    try require(other.withLock { $0 } != nil, "the other one was not let in")
  }

  @Sendable private static func readerWaits() throws {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let lock = try disk.open(directory + "/readers.lock", .readWrite)
    guard try lock.lock(.exclusive) else { throw Violation("the lock is not free") }
    let held = Mutex<(any File)?>(lock)
    let between = InterposedDisk(disk)
    try withExtendedLifetime(held) {
      between.interpose(before: .lock, on: "readers.lock", number: 2) {
        held.withLock { file in
          // Closing would release it, but there are two references.
          _ = try? file?.lock(.shared)
          file = nil
        }
      }
      try between.open(mode: .readOnly).close()
    }
  }

  /// A writer is in the middle of an append: part of what is read is old, part is new, and what comes
  /// later says already that it is durable.
  @Sendable private static func halfWritten(repeats: Int, isShort: Bool) throws {
    let recording = try EngineRecording(
      seed: 1,
      steps: (0..<5).map { number in
        let texts = (0..<repeats).map {
          "the same words again and again, \(number + $0) and \(number * number + 13)"
        }
        return .set("texts/\(number)", .string(texts.joined(separator: "; ")))
      })
    let path = recording.disk.segmentPaths[0]
    var records: [RecordInfo] = []
    let reading = try DatabaseDirectory.open(
      directory, environment: recording.disk.copy().environment, mode: .readOnly)
    let cursor = LogCursor(reading)
    while try cursor.step({ if case .record(let record, _, _) = $0 { records.append(record) } }) {}
    reading.close()
    guard records.count == 6, let bytes = recording.disk.contents(of: path) else {
      throw Violation("\(records.count) records")
    }
    let hasRightForm = records[1...4].allSatisfy { $0.header.isShort == isShort }
    try require(hasRightForm, "other forms of records")
    for place in Int(records[1].offset)..<Int(records[3].endOffset) {
      let disk = recording.disk.copy()
      disk.flipBit(place * 8, of: path)
      let between = InterposedDisk(disk)
      // The first reading asks the file which database it belongs to.
      between.interpose(before: .read, on: ".log", number: 3) {
        disk.overwrite(path, at: place, with: [bytes[place]])
      }
      try inContext("byte \(place) was late") {
        let root = try between.open(mode: .readOnly).head.root
        try require(root == recording.trees.last, "another tree")
      }
    }
  }

  /// The writer continues in a segment that it made after the reader listed them.
  @Sendable private static func rolledMeanwhile() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try writer.put("a", .integer(1))
    let between = InterposedDisk(disk)
    between.interpose(before: .read, on: ".log") {
      try? writer.roll()
      try? writer.put("a", .integer(2))
    }
    try require(try between.open(mode: .readOnly).integer(at: "a") == 2, "another tree")
  }

  @Sendable private static func checkpointElsewhere() throws {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open()
    try engine.put("a", .integer(1))
    between.interpose(before: .synchronize, on: ".checkpoint.tmp") {
      try? disk.rename(directory + "/dendro.lock", to: directory + "/elsewhere")
      try? disk.make(directory + "/dendro.lock")
    }
    try requireError("was taken") { () throws(EngineError) in try engine.checkpoint() }
    try require(disk.checkpointPaths.isEmpty, "there is \(disk.checkpointPaths)")
  }

  @Sendable private static func purgeDamaged() throws {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    var options = EngineRecording.options()
    options.history = .all
    let engine = try between.open(options)
    for value in 1...3 {
      try engine.put("a/\(value)", .string("text \(value)"))
      try engine.checkpoint()
    }
    try engine.put("a/4", .string("text 4"))
    between.interpose(before: .read, on: "00000000000000000004.checkpoint") {
      disk.flipBit((64 + 32 + 3) * 8, of: directory + "/00000000000000000004.checkpoint")
    }
    let error = try requireError("was purged") { () throws(EngineError) in try engine.purgeHistory()
    }
    guard error.isDamage else { throw Violation("refused as \(error)") }
    let again = try EngineRecording.open(disk.copy())
    try require(again.head.root == engine.head.root, "another tree")
  }

  @Sendable private static func gathered() throws {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open()
    try engine.put("a", .integer(1))
    let before = engine.head.root
    let notes = Notes()
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    between.interpose(before: .synchronize, on: ".log") {
      engine.submit(Draft(.set(Path("c"), Node(.integer(3)))), completion: notes.completion)
    }
    engine.submit(Draft(.set(Path("b"), Node(.integer(2)))), completion: notes.completion)
    engine.pump()
    if notes.all != ["refused", "refused"] { throw Violation("noted \(notes.all)") }
    try require(engine.head.root == before, "the head shows \(engine.head.lsn)")
  }

  @Sendable private static func late() throws {
    let between = InterposedDisk(SimulatedDisk(seed: 1))
    let engine = try between.open()
    let notes = Notes()
    between.interpose(before: .synchronize, on: ".log") {
      engine.submit(Draft(.set(Path("b"), Node(.integer(2)))), completion: notes.completion)
    }
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: notes.completion)
    try engine.close()
    try notes.require(["done", "closed"])
  }

  private final class Progress: Sendable {
    let count = Atomic<Int>(0)
  }

  /// The disk is blocked until all is written, or for as long as the writer continues: the batch after that
  /// is what has been admitted meanwhile.
  @Sendable private static func backlog() throws {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open(.smallBacklog)
    let isWritten = DispatchSemaphore(value: 0)
    let progress = Progress()
    between.interpose(before: .write, on: ".log") {
      var seen = -1
      while seen != progress.count.load(ordering: .relaxed) {
        seen = progress.count.load(ordering: .relaxed)
        if isWritten.wait(timeout: .now() + .milliseconds(200)) == .success { return }
      }
    }
    var random = SeededRandomness(seed: 2)
    for index in 0..<100 {
      let bytes = (0..<1000).map { _ in UInt8.random(in: 0x21...0x7e, using: &random) }
      let text = Node(.string(String(decoding: bytes, as: UTF8.self)))
      engine.submit(Draft(.set(Path("t/\(index)"), text)), completion: nil)
      progress.count.add(1, ordering: .relaxed)
    }
    isWritten.signal()
    try engine.close()
    let largest = disk.trace.filter { $0.kind == .write }.map(\.count).max() ?? 0
    try require(largest < 12_000, "\(largest) bytes had gathered")
  }

  @Sendable private static func nothingWritten() throws {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open()
    between.ignoresWrites.store(true, ordering: .relaxed)
    try requireError("was acknowledged") { () throws(EngineError) in
      try engine.put("a", .integer(1))
    }
    try require(engine.head.root.isEmpty, "the head shows it")
  }

  @Sendable private static func followerAhead() throws {
    var options = EngineRecording.options()
    options.durability = .none
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    try engine.put("a", .integer(1))
    let reader = try engine.changes(since: .zero)
    let found = Mutex<(last: LogSequenceNumber, durable: LogSequenceNumber)?>(nil)
    let isRead = DispatchGroup()
    isRead.enter()
    Task(executorPreference: QueueExecutor()) {
      let writes = try? await reader.next()
      let durable = engine.statistics().durableLSN
      found.withLock { $0 = (writes?.last?.lsn ?? .zero, durable) }
      isRead.leave()
    }
    // Enough time for a reader that does not wait.
    _ = isRead.wait(timeout: .now() + .milliseconds(300))
    try engine.synchronize()
    isRead.wait()
    guard let found = found.withLock({ $0 }) else { throw Violation("nothing was read") }
    try require(
      found.last == LogSequenceNumber(1) && found.durable >= found.last,
      "read write \(found.last) when \(found.durable) was durable")
  }
}
