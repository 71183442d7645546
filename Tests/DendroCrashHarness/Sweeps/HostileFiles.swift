import DendroEngine
import DendroStorage
import DendroTestSupport
package import DendroTesting
import DendroTree

/// G15: hostile directories, which no writer makes. Every reader ends in a tree that once
/// was or in an error; that none takes memory or time without bound, or ends the process, is seen from
/// outside: by `crashlab hostile`, which runs the jobs in a child with little memory.
package enum HostileFiles {
  package static let sweep = Sweep("G15", unit: "directories", judge: judge)

  /// What is done to the files.
  package enum Kind: CaseIterable, Sendable {
    /// Our names, with anything in them.
    case random
    case truncated
    case flipped
    /// Numbers that are far too large, wherever they fall.
    case enormous
    /// Pieces of the files copied over each other.
    case shuffled
    /// Right checksums over a log's payload that is none.
    case payload
    /// Right checksums over a checkpoint's chunks that are none.
    case chunk
  }

  package struct Directory: Sendable {
    package let kind: Kind
    package let disk: SimulatedDisk
    /// The trees that may be found; nil if anything may.
    let trees: [Node]?
  }

  /// The same for every seed: a checkpoint, three segments, and a few kilobytes.
  private static let valid: ClosedDatabase = {
    do {
      return try ClosedDatabase(byteCount: 4000, writes: 12)
    } catch {
      preconditionFailure("\(error)")
    }
  }()

  package static func directory(_ seed: UInt64) -> Directory {
    var random = SeededRandomness(seed: seed)
    let kind = Kind.allCases[Int(seed % UInt64(Kind.allCases.count))]
    let disk: SimulatedDisk
    switch kind {
    case .random: disk = randomFiles(using: &random)
    case .payload: disk = hostileLog(using: &random)
    case .chunk: disk = hostileCheckpoint(using: &random)
    default:
      disk = valid.disk.copy(seed: seed)
      for _ in 0..<Int.random(in: 1...4, using: &random) { damage(disk, kind, using: &random) }
    }
    switch kind {
    case .truncated, .flipped, .enormous:
      return Directory(kind: kind, disk: disk, trees: valid.trees)
    default: return Directory(kind: kind, disk: disk, trees: nil)
    }
  }

  // MARK: Making

  private static func damage(
    _ disk: SimulatedDisk, _ kind: Kind, using random: inout SeededRandomness
  ) {
    let (path, size) = valid.files.filter { $0.byteCount > 0 }.randomElement(using: &random)!
    let place = Int.random(in: 0..<size, using: &random)
    switch kind {
    case .truncated: disk.resize(path, to: place)
    case .flipped: disk.flipBit(place * 8 + Int.random(in: 0..<8, using: &random), of: path)
    case .enormous: disk.overwrite(path, at: place, with: enormousNumber(using: &random))
    default:
      let source = valid.files.randomElement(using: &random)!.path
      guard let bytes = disk.contents(of: source), !bytes.isEmpty else { return }
      let start = Int.random(in: 0..<bytes.count, using: &random)
      let end = min(bytes.count, start + Int.random(in: 1...600, using: &random))
      disk.overwrite(path, at: place, with: Array(bytes[start..<end]))
    }
  }

  /// Little-endian, or a varint.
  private static func enormousNumber(using random: inout SeededRandomness) -> [UInt8] {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: return [0xff, 0xff, 0xff, 0xff]
    case 1: return [0xff, 0xff, 0xff, 0x7f]
    case 2: return [UInt8](repeating: 0xff, count: 8)
    case 3: return [UInt8](repeating: 0xff, count: Int.random(in: 1...9, using: &random)) + [0x7f]
    default: return [0, 0, 0, 0, UInt8(truncatingIfNeeded: random.next()), 0, 0, 0]
    }
  }

  private static func bytes(_ count: Int, using random: inout SeededRandomness) -> [UInt8] {
    // Some with few different bytes: then lengths and types come up more often.
    let mask: UInt8 = [0xff, 0x0f, 0x83].randomElement(using: &random)!
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) & mask }
  }

  private static func randomFiles(using random: inout SeededRandomness) -> SimulatedDisk {
    let disk = valid.disk.copy(seed: random.next())
    for (path, size) in valid.files {
      switch Int.random(in: 0..<5, using: &random) {
      case 0: break
      case 1: disk.erase(path)
      case 2: disk.replace(path, with: [])
      case 3:
        // The beginning is right, the rest is anything.
        let kept = min(size, [4, 12, 64, 200].randomElement(using: &random)!)
        let count = Int.random(in: 0...3000, using: &random)
        disk.resize(path, to: kept)
        disk.overwrite(path, at: kept, with: bytes(count, using: &random))
      default:
        disk.replace(
          path, with: bytes(Int.random(in: 0...5000, using: &random), using: &random))
      }
    }
    return disk
  }

  private static func hostileLog(using random: inout SeededRandomness) -> SimulatedDisk {
    let disk = SimulatedDisk(seed: random.next())
    do {
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
      let writer = try LogWriter.create(
        directory, databaseID: DatabaseID(disk.randomness), time: 1)
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let payload = hostilePayload(using: &random)
        // The writer takes no more writes than bytes.
        let count = min(payload.count, Int.random(in: 1...4, using: &random))
        try stage(payload, count, writer)
        try writer.write()
      }
      try writer.synchronize()
      try writer.close()
      directory.close()
    } catch {
      preconditionFailure("nothing fails on this disk: \(error)")
    }
    return disk
  }

  private static func stage(_ payload: [UInt8], _ count: Int, _ writer: LogWriter)
    throws(StorageError)
  {
    let result = payload.withUnsafeBytes { bytes in
      Result { () throws(StorageError) in
        try writer.stage(bytes, firstLSN: writer.nextLSN, count: count, baseTime: 1)
      }
    }
    try result.get()
  }

  /// A right one with wrong places, or anything.
  private static func hostilePayload(using random: inout SeededRandomness) -> [UInt8] {
    if Int.random(in: 0..<3, using: &random) == 0 {
      return bytes(Int.random(in: 1...400, using: &random), using: &random)
    }
    var generator = StepGenerator(seed: random.next())
    let buffer = PayloadBuffer()
    var previous = Path.root
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let write = generator.write()
      WriteCoding.encodeHead(of: write, timeDelta: 0, previousPath: previous, into: buffer)
      WriteCoding.encodeBody(of: write, into: buffer)
      previous = write.path
    }
    var payload = buffer.withBytes { [UInt8]($0) }
    for _ in 0..<Int.random(in: 0...3, using: &random) where !payload.isEmpty {
      let place = Int.random(in: 0..<payload.count, using: &random)
      let number = enormousNumber(using: &random)
      payload.replaceSubrange(
        place..<min(payload.count, place + Int.random(in: 0...number.count, using: &random)),
        with: number)
    }
    return payload.isEmpty ? [0] : payload
  }

  private static func hostileCheckpoint(using random: inout SeededRandomness) -> SimulatedDisk {
    let disk = SimulatedDisk(seed: random.next())
    do {
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
      let identity = DatabaseID(disk.randomness)
      let writer = try CheckpointWriter.begin(
        directory, databaseID: identity, lsn: LogSequenceNumber(7), time: 1, logChecksum: 0,
        version: Bool.random(using: &random) ? 0 : FileFormat.newestVersion)
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let raw = hostilePayload(using: &random)
        let result = raw.withUnsafeBytes { raw in
          Result { () throws(StorageError) in try writer.chunk(raw) }
        }
        try result.get()
      }
      try writer.finish(
        leafCount: [0, 1, 7, .max].randomElement(using: &random)!, contentHash: random.next())
      let log = try LogWriter.create(
        directory, databaseID: identity, after: LogSequenceNumber(7), time: 1)
      try log.close()
      directory.close()
    } catch {
      preconditionFailure("nothing fails on this disk: \(error)")
    }
    return disk
  }

  // MARK: Judging

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally(count: 1)
    let directory = directory(place.job)
    // The storage's own reader of damaged logs, as `verify` and `log` use it.
    scan(directory.disk.copy())
    for mode in [Engine.Mode.readOnly, .readWrite] {
      let disk = directory.disk.copy()
      do throws(EngineError) {
        let engine = try Engine.open(
          at: EngineRecording.directory, options: EngineRecording.options(),
          environment: disk.environment, mode: mode)
        let root = engine.head.root
        if let trees = directory.trees, !trees.contains(where: { $0 == root }) {
          tally.fail(place, "\(directory.kind), \(mode): a tree that never was")
        }
        tally.details["opened", default: 0] += 1
        do {
          try root.checkInvariants()
        } catch {
          tally.fail(place, "\(directory.kind), \(mode): \(error)")
        }
        if mode == .readWrite { goOn(engine, disk, directory.kind, place, &tally) }
      } catch {
        tally.details["refused", default: 0] += 1
      }
    }
    return tally
  }

  /// What is served can be written on, kept as a checkpoint, and found again.
  private static func goOn(
    _ engine: Engine, _ disk: SimulatedDisk, _ kind: Kind, _ place: Reproduction,
    _ tally: inout Tally
  ) {
    do throws(EngineError) {
      let session = Session(engine, disk)
      session.submit(.set(Path("after"), Node(.bool(true))), expecting: nil)
      engine.pump()
      for answer in session.takeAnswers() { _ = try answer.result.get() }
      let expected = engine.head.root
      try engine.checkpoint()
      try engine.close()
      if try EngineRecording.open(disk).head.root != expected {
        tally.fail(place, "\(kind): served, written on, and reopened as another tree")
      }
    } catch {
      tally.fail(place, "\(kind): served, but then: \(error)")
    }
  }

  private static func scan(_ disk: SimulatedDisk) {
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readOnly)
      defer { directory.close() }
      let cursor = LogCursor(directory)
      while try cursor.step({ _ in }) {}
      _ = try LogReader.read(directory) { _, _ in }
    } catch {}
  }
}
