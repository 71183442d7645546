import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

extension FuzzTarget {
  /// One byte of flags, then a checkpoint.
  static let checkpoint = FuzzTarget(
    "checkpoint", "a checkpoint's file", weight: 70,
    seeds: {
      var seeds: [[UInt8]] = []
      for file in try SeedDatabases.all().joined() where file.name.hasSuffix(".checkpoint") {
        for flags in [UInt8(0), 1] { seeds.append([flags] + file.bytes) }
      }
      return seeds
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      let flags = input.uint8()
      var checkpoint = input.remaining()
      if flags & 1 != 0 { Mending.checkpoint(&checkpoint) }
      let lsn = checkpoint.integer(at: 40, as: UInt64.self) ?? 1
      let disk = try FuzzDisk.make([(FuzzDisk.checkpoint(lsn), checkpoint)])
      _ = try CheckpointReading.read(LogSequenceNumber(lsn), on: disk)
    })

  /// Two bytes, up to three chunks' lengths, then their payloads: under right checksums, with the right
  /// number of leaves.
  static let chunk = FuzzTarget(
    "chunk", "the chunks of a checkpoint, under right checksums", weight: 15,
    seeds: {
      var seeds: [[UInt8]] = []
      for seed in UInt64(0)..<10 {
        guard let root = try SeedDatabases.root(seed) else { continue }
        let disk = try FuzzDisk.make([])
        let directory = try DatabaseDirectory.open(
          FuzzDisk.directory, environment: disk.environment, mode: .readWrite(create: true))
        _ = try CheckpointCoding.write(
          TreeRoots(data: root), lsn: LogSequenceNumber(7), time: 1,
          databaseID: DatabaseID(high: 1, low: 2),
          logChecksum: 0, to: directory, isCancelled: { false })
        let reader = try CheckpointReader.open(directory, lsn: LogSequenceNumber(7))
        var output = FuzzOutput()
        let chunk = reader.chunkCount == 0 ? [] : try reader.readChunk(0) { Array($0) }
        output.uint16(UInt16(clamping: chunk.count))
        output.append(chunk)
        seeds.append(output.bytes)
        directory.close()
      }
      return seeds
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      var chunks: [[UInt8]] = []
      while !input.isAtEnd, chunks.count < 3 {
        chunks.append(input.bytes(Int(input.uint16())))
      }
      // The first reading counts the leaves.
      var leafCount: UInt64 = 0
      if let found = try CheckpointReading.leafCount(of: chunks, saying: .max) {
        leafCount = found
      }
      let disk = try CheckpointReading.disk(chunks, leafCount: leafCount)
      _ = try CheckpointReading.read(CheckpointReading.lsn, on: disk)
    })
}

extension SeedDatabases {
  static func root(_ seed: UInt64) throws -> Node? {
    let databases = try all()
    let disk = try FuzzDisk.make(databases[Int(seed) % databases.count])
    let engine = attempt {
      try Engine.open(
        at: FuzzDisk.directory, options: fuzzOptions, environment: disk.environment,
        mode: .readOnly)
    }
    return engine?.head.root
  }
}

enum CheckpointReading {
  static let lsn = LogSequenceNumber(7)

  static func disk(_ chunks: [[UInt8]], leafCount: UInt64) throws -> SimulatedDisk {
    let disk = try FuzzDisk.make([])
    let directory = try DatabaseDirectory.open(
      FuzzDisk.directory, environment: disk.environment, mode: .readWrite(create: true))
    defer { directory.close() }
    let writer = try CheckpointWriter.begin(
      directory, databaseID: DatabaseID(high: 1, low: 2), lsn: lsn, time: 1, logChecksum: 0)
    for chunk in chunks {
      let result = chunk.withUnsafeBytes { raw in
        Result { () throws(StorageError) in try writer.chunk(raw) }
      }
      try result.get()
    }
    try writer.finish(leafCount: leafCount, contentHash: 0)
    return disk
  }

  /// How many leaves are found where so many are said to be; nil if it does not come to that.
  static func leafCount(of chunks: [[UInt8]], saying leafCount: UInt64) throws -> UInt64? {
    let disk = try disk(chunks, leafCount: leafCount)
    guard let directory = FuzzDisk.open(disk) else { return nil }
    defer { directory.close() }
    do throws(StorageError) {
      _ = try CheckpointCoding.decode(CheckpointReader.open(directory, lsn: lsn))
    } catch {
      if case .corrupt(_, _, let expected, let found) = error, expected.hasSuffix("leaves") {
        return UInt64(found)
      }
    }
    return nil
  }

  /// The tree of a checkpoint that can be read: it keeps the rules, and written and read again it is
  /// the same.
  static func read(_ lsn: LogSequenceNumber, on disk: SimulatedDisk) throws -> Node? {
    guard let directory = FuzzDisk.open(disk) else { return nil }
    defer { directory.close() }
    guard
      let reader = attempt({ () throws(StorageError) in
        try CheckpointReader.open(directory, lsn: lsn)
      })
    else { return nil }
    for chunk in 0..<reader.chunkCount {
      _ = attempt { () throws(StorageError) in try reader.readChunk(chunk) { $0.count } }
    }
    guard
      let root = attempt({ () throws(StorageError) in try CheckpointCoding.decode(reader) })
    else { return nil }
    try WriteComparison.checkInvariants(root, "the checkpoint's tree")
    try require(root.height() <= Limits.depth, "the tree is \(root.height()) levels high")
    try roundTrip(root)
    return root
  }

  private static func roundTrip(_ root: Node) throws {
    let disk = try FuzzDisk.make([])
    let directory = try DatabaseDirectory.open(
      FuzzDisk.directory, environment: disk.environment, mode: .readWrite(create: true))
    defer { directory.close() }
    _ = try CheckpointCoding.write(
      TreeRoots(data: root), lsn: lsn, time: 1, databaseID: DatabaseID(high: 1, low: 2),
      logChecksum: 0,
      to: directory,
      isCancelled: { false })
    let reader = try CheckpointReader.open(directory, lsn: lsn)
    let again = try CheckpointCoding.decode(reader)
    try require(again == root, "the tree is another one after writing and reading it")
    try require(
      reader.contentHash == CheckpointCoding.contentHash(of: again),
      "the tree has another hash after writing and reading it")
  }
}
