import DendroPlatform
import DendroTesting
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// A checkpoint that the system does not let recovery read: that says nothing about the file.
@Suite("A checkpoint that cannot be opened")
struct CheckpointRefusalTests {
  /// A closed database with two checkpoints of several chunks each, and the log since the first.
  private static func database() throws -> (SimulatedDisk, Node) {
    let disk = SimulatedDisk(seed: 1)
    let engine = try LoadingTests.open(disk)
    for round in 0..<2 {
      for number in 0..<60 {
        engine.submit(
          try set("k\(number % 12)/n\(number)", .string("\(round) \(number)")), completion: nil)
      }
      engine.pump()
      try engine.checkpoint()
    }
    let root = engine.head.root
    try engine.close()
    return (disk, root)
  }

  @Test(
    "opening says so; the checkpoint is not taken for damaged",
    arguments: [EMFILE, ENFILE, EACCES, EPERM, ENOMEM], [Engine.Mode.readWrite, .readOnly])
  func refused(code: Int32, mode: Engine.Mode) throws {
    let (start, root) = try Self.database()
    let newest = try #require(start.names(in: "/db").last { $0.hasSuffix(".checkpoint") })
    var number = 1
    while true {
      let disk = start.copy()
      disk.inject(
        DiskFault(.error(code), of: [.open, .read, .size], at: number, pathPart: newest))
      func open() throws -> Engine {
        try Engine.open(
          at: "/db", options: LoadingTests.options(.whole), environment: disk.environment,
          mode: mode)
      }
      let hasStruck: Bool
      do {
        try open().close()
        hasStruck = disk.trace.contains { $0.errno == code }
        #expect(!hasStruck, "call \(number) was passed over")
      } catch {
        hasStruck = true
        #expect("\(error)".contains("(errno \(code))"), "call \(number): \(error)")
      }
      disk.removeFaults()
      let engine = try open()
      #expect(engine.head.root == root && engine.report.unreadableCheckpoints.isEmpty)
      try engine.close()
      if !hasStruck { break }
      number += 1
    }
    #expect(number > 3)
  }

  @Test("a medium that does not give the bytes back is damage, and the older checkpoint serves")
  func medium() throws {
    let (disk, root) = try Self.database()
    let newest = try #require(disk.names(in: "/db").last { $0.hasSuffix(".checkpoint") })
    disk.inject(
      DiskFault(.error(EIO), of: [.read], at: 1, isPermanent: true, pathPart: newest))
    let engine = try LoadingTests.open(disk)
    #expect(try engine.view(at: .root) == root)
    #expect(engine.report.unreadableCheckpoints.count == 1)
    try engine.close()
  }

  @Test("a tree from a checkpoint of version 0 has no pages of a newer one")
  func version0() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try LoadingTests.open(disk)
    engine.submit(try set("k", .integer(1)), completion: nil)
    try engine.checkpoint()
    try engine.close()
    do {
      // The same checkpoint as an older release wrote it.
      let directory = try DatabaseDirectory.open(
        "/db", environment: disk.environment, mode: .readWrite(create: false))
      let lsn = LogSequenceNumber(1)
      let found = try CheckpointReader.open(directory, lsn: lsn)
      let key = try path("k").storedBytes
      var chunk: [UInt8] = [0, UInt8(key.count)] + key
      PackedScalar.append(.integer(1), to: &chunk)
      let writer = try CheckpointWriter.begin(
        directory, databaseID: found.databaseID, lsn: lsn, time: found.time,
        logChecksum: found.header.logChecksum, version: 0)
      try chunk.withUnsafeBytes { bytes in
        Result { () throws(StorageError) in try writer.chunk(bytes) }
      }.get()
      try writer.finish(leafCount: 1, contentHash: 0)
      directory.close()
    }
    let again = try LoadingTests.open(disk)
    for number in 0..<60 {
      again.submit(try set("k\(number % 12)/n\(number)", .integer(1)), completion: nil)
    }
    again.pump()
    try again.checkpoint()
    let root = again.head.root
    try again.close()
    let newest = try #require(disk.names(in: "/db").last { $0.hasSuffix(".checkpoint") })
    var number = 1
    while true {
      let faulty = disk.copy()
      faulty.inject(
        DiskFault(.error(EIO), of: [.open, .read, .size], at: number, pathPart: newest))
      let reader = try Engine.open(
        at: "/db", options: LoadingTests.options(), environment: faulty.environment,
        mode: .readOnly)
      let hasStruck = faulty.trace.contains { $0.errno == EIO }
      faulty.removeFaults()
      let isNewest = reader.report.checkpointLSN == LogSequenceNumber(61)
      #expect(isNewest == reader.report.unreadableCheckpoints.isEmpty, "call \(number)")
      #expect((reader.statistics().unreadChunkCount > 0) == isNewest, "call \(number)")
      #expect(try reader.view(at: .root) == root, "call \(number)")
      try reader.close()
      if !hasStruck { break }
      number += 1
    }
    #expect(number > 3)
  }
}
