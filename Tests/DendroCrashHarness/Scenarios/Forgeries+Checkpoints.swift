import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

extension Forgeries {
  static let checkpoints: [Scenario] =
    [
      checkpoint("the same footer", isGood: true) { bytes in seal(footer: &bytes) },
      checkpoint("a footer with another number of leaves") { bytes in
        bytes[bytes.count - 40] &+= 1
        seal(footer: &bytes)
      },
      checkpoint("a footer with other sizes") { bytes in
        bytes[bytes.count - 32] &+= 1
        seal(footer: &bytes)
      },
      checkpoint("a footer of another write") { bytes in
        bytes[bytes.count - 16] &+= 1
        seal(footer: &bytes)
      },
      checkpoint("a chunk of another number") { bytes in
        bytes[64 + 16] = 1
        let salt = salt(of: bytes)
        let checksum = bytes[64..<92].withUnsafeBytes { Checksum.xxh3($0, seed: salt &+ 64) }
        bytes.replaceSubrange(92..<96, with: little(UInt32(truncatingIfNeeded: checksum)))
      },
      checkpoint("a chunk of another kind") { bytes in
        bytes[64 + 4] |= 2
        sealChunk(at: 64, of: &bytes)
      },
      checkpoint("the same index", isGood: true) { bytes in forgeIndex(of: &bytes) { _ in } },
      checkpoint("an index with a chunk beyond all bounds") { bytes in
        forgeIndex(of: &bytes) { $0 = varint(.max) + $0.drop(while: { $0 >= 0x80 }).dropFirst() }
      },
      checkpoint("an index with something behind its end") { bytes in
        forgeIndex(of: &bytes) { $0.append(0) }
      },
      checkpoint("something behind the index") { bytes in
        bytes.insert(contentsOf: Array(repeating: 0, count: 8), at: bytes.count - 64)
      },
    ] + depths + paths + [futureCheckpoint] + ofSecondRoots

