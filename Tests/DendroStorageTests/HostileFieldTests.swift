import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// Fields that no writer of ours writes, under right checksums: each is refused, and what is said names
/// the rule that it breaks.
@Suite("Hostile fields")
struct HostileFieldTests {
  private static let salt: UInt64 = 5
  private static let path = CheckpointTests.path

  private static func found(_ body: () throws -> Void) -> (offset: UInt64, expected: String)? {
    let error = #expect(throws: StorageError.self) { try body() }
    guard case .corrupt(_, let offset, let expected, _) = error else {
      Issue.record("\(error as Any)")
      return nil
    }
    return (offset, expected)
  }

  /// The file header of a checkpoint or segment, with what is changed in it under a right checksum.
  private static func rechecked(_ header: [UInt8], _ change: (inout [UInt8]) -> Void) -> [UInt8] {
    var header = header
    change(&header)
    let checksum = header.withUnsafeBytes {
      Checksum.short(UnsafeRawBufferPointer(rebasing: $0[..<60]), seed: 0)
    }
    withUnsafeBytes(of: checksum.littleEndian) { header.replaceSubrange(60..., with: $0) }
    return header
  }

  private static func checkpointHeader(version: UInt32 = 1) -> [UInt8] {
    var writer = ByteWriter()
    CheckpointHeader(
      format: FileFormat(version: version), databaseID: CheckpointTests.id, salt: salt,
      lsn: LogSequenceNumber(7),
      time: 0,
      logChecksum: 0
    ).encode(into: &writer)
    return Array(writer.bytes)
  }

  // MARK: Headers

  @Test("a reserved field that is not zero, a first write 0, a field that is not there")
  func headers() throws {
    let reserved = Self.rechecked(Self.checkpointHeader(version: 0)) { $0[12] = 1 }
    let one = Self.found {
      try reserved.withUnsafeBytes { _ = try CheckpointHeader(decoding: $0, path: "c") }
    }
    #expect(one?.offset == 12 && one?.expected == "zero")

    var writer = ByteWriter()
    SegmentHeader(
      databaseID: CheckpointTests.id, salt: 1, firstLSN: LogSequenceNumber(1), baseTime: 0,
      previousChecksum: 0
    ).encode(into: &writer)
    let zero = Self.rechecked(Array(writer.bytes)) {
      $0.replaceSubrange(40..<48, with: repeatElement(0, count: 8))
    }
    let two = Self.found {
      try zero.withUnsafeBytes { _ = try SegmentHeader(decoding: $0, path: "s") }
    }
    #expect(two?.offset == 40 && two?.expected == "a first LSN of 1 or more")

    let short = Self.found {
      try [UInt8](repeating: 1, count: 11).withUnsafeBytes {
        var reader = FieldReader($0, of: "a footer", path: "c", offset: 100)
        _ = try reader.uint64()
        _ = try reader.uint32()
      }
    }
    #expect(short?.offset == 108 && short?.expected == "a footer")
  }

  // MARK: Checkpoints

  private struct Forged {
    /// Between the header and the index.
    var content: [UInt8] = []
    var index: [UInt8] = []
    var chunkCount: UInt32 = 0
    /// Other than what it is.
    var indexByteCount: UInt32?
    var magic = ChunkHeader.indexMagic

    var bytes: [UInt8] {
      var file = ByteWriter()
      HostileFieldTests.checkpointHeader().withUnsafeBytes { file.bytes($0) }
      content.withUnsafeBytes { file.bytes($0) }
      let offset = UInt64(file.count)
      var header = ByteWriter()
      ChunkHeader(
        isIndex: true, isCompressed: false, storedByteCount: index.count,
        rawByteCount: index.count, number: chunkCount,
        payloadChecksum: index.withUnsafeBytes { Checksum.xxh3($0, seed: salt) }
      ).encode(into: &header, salt: salt, offset: offset)
      var head = Array(header.bytes)
      withUnsafeBytes(of: magic.littleEndian) { head.replaceSubrange(..<4, with: $0) }
      let checksum = head.withUnsafeBytes {
        Checksum.short(UnsafeRawBufferPointer(rebasing: $0[..<28]), seed: salt &+ offset)
      }
      withUnsafeBytes(of: checksum.littleEndian) { head.replaceSubrange(28..., with: $0) }
      let all = Array((head + index).prefix(indexByteCount.map { Int($0) } ?? .max))
      all.withUnsafeBytes { file.bytes($0) }
      CheckpointFooter(
        indexOffset: offset, indexByteCount: UInt32(all.count), chunkCount: chunkCount,
        leafCount: 0, rawByteCount: 0, contentHash: 0, lsn: LogSequenceNumber(7)
      ).encode(into: &file, salt: salt)
      return Array(file.bytes)
    }
  }

