import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// Backups and archives with parity: what damage costs, and what purges and crashes leave.
@Suite("Parity of backups and archives")
struct ParityTests {
  private static let size = ParityLayout.blockByteCount

  /// What the parity of each file of a directory says.
  static func states(_ disk: SimulatedDisk, _ path: String) throws -> [Mending.State] {
    let directory = try DatabaseDirectory.open(
      path, environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    return try directory.mendings().map(\.state)
  }

  /// Expects that each file has parity, and that it is as it was then.
  static func expectParity(_ disk: SimulatedDisk, _ path: String, _ hint: Comment) throws {
    let directory = try DatabaseDirectory.open(
      path, environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    let contents = try directory.contents()
    #expect(contents.parityFiles.count == contents.fileNames.count, hint)
    #expect(contents.orphanedParityFiles == [] && contents.foreign == [], hint)
    #expect(try directory.mendings().allSatisfy { $0.state == .good }, hint)
  }

  /// Expects that no parity would change a byte, or is damaged: none of it has to be there.
  static func expectHarmless(_ disk: SimulatedDisk, _ path: String, _ hint: Comment) {
    do {
      let states = try states(disk, path)
      #expect(states.allSatisfy { $0 == .good || $0 == .stale }, "\(hint): \(states)")
    } catch {
      switch error {
      case StorageError.notFound, StorageError.unfinishedBackup: break
      default: Issue.record("\(hint): \(error)")
      }
    }
  }

  private static func open(_ disk: SimulatedDisk) throws -> Engine {
    var options = EngineOptions.inline
    options.segmentByteLimit = 90 << 10
    options.checkpointChunkByteLimit = 6 << 10
    return try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  /// Text that neither LZ4 nor another such text makes shorter.
  private static func text(_ count: Int, seed: Int) -> Scalar {
    .string(noiseText(count, seed: UInt64(seed)))
  }

  /// A database whose files have several parity blocks each.
  private static func source(_ disk: SimulatedDisk) throws -> Engine {
    let engine = try open(disk)
    for number in 0..<60 {
      engine.submit(try set("n\(number)", text(2500, seed: number)), completion: nil)
      engine.pump()
      if number == 40 { try engine.checkpoint() }
    }
    return engine
  }

  /// What repairing a directory would give.
  private static func rehearsal(
    _ disk: SimulatedDisk, _ path: String
  ) throws -> (salvage: Salvage, outcome: Salvage.Outcome) {
    let directory = try DatabaseDirectory.open(
      path, environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    let salvage = try Salvage(directory)
    return (salvage, try salvage.rehearse(salvage.plan))
  }

  @Test(
    "one damaged stretch of the width, anywhere in any file, costs no write",
    arguments: ["/archive", "/copy"])
  func anyStretch(path: String) throws {
    let disk = SimulatedDisk(seed: 31)
    let engine = try Self.source(disk)
    try engine.backup(to: "/copy", parity: true)
    let head = engine.head
    try engine.close()
    _ = try ArchiveTests.extend(disk)
    try Self.expectParity(disk, path, "\(path)")
    let hash = CheckpointCoding.contentHash(of: head.root)
    let names = disk.names(in: path).filter { $0.hasPrefix("0") && !$0.hasSuffix(".parity") }
    #expect(names.count >= (path == "/copy" ? 2 : 3))
    for name in names {
      let file = "\(path)/\(name)"
      let original = try #require(disk.contents(of: file))
      let layout = ParityLayout(coveredByteCount: UInt64(original.count))
      let width = (Int(layout.parityBlockCount) - 1) * Self.size + 1
      for start in stride(from: 0, to: original.count, by: Self.size * Scale.stride(5)) {
        let range = start..<min(start + width, original.count)
        disk.overwrite(file, at: start, with: original[range].map { ~$0 })
        let (salvage, outcome) = try Self.rehearsal(disk, path)
        let hint: Comment = "\(name) from \(start) on"
        #expect(salvage.mendings.filter { $0.state == .mends }.map(\.path) == [file], hint)
        #expect(outcome.isWhole && salvage.problems.isEmpty, hint)
        #expect(outcome.plan.last == head.lsn && outcome.contentHash == hash, hint)
        disk.overwrite(file, at: 0, with: original)
      }
    }
  }

  @Test("beyond the width only what was hit is lost")
  func wider() throws {
    let disk = SimulatedDisk(seed: 32)
    try Self.source(disk).close()
    let lsn = try ArchiveTests.extend(disk).lastLSN
    let name = try #require(disk.names(in: "/archive").first { $0.hasSuffix(".log") })
    let original = try #require(disk.contents(of: "/archive/\(name)"))
    let count = ParityLayout(coveredByteCount: UInt64(original.count)).parityBlockCount
    #expect(count > 1)
    // The last byte of a block, and the first of the block with the same parity block.
    let start = 5 * Self.size - 1
    let end = start + (Int(count) - 1) * Self.size + 2
    disk.overwrite("/archive/\(name)", at: start, with: original[start..<end].map { ~$0 })
    let (salvage, outcome) = try Self.rehearsal(disk, "/archive")
    #expect(salvage.mendings.contains { $0.state == .exceeded })
    #expect(outcome.plan.last == lsn)
    // Of the records of those two blocks; a checkpoint behind them holds their effect.
    let unreadable = salvage.unreadable(1, lsn.rawValue)
    let unreadableCount = unreadable.reduce(0) { $0 + $1.count }
    #expect((1...6).contains(unreadableCount), "\(unreadable)")
    #expect(outcome.isWhole)
  }

  // MARK: Archives that are extended

  @Test("the parity of files that have changed is brought up to date, and of no other")
  func extended() throws {
    let disk = SimulatedDisk(seed: 33)
    var engine = try ArchiveTests.source(disk, 12)
    let first = try ArchiveTests.extend(disk)
    #expect(first.parityByteCount > 0)
    try Self.expectParity(disk, "/archive", "the beginning")
    #expect(try ArchiveTests.extend(disk).parityByteCount == 0)
    try engine.close()
    engine = try ArchiveTests.source(disk, 2, from: 12)
    let start = disk.trace.count
    let second = try ArchiveTests.extend(disk)
    try Self.expectParity(disk, "/archive", "more")
    let changed = Set((second.segments + second.sealed).map { "/archive/\($0).parity" })
    let renamed = disk.trace[start...].compactMap { call in
      call.kind == .rename && call.path.hasSuffix(".parity.tmp") ? call.path.dropLast(4) : nil
    }
    #expect(Set(renamed.map(String.init)) == changed)
    // Without parity nothing of it is written, and what is older does not harm.
    try engine.close()
    try ArchiveTests.source(disk, 9, from: 14).close()
    let source = try DatabaseDirectory.open("/db", environment: disk.environment, mode: .following)
    let archive = try LogArchive(of: source, at: "/archive", parity: false)
    #expect(try archive.extend().parityByteCount == 0)
    archive.close()
    Self.expectHarmless(disk, "/archive", "without")
    // The next one with it makes up for that.
    #expect(try ArchiveTests.extend(disk).parityByteCount > 0)
    try Self.expectParity(disk, "/archive", "with")
  }

  @Test("what the writer took back and wrote anew has parity of its own at any crash")
  func takenBack() throws {
    var callCount = 0
    var isComplete = false
    while !isComplete {
      let disk = SimulatedDisk(seed: 34)
      try ArchiveTests.source(disk, 4).close()
      do {
        let writer = try Self.open(disk)
        writer.submit(try set("lost", Self.text(9000, seed: 1)), completion: nil)
        writer.pump()
        _ = try ArchiveTests.extend(disk)
        let directory = try DatabaseDirectory.open(
          "/db", environment: disk.environment, mode: .following)
        let name = try #require(directory.contents().segments.last)
        let offset = try #require(SegmentOutline(name, in: directory).restarts.last).offset
        try disk.open(directory.path(of: name), .readWrite).truncate(to: offset)
      }
      let writer = try Self.open(disk)
      writer.submit(try set("kept", Self.text(9500, seed: 2)), completion: nil)
      writer.pump()
      try writer.close()
      disk.disconnect(after: callCount)
      do throws(StorageError) {
        _ = try ArchiveTests.extend(disk)
        isComplete = true
      } catch {}
      let left = disk.copy()
      Self.expectHarmless(left, "/archive", "after \(callCount) calls")
      _ = try ArchiveTests.extend(left)
      try Self.expectParity(left, "/archive", "after \(callCount) calls")
      callCount += 1
    }
    #expect(callCount > 10)
  }

  @Test("an archive that was damaged before it goes on keeps the parity that mends it")
  func damagedBefore() throws {
    let disk = SimulatedDisk(seed: 35)
    let engine = try Self.source(disk)
    _ = try ArchiveTests.extend(disk)
    let name = try #require(disk.names(in: "/archive").last { $0.hasSuffix(".log") })
    let original = try #require(disk.contents(of: "/archive/\(name)"))
    // In the payload of a record.
    disk.overwrite("/archive/\(name)", at: 2000, with: original[2000..<2010].map { ~$0 })
    try engine.roll()
    #expect {
      try ArchiveTests.extend(disk)
    } throws: {
      if case StorageError.corrupt = $0 { true } else { false }
    }
    let (salvage, outcome) = try Self.rehearsal(disk, "/archive")
    #expect(salvage.mendings.contains { $0.state == .mends })
    #expect(outcome.isWhole && outcome.plan.last == engine.head.lsn)
    try engine.close()
  }

  // MARK: Databases with parity

  @Test("a purge of a database with parity leaves no parity of what is gone, and writes its own")
  func purged() throws {
    var callCount = 0
    var isComplete = false
    while !isComplete {
      let disk = SimulatedDisk(seed: 36)
      let source = try ArchiveTests.source(disk, 9)
      try source.backup(to: "/copy", parity: true)
      try source.close()
      let copy = try ArchiveTests.open(disk, "/copy")
      copy.submit(try set("more", .integer(1)), completion: nil)
      copy.pump()
      let lsn = copy.head.lsn
      disk.disconnect(after: callCount)
      do throws(EngineError) {
        try copy.purgeHistory()
        isComplete = true
      } catch {}
      let left = disk.copy()
      Self.expectHarmless(left, "/copy", "after \(callCount) calls")
      let again = try ArchiveTests.open(left, "/copy")
      #expect(again.head.lsn == lsn)
      try again.purgeHistory()
      let contents = try again.directoryContents
      #expect(contents.orphanedParityFiles == [], "after \(callCount) calls")
      try again.close()
      if isComplete {
        let checkpoint = FileName.checkpointName(try #require(contents.checkpoints.last))
        #expect(contents.parityFiles == [FileName.parityName(of: checkpoint)])
      }
      Self.expectHarmless(left, "/copy", "purged after \(callCount) calls")
      callCount += 1
    }
    #expect(callCount > 10)
  }

  @Test("a database that goes on from a backup with parity loses that with its files")
  func retention() throws {
    let disk = SimulatedDisk(seed: 37)
    let source = try ArchiveTests.source(disk, 9)
    try source.backup(to: "/copy", parity: true)
    try source.close()
    try Self.expectParity(disk, "/copy", "the backup")
    var options = EngineOptions.inline
    options.history = .none
    let copy = try Engine.open(at: "/copy", options: options, environment: disk.environment)
    for number in 0..<4 {
      copy.submit(try set("more", .integer(Int64(number))), completion: nil)
      copy.pump()
      try copy.checkpoint()
      Self.expectHarmless(disk, "/copy", "checkpoint \(number)")
    }
    #expect(!disk.names(in: "/copy").contains { $0.hasSuffix(".parity") })
    try copy.close()
  }
}

extension Engine {
  fileprivate var directoryContents: DatabaseDirectory.Contents {
    get throws {
      try DatabaseDirectory.open("/copy", environment: environment, mode: .following).contents()
    }
  }
}