  private static func salt(of bytes: [UInt8]) -> UInt64 {
    bytes[32..<40].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func seal(footer bytes: inout [UInt8]) {
    let salt = salt(of: bytes)
    let start = bytes.count - 64
    let checksum = bytes[start..<start + 56].withUnsafeBytes { Checksum.xxh3($0, seed: salt) }
    bytes.replaceSubrange((start + 56)..., with: little(checksum))
  }

  private static func sealChunk(at offset: Int, of bytes: inout [UInt8]) {
    let seed = salt(of: bytes) &+ UInt64(offset)
    let checksum = bytes[offset..<offset + 28].withUnsafeBytes { Checksum.xxh3($0, seed: seed) }
    bytes.replaceSubrange(
      offset + 28..<offset + 32, with: little(UInt32(truncatingIfNeeded: checksum)))
  }

  /// Gives the index, which is too short to be compressed, another content.
  private static func forgeIndex(of bytes: inout [UInt8], _ forge: (inout [UInt8]) -> Void) {
    let footer = bytes.count - 64
    let start = bytes[footer + 8..<footer + 16].reversed().reduce(0) { $0 << 8 | Int($1) }
    var index = Array(bytes[start + 32..<footer])
    forge(&index)
    let checksum = index.withUnsafeBytes { Checksum.xxh3($0, seed: salt(of: bytes)) }
    let size = little(UInt32(index.count))
    bytes.replaceSubrange(start + 8..<start + 16, with: size + size)
    bytes.replaceSubrange(start + 20..<start + 28, with: little(checksum))
    sealChunk(at: start, of: &bytes)
    bytes.replaceSubrange(footer + 16..<footer + 20, with: little(UInt32(index.count + 32)))
    bytes.replaceSubrange(start + 32..<footer, with: index)
    seal(footer: &bytes)
  }

  /// It is not skipped as if it were damaged: a newer writer may have removed the log that it covers.
  private static let futureCheckpoint = Scenario("a checkpoint: a format of the future") {
    let recording = try EngineRecording(seed: 1, steps: [.set("a", .integer(1)), .checkpoint])
    let disk = recording.disk.copy()
    guard let path = disk.checkpointPaths.last, var bytes = disk.contents(of: path) else {
      throw Violation("no checkpoint")
    }
    bytes[8] = UInt8(FileFormat.newestVersion) + 1
    let checksum = bytes[..<60].withUnsafeBytes { Checksum.xxh3($0, seed: 0) }
    bytes.replaceSubrange(60..<64, with: little(UInt32(truncatingIfNeeded: checksum)))
    disk.overwrite(path, at: 0, with: bytes)
    let error = try requireError("was passed over") { () throws(EngineError) in
      try EngineRecording.open(disk)
    }
    guard case .storage(.unsupportedVersion) = error else {
      throw Violation("refused as \(error)")
    }
  }

  /// A checkpoint of version 0 with one leaf, so many levels down.
  private static let depths: [Scenario] = [(20, true), (40, false), (5000, false)].map {
    depth, isGood in
    Scenario("a checkpoint: a leaf \(depth) levels down") {
      try judge(checkpointOfVersion0(depth: depth), isGood: isGood)
    }
  }

  /// The entries of a version 0 index have paths, none of which is used.
  private static let paths: [Scenario] = [(0, true), (1, false), (UInt64.max, false)].map {
    count, isGood in
    Scenario("a checkpoint of version 0: an index with a path of \(count) bytes") {
      let disk = try checkpointOfVersion0(depth: 1)
      guard let path = disk.checkpointPaths.last, var bytes = disk.contents(of: path) else {
        throw Violation("no checkpoint")
      }
      forgeIndex(of: &bytes) { $0 = $0.dropLast() + varint(count) }
      disk.erase(path)
      try disk.make(path, bytes)
      try judge(disk, isGood: isGood)
    }
  }

  private static func checkpointOfVersion0(depth: Int) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 1)
    let directory = try DatabaseDirectory.open(
      EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
    let identity = DatabaseID(disk.randomness)
    let path = Array(repeating: Path("k").storedBytes, count: depth).flatMap { $0 }
    var chunk = varint(0) + varint(UInt64(path.count)) + path
    PackedScalar.append(.integer(1), to: &chunk)
    let writer = try CheckpointWriter.begin(
      directory, databaseID: identity, lsn: lastWrite, time: 1, logChecksum: 0, version: 0)
    let result = chunk.withUnsafeBytes { chunk in
      Result { () throws(StorageError) in try writer.chunk(chunk) }
    }
    try result.get()
    try writer.finish(leafCount: 1, contentHash: 0)
    try LogWriter.create(directory, databaseID: identity, after: lastWrite, time: 1).close()
    directory.close()
    return disk
  }

  static let lastWrite = LogSequenceNumber(7)

  /// A database that needs its checkpoint opens if that is good, and only then.
  static func judge(_ disk: SimulatedDisk, isGood: Bool) throws {
    guard isGood else { return try requireRefusal(of: disk) }
    try require(try EngineRecording.open(disk).head.lsn == lastWrite, "was not used")
  }

  /// A forged checkpoint is not used, and the log makes up for it.
  private static func checkpoint(
    _ name: String, isGood: Bool = false, _ forge: @escaping @Sendable (inout [UInt8]) -> Void
  ) -> Scenario {
    Scenario("a checkpoint: " + name) {
      let recording = try EngineRecording(
        seed: 1, steps: [.set("a", .integer(1)), .set("b", .string("two")), .checkpoint])
      let disk = recording.disk.copy()
      guard let path = disk.checkpointPaths.last, var bytes = disk.contents(of: path) else {
        throw Violation("no checkpoint")
      }
      forge(&bytes)
      disk.overwrite(path, at: 0, with: bytes)
      let engine = try EngineRecording.open(disk, EngineRecording.whole())
      if engine.head.root != recording.trees.last { throw Violation("another tree") }
      let isUnreadable = !engine.report.unreadableCheckpoints.isEmpty
      try require(isUnreadable != isGood, isGood ? "was not used" : "was used")
    }
  }
}