  private static func found(in forged: Forged) throws -> (offset: UInt64, expected: String)? {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    _ = try disk.open(path, .create)
    disk.overwrite(path, at: 0, with: forged.bytes)
    return found { _ = try CheckpointReader.open(directory, lsn: LogSequenceNumber(7)) }
  }

  @Test("indexes that do not fit their file")
  func indexes() throws {
    // No harm without a change.
    let disk = SimulatedDisk()
    let directory = try open(disk)
    _ = try disk.open(Self.path, .create)
    disk.overwrite(Self.path, at: 0, with: Forged().bytes)
    #expect(try CheckpointReader.open(directory, lsn: LogSequenceNumber(7)).chunkCount == 0)

    let none = try Self.found(in: Forged(index: [32, 0], chunkCount: 5))
    #expect(none?.expected == "an index of chunks that have room in 0 bytes")
    let few = try Self.found(
      in: Forged(content: noise(200, seed: 1), index: [32, 0], chunkCount: 5))
    #expect(few?.expected == "an index of 5 chunks")
    let small = try Self.found(
      in: Forged(content: noise(40, seed: 1), index: [5, 0], chunkCount: 1))
    #expect(small?.expected == "an index of 1 chunks")
    let endless = try Self.found(
      in: Forged(content: noise(40, seed: 1), index: [0x80, 0x80, 0x80], chunkCount: 1))
    #expect(endless?.expected == "an index of 1 chunks")
    let gap = try Self.found(
      in: Forged(content: noise(40, seed: 1), index: [32, 0], chunkCount: 1))
    #expect(gap?.expected == "chunks up to the index at 104")
    // Where an index of no bytes would be too small for a file at all.
    let short = try Self.found(in: Forged(content: noise(40, seed: 1), indexByteCount: 10))
    #expect(short?.expected == "a chunk header of 32 bytes")
    let magic = try Self.found(in: Forged(magic: ChunkHeader.magic))
    #expect(magic?.expected == "the index")
  }

