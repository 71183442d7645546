import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Synchronization

/// What somebody else does at the worst moment: between two calls of ours.
package enum Moments {
  package static let sweep = Sweep.cases(
    "moments",
    [
      Case("the lock file is replaced before it is locked", lockReplaced),
      Case("a reader comes while files are removed", readerWaits),
      Case("a reader finds what is half written", halfWritten),
      Case("a reader finds the end of a segment", rolledMeanwhile),
      Case("the directory is lost while a checkpoint is written", checkpointElsewhere),
      Case("the checkpoint is damaged before the rest is purged", purgeDamaged),
      Case("a write gathers while the disk refuses", gathered),
      Case("a write comes while the engine is closed", late),
      Case("a write comes while too much waits for the disk", backlog),
      Case("a write that does nothing", nothingWritten),
      Case("a follower ahead of the disk", followerAhead),
    ])

  private static let directory = EngineRecording.directory

  @Sendable private static func lockReplaced() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let between = InterposedDisk(disk)
    let other = Mutex<Engine?>(nil)
    between.interpose(before: .lock, on: "dendro.lock") {
      try? disk.rename(directory + "/dendro.lock", to: directory + "/elsewhere")
      let engine = try? EngineRecording.open(disk)
      other.withLock { $0 = engine }
    }
    do throws(EngineError) {
      _ = try between.open()
      return "was let in beside another"
    } catch {
      guard case .storage(.locked) = error else { return "refused as \(error)" }
    }
    return other.withLock { $0 } == nil ? "the other one was not let in" : nil
  }

  @Sendable private static func readerWaits() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let lock = try disk.open(directory + "/readers.lock", .readWrite)
    guard try lock.lock(.exclusive) else { return "the lock is not free" }
    let held = Mutex<(any File)?>(lock)
    let between = InterposedDisk(disk)
    return try withExtendedLifetime(held) {
      between.interpose(before: .lock, on: "readers.lock", number: 2) {
        held.withLock { file in
          // Closing would let go of it, but there are two references.
          _ = try? file?.lock(.shared)
          file = nil
        }
      }
      try between.open(mode: .readOnly).close()
      return nil
    }
  }

  /// A writer is in the middle of an append: part of what is read is old, part is new, and what comes
  /// later says already that it is durable.
  @Sendable private static func halfWritten() throws -> String? {
    let recording = try EngineRecording(
      seed: 1,
      steps: (0..<5).map {
        .set("texts/\($0)", .string("the same words again and again, \($0) and \($0 * $0 + 13)"))
      })
    let path = recording.disk.segmentPaths[0]
    var records: [RecordInfo] = []
    let reading = try DatabaseDirectory.open(
      directory, environment: recording.disk.copy().environment, mode: .readOnly)
    let cursor = LogCursor(reading)
    while try cursor.step({ if case .record(let record, _, _) = $0 { records.append(record) } }) {}
    reading.close()
    guard records.count == 6, let bytes = recording.disk.contents(of: path) else {
      return "\(records.count) records"
    }
    for place in Int(records[1].offset)..<Int(records[3].endOffset) {
      let disk = recording.disk.copy()
      disk.flipBit(place * 8, of: path)
      let between = InterposedDisk(disk)
      between.interpose(before: .read, on: ".log", number: 2) {
        disk.overwrite(path, at: place, with: [bytes[place]])
      }
      do throws(EngineError) {
        if try between.open(mode: .readOnly).head.root != recording.trees.last {
          return "byte \(place) was late: another tree"
        }
      } catch {
        return "byte \(place) was late: \(error)"
      }
    }
    return nil
  }

  /// The writer goes on in a segment that came after the reader listed them.
  @Sendable private static func rolledMeanwhile() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    if let error = writer.put("a", .integer(1)) { return "\(error)" }
    let between = InterposedDisk(disk)
    between.interpose(before: .read, on: ".log") {
      try? writer.roll()
      _ = writer.put("a", .integer(2))
    }
    return try between.open(mode: .readOnly).integer(at: "a") == 2 ? nil : "another tree"
  }

  @Sendable private static func checkpointElsewhere() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open()
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    between.interpose(before: .synchronize, on: ".checkpoint.tmp") {
      try? disk.rename(directory + "/dendro.lock", to: directory + "/elsewhere")
      try? disk.make(directory + "/dendro.lock")
    }
    do throws(EngineError) {
      try engine.checkpoint()
      return "was taken"
    } catch {}
    return disk.checkpointPaths.isEmpty ? nil : "there is \(disk.checkpointPaths)"
  }

  @Sendable private static func purgeDamaged() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    var options = EngineRecording.options()
    options.history = .all
    let engine = try between.open(options)
    for value in 1...3 {
      if let error = engine.put("a/\(value)", .string("text \(value)")) { return "\(error)" }
      try engine.checkpoint()
    }
    if let error = engine.put("a/4", .string("text 4")) { return "\(error)" }
    between.interpose(before: .read, on: "00000000000000000004.checkpoint") {
      disk.flipBit((64 + 32 + 3) * 8, of: directory + "/00000000000000000004.checkpoint")
    }
    do throws(EngineError) {
      try engine.purgeHistory()
      return "was purged"
    } catch {
      guard case .storage(.corrupt) = error else { return "refused as \(error)" }
    }
    let again = try EngineRecording.open(disk.copy())
    return again.head.root == engine.head.root ? nil : "another tree"
  }

  @Sendable private static func gathered() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open()
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    let before = engine.head.root
    let told = Told()
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    between.interpose(before: .synchronize, on: ".log") {
      engine.submit(Draft(.set(Path("c"), Node(.integer(3)))), completion: told.completion)
    }
    engine.submit(Draft(.set(Path("b"), Node(.integer(2)))), completion: told.completion)
    engine.pump()
    if told.all != ["refused", "refused"] { return "told \(told.all)" }
    return engine.head.root == before ? nil : "the head shows \(engine.head.lsn)"
  }

  @Sendable private static func late() throws -> String? {
    let between = InterposedDisk(SimulatedDisk(seed: 1))
    let engine = try between.open()
    let told = Told()
    between.interpose(before: .synchronize, on: ".log") {
      engine.submit(Draft(.set(Path("b"), Node(.integer(2)))), completion: told.completion)
    }
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: told.completion)
    try engine.close()
    return told.all == ["done", "closed"] ? nil : "told \(told.all)"
  }

  private final class Progress: Sendable {
    let count = Atomic<Int>(0)
  }

  /// The disk stands still until all has been written, or for as long as the writer comes on: what then
  /// goes to it at once is what had gathered.
  @Sendable private static func backlog() throws -> String? {
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
    return largest < 12_000 ? nil : "\(largest) bytes had gathered"
  }

  @Sendable private static func nothingWritten() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open()
    between.ignoresWrites.store(true, ordering: .relaxed)
    guard engine.put("a", .integer(1)) != nil else { return "was acknowledged" }
    return engine.head.root.isEmpty ? nil : "the head shows it"
  }

  @Sendable private static func followerAhead() throws -> String? {
    var options = EngineRecording.options()
    options.durability = .none
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    let reader = try engine.changes(since: .zero)
    let found = Mutex<(last: LogSequenceNumber, durable: LogSequenceNumber)?>(nil)
    let isTold = DispatchGroup()
    isTold.enter()
    Task(executorPreference: QueueExecutor()) {
      let writes = try? await reader.next()
      let durable = engine.statistics().durableLSN
      found.withLock { $0 = (writes?.last?.lsn ?? .zero, durable) }
      isTold.leave()
    }
    // Whoever would tell too early has had the time to.
    _ = isTold.wait(timeout: .now() + .milliseconds(300))
    try engine.synchronize()
    isTold.wait()
    guard let found = found.withLock({ $0 }) else { return "nothing was told" }
    return found.last == LogSequenceNumber(1) && found.durable >= found.last
      ? nil : "told of write \(found.last) when \(found.durable) was durable"
  }
}