  @Test("a checkpoint that becomes shorter while it is read")
  func shrinking() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    try CheckpointTests.write(directory)
    let reader = try CheckpointReader.open(directory, lsn: LogSequenceNumber(7))
    disk.resize(Self.path, to: 80)
    let first = Self.found { try reader.readChunk(0) { _ in } }
    #expect(first?.offset == 64)
  }

  // MARK: The log

  @Test("a seal of another size, and one with writes, is no record")
  func seals() throws {
    let segment = SegmentHeader(
      databaseID: CheckpointTests.id, salt: 1, firstLSN: LogSequenceNumber(1), baseTime: 0,
      previousChecksum: 0)
    for (count, byteCount) in [(0, 4), (0, 5), (1, 4)] {
      let header = RecordHeader(
        kind: .seal, isCompressed: false, isRestart: false, storedByteCount: byteCount,
        rawByteCount: byteCount, firstLSN: LogSequenceNumber(3), count: count, baseTime: 0,
        durableUpTo: LogSequenceNumber(1), previousChecksum: 0, payloadChecksum: 0)
      var bytes = [UInt8](repeating: 0, count: RecordHeader.byteCountMax)
      _ = bytes.withUnsafeMutableBytes {
        header.encode(at: $0.baseAddress!, offset: 64, segment: segment)
      }
      let decoded = bytes.withUnsafeBytes {
        RecordHeader.decode($0, offset: 64, segment: segment)
      }
      switch decoded {
      case .valid: #expect((count, byteCount) == (0, 4))
      case .invalid(let fault):
        #expect((count, byteCount) != (0, 4))
        #expect(fault.expected == "a seal of 4 bytes")
      }
    }
  }

  @Test("more behind the last record than a crash can leave is not searched")
  func endlessTail() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    directory.close()
    let end = try #require(disk.contents(of: segmentPath(1))).count
    disk.overwrite(segmentPath(1), at: end, with: [1])
    disk.resize(segmentPath(1), to: end + 1 << 30 + 1)
    let tail = Self.found { _ = try read(disk) }
    #expect(tail?.offset == UInt64(end))
  }

  @Test("a segment that begins before its predecessor ends")
  func overlappingSegments() throws {
    func log(rollingAfter count: Int) throws -> SimulatedDisk {
      let disk = SimulatedDisk(seed: 3)
      let directory = try open(disk)
      let writer = try newLog(directory)
      for number in 0..<6 {
        try writer.append(payload(number))
        if number + 1 == count { try writer.roll(time: 1_704_067_200_000) }
      }
      directory.close()
      return disk
    }
    let long = try log(rollingAfter: 0)
    let rolled = try log(rollingAfter: 3)
    try #require(rolled.exists(segmentPath(4)))
    // The first segment of the one, whole, before the second of the other.
    let first = try #require(long.contents(of: segmentPath(1)))
    rolled.resize(segmentPath(1), to: 0)
    rolled.overwrite(segmentPath(1), at: 0, with: first)
    let overlap = Self.found { _ = try read(rolled) }
    #expect(overlap?.offset == 40)
    #expect(overlap?.expected.hasPrefix("first LSN 7") == true)
  }

  @Test("a segment that becomes shorter while it is read")
  func shrinkingSegment() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(noise(300, seed: 1))
    try writer.append(payload(1))
    let name = SegmentName(firstLSN: LogSequenceNumber(1))
    let segment = try SegmentReader(name, in: directory)
    guard case .record(let record) = try segment.record(at: 64) else {
      Issue.record("no record")
      return
    }
    try segment.refresh()
    let copy = disk.copy()
    disk.resize(segmentPath(1), to: Int(record.offset) + record.headerByteCount + 10)
    guard case .failure(let fault) = try segment.payload(of: record) else {
      Issue.record("a payload that is not there")
      return
    }
    #expect(!fault.isWhole && fault.found == "10 bytes")

    let whole = try openReadOnly(copy)
    let source = try SegmentReader(name, in: whole)
    try source.refresh()
    copy.resize(segmentPath(1), to: 100)
    let target = try copy.open(root + "/copy", .create)
    let cut = Self.found {
      try source.copy(from: 64, to: source.byteCount, into: target, path: root + "/copy")
    }
    #expect(cut?.offset == 100)
  }

  // MARK: Compression

  @Test("a history that is longer than any of ours is decoded, its memory bounded")
  func longHistory() throws {
    var compressor = HistoryCompressor()
    var decompressor = HistoryDecompressor()
    var random = SeededRandomness(seed: 1)
    // Without the restart bit: blocks that refer to less history than they could decode all the same.
    for number in 0..<200 {
      let raw = payload(number, Int.random(in: 1...40_000, using: &random))
      var block = [UInt8](repeating: 0, count: Compression.bound(raw.count))
      let count = raw.withUnsafeBytes { raw in
        block.withUnsafeMutableBytes { compressor.compress(raw, into: $0.baseAddress!) }
          .storedByteCount
      }
      if count == 0 {
        raw.withUnsafeBytes { decompressor.append(raw: $0) }
        continue
      }
      let decoded = block.withUnsafeBytes { block in
        decompressor.decompress(
          UnsafeRawBufferPointer(rebasing: block[..<count]), rawByteCount: raw.count
        ).map { Array($0) }
      }
      #expect(decoded == raw)
    }
  }
}
