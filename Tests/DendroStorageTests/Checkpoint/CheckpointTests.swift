import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

@Suite struct CheckpointTests {
  static let id = DatabaseID(high: 1, low: 2)
  static let path = root + "/00000000000000000007.checkpoint"

  static let chunks: [[UInt8]] = [
    payload(1, 3000), noise(500, seed: 1), payload(2, 100_000), [], noise(70_000, seed: 2), [7],
  ]

  static func write(_ directory: DatabaseDirectory, lsn: UInt64 = 7) throws(StorageError) {
    let writer = try CheckpointWriter.begin(
      directory, databaseID: id, lsn: LogSequenceNumber(lsn), time: 1234, logChecksum: 0)
    do {
      for chunk in chunks { try add(chunk, to: writer) }
      try writer.finish(leafCount: 99, contentHash: 0xABCD)
    } catch {
      writer.abort()
      throw error
    }
  }

  fileprivate static func add(_ chunk: [UInt8], to writer: CheckpointWriter)
    throws(StorageError)
  {
    let result = chunk.withUnsafeBytes { raw in
      Result { () throws(StorageError) in try writer.chunk(raw) }
    }
    try result.get()
  }

  /// Everything that a reader returns.
  static func contents(_ directory: DatabaseDirectory, lsn: UInt64 = 7) throws(StorageError)
    -> [[UInt8]]
  {
    let reader = try CheckpointReader.open(directory, lsn: LogSequenceNumber(lsn))
    var all: [[UInt8]] = [
      bytes("\(reader.databaseID) \(reader.lsn) \(reader.time)"),
      bytes("\(reader.leafCount) \(reader.contentHash) \(reader.rawByteCount)"),
    ]
    for chunk in 0..<reader.chunkCount {
      all.append(try reader.readChunk(chunk) { (bytes) throws(StorageError) in Array(bytes) })
    }
    return all
  }

  @Test("what was written is read, chunk by chunk and in any order")
  func roundTrip() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    try Self.write(directory)
    #expect(try directory.contents().checkpoints == [LogSequenceNumber(7)])
    #expect(try directory.contents().temporaries == [])
    let reader = try CheckpointReader.open(directory, lsn: LogSequenceNumber(7))
    #expect(reader.databaseID == Self.id && reader.time == 1234 && reader.leafCount == 99)
    #expect(reader.contentHash == 0xABCD && reader.chunkCount == Self.chunks.count)
    for index in Self.chunks.indices.reversed() {
      #expect(reader.rawByteCount(ofChunk: index) == Self.chunks[index].count)
      let raw = try reader.readChunk(index) { (bytes) throws(StorageError) in Array(bytes) }
      #expect(raw == Self.chunks[index])
    }
  }

  @Test("a checkpoint of no chunks")
  func empty() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try CheckpointWriter.begin(
      directory, databaseID: Self.id, lsn: LogSequenceNumber(1), time: 0, logChecksum: 0)
    try writer.finish(leafCount: 0, contentHash: 1)
    #expect(try Self.contents(directory, lsn: 1).count == 2)
  }

  @Test("threads read chunks side by side")
  func concurrent() async throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    try Self.write(directory)
    let reader = try CheckpointReader.open(directory, lsn: LogSequenceNumber(7))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for round in 0..<20 {
            let index = (task + round) % Self.chunks.count
            let raw = try reader.readChunk(index) { (bytes) throws(StorageError) in Array(bytes) }
            #expect(raw == Self.chunks[index])
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("every flipped bit is refused with its place, or changes nothing that is read")
  func everyBit() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try CheckpointWriter.begin(
      directory, databaseID: Self.id, lsn: LogSequenceNumber(7), time: 1, logChecksum: 0)
    for chunk in [payload(1, 300), noise(100, seed: 1)] {
      try Self.add(chunk, to: writer)
    }
    try writer.finish(leafCount: 2, contentHash: 3)
    let whole = try Self.contents(directory)
    let size = try #require(disk.contents(of: Self.path)).count
    var harmless = 0
    for bit in 0..<(size * 8) {
      disk.flipBit(bit, of: Self.path)
      do throws(StorageError) {
        // Two LZ4 blocks can stand for the same bytes: another offset into a repetition.
        #expect(try Self.contents(directory) == whole, "bit \(bit)")
        harmless += 1
      } catch {
        switch error {
        case .corrupt(_, let offset, _, _): #expect(offset <= UInt64(size))
        case .unsupportedVersion, .unsupportedFeatures: break
        default: Issue.record("\(error)")
        }
      }
      disk.flipBit(bit, of: Self.path)
    }
    #expect(harmless < size / 10)
  }

  @Test("a file that was cut or lengthened anywhere is refused")
  func everySize() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try CheckpointWriter.begin(
      directory, databaseID: Self.id, lsn: LogSequenceNumber(7), time: 1, logChecksum: 0)
    try Self.add(payload(1, 300), to: writer)
    try writer.finish(leafCount: 2, contentHash: 3)
    let size = try #require(disk.contents(of: Self.path)).count
    for length in Array(0..<size) + [size + 1, size + 64, size + 4096] {
      let hurt = disk.copy()
      hurt.resize(Self.path, to: length)
      let directory = try open(hurt)
      #expect(throws: StorageError.self, "\(length)") { try Self.contents(directory) }
    }
  }

  @Test("a version from the future is refused, both versions named")
  func futureVersion() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    try Self.write(directory)
    var header = Array(try #require(disk.contents(of: Self.path)).prefix(64))
    header[8] = 9
    let checksum = header.withUnsafeBytes {
      Checksum.short(UnsafeRawBufferPointer(rebasing: $0[..<60]), seed: 0)
    }
    withUnsafeBytes(of: checksum.littleEndian) { header.replaceSubrange(60..., with: $0) }
    disk.overwrite(Self.path, at: 0, with: header)
    #expect(
      throws: StorageError.unsupportedVersion(
        path: Self.path, found: 9, supported: FileFormat.newestVersion)
    ) { try Self.contents(directory) }
  }

  @Test("a checkpoint under another's name is refused")
  func otherName() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    try Self.write(directory)
    try disk.rename(Self.path, to: root + "/00000000000000000008.checkpoint")
    #expect(throws: StorageError.self) { try Self.contents(directory, lsn: 8) }
  }

  @Test("a crash at every call leaves the checkpoint whole or none, and the older one untouched")
  func crashAtEveryCall() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    try Self.write(directory, lsn: 3)
    let older = try Self.contents(directory, lsn: 3)
    let before = disk.operationCount
    try Self.write(directory, lsn: 7)
    let newer = try Self.contents(directory, lsn: 7)
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    enumeration.tornByteStride = 997
    enumeration.sampleCount = 10
    for point in disk.crashPoints() where point.operationCount >= before {
      point.forEachState(enumeration) { state in
        do throws(StorageError) {
          let directory = try open(point.disk(state))
          let contents = try directory.contents()
          #expect(contents.foreign.isEmpty && contents.temporaries.isEmpty)
          #expect(areSame(try Self.contents(directory, lsn: 3), older))
          if contents.checkpoints.count == 2 {
            #expect(areSame(try Self.contents(directory, lsn: 7), newer))
          } else {
            #expect(point.operationCount < disk.operationCount, "a finished checkpoint is gone")
          }
        } catch {
          Issue.record("at \(point.operationCount), \(state): \(error)")
        }
      }
    }
    let last = disk.crashPoint()
    #expect(try open(last.disk(last.allDropped)).contents().checkpoints.count == 2)
  }

  @Test(
    "the n-th call fails: no checkpoint, or a whole one; nothing unfinished after the next opening")
  func failureOfEveryCall() throws {
    for code in [SystemError.noSpace.code, SystemError.inputOutput.code] {
      var number = 1
      while true {
        let disk = SimulatedDisk()
        let directory = try open(disk)
        let before = disk.operationCount
        disk.inject(.failure(at: number, with: code))
        var isDone = false
        do throws(StorageError) {
          try Self.write(directory)
          isDone = true
        } catch {
          #expect(!error.isDamage)
        }
        let calls = disk.operationCount - before
        disk.removeFaults()
        directory.close()
        let again = try open(disk)
        let contents = try again.contents()
        #expect(contents.temporaries.isEmpty)
        if isDone || !contents.checkpoints.isEmpty {
          #expect(try Self.contents(again).count == 2 + Self.chunks.count)
        }
        if number > calls { break }
        number += 1
      }
    }
  }

  @Test("random bytes behind a right header are refused, whatever they claim")
  func hostileLengthsAndCounts() throws {
    var random = SeededRandomness(seed: 21)
    let disk = SimulatedDisk()
    let directory = try open(disk)
    for round in 0..<3000 {
      var file = ByteWriter()
      let header = CheckpointHeader(
        databaseID: Self.id, salt: 5, lsn: LogSequenceNumber(7), time: 0, logChecksum: 0)
      header.encode(into: &file)
      // Right checksums over hostile fields: lengths, counts and offsets of any size.
      func hostileNumber() -> UInt64 {
        let bits = Int.random(in: 0...64, using: &random)
        return bits == 64 ? .max : random.next() & ((1 << UInt64(bits)) - 1)
      }
      let body = noise(Int.random(in: 0...200, using: &random), seed: UInt64(round))
      ChunkHeader(
        isIndex: true, isCompressed: Bool.random(using: &random),
        storedByteCount: round % 2 == 0
          ? body.count : Int(UInt32(truncatingIfNeeded: hostileNumber())),
        rawByteCount: round % 2 == 0
          ? body.count : Int(UInt32(truncatingIfNeeded: hostileNumber())),
        number: UInt32(truncatingIfNeeded: hostileNumber()),
        payloadChecksum: body.withUnsafeBytes { Checksum.xxh3($0, seed: 5) }
      ).encode(into: &file, salt: 5, offset: UInt64(file.count))
      body.withUnsafeBytes { file.bytes($0) }
      let indexOffset = Bool.random(using: &random) ? 64 : hostileNumber()
      let indexByteCount =
        Bool.random(using: &random)
        ? UInt32(32 + body.count) : UInt32(truncatingIfNeeded: hostileNumber())
      CheckpointFooter(
        indexOffset: indexOffset, indexByteCount: indexByteCount,
        chunkCount: UInt32(truncatingIfNeeded: hostileNumber()), leafCount: hostileNumber(),
        rawByteCount: hostileNumber(), contentHash: 0, lsn: LogSequenceNumber(7)
      ).encode(into: &file, salt: 5)
      if round == 0 { _ = try disk.open(Self.path, .create) }
      disk.resize(Self.path, to: 0)
      disk.overwrite(Self.path, at: 0, with: Array(file.bytes))
      do throws(StorageError) {
        // What happens to be right by chance has no chunk.
        #expect(try CheckpointReader.open(directory, lsn: LogSequenceNumber(7)).chunkCount == 0)
      } catch {
        #expect(error.isDamage, "\(error)")
      }
    }
  }

  /// A file of one chunk and the index, whatever they say about their sizes.
  private static func file(
    chunk: (stored: Int, raw: Int), index: [UInt8], chunkCount: UInt32 = 1
  ) -> [UInt8] {
    var file = ByteWriter()
    let salt: UInt64 = 5
    CheckpointHeader(
      databaseID: id, salt: salt, lsn: LogSequenceNumber(7), time: 0, logChecksum: 0
    ).encode(into: &file)
    ChunkHeader(
      isIndex: false, isCompressed: true, storedByteCount: chunk.stored, rawByteCount: chunk.raw,
      number: 0, payloadChecksum: 0
    ).encode(into: &file, salt: salt, offset: UInt64(file.count))
    [UInt8](repeating: 0, count: chunk.stored).withUnsafeBytes { file.bytes($0) }
    let indexOffset = file.count
    ChunkHeader(
      isIndex: true, isCompressed: false, storedByteCount: index.count, rawByteCount: index.count,
      number: chunkCount, payloadChecksum: index.withUnsafeBytes { Checksum.xxh3($0, seed: salt) }
    ).encode(into: &file, salt: salt, offset: UInt64(file.count))
    index.withUnsafeBytes { file.bytes($0) }
    CheckpointFooter(
      indexOffset: UInt64(indexOffset), indexByteCount: UInt32(file.count - indexOffset),
      chunkCount: chunkCount, leafCount: 1, rawByteCount: UInt64(chunk.raw), contentHash: 0,
      lsn: LogSequenceNumber(7)
    ).encode(into: &file, salt: salt)
    return Array(file.bytes)
  }

  @Test("sizes that no chunk and no index can have are refused when it is opened")
  func impossibleSizes() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    _ = try disk.open(Self.path, .create)
    func refusal(_ file: [UInt8]) -> String? {
      disk.resize(Self.path, to: 0)
      disk.overwrite(Self.path, at: 0, with: file)
      do throws(StorageError) {
        _ = try CheckpointReader.open(directory, lsn: LogSequenceNumber(7))
        return nil
      } catch {
        guard case .corrupt(_, _, let expected, let found) = error else { return "\(error)" }
        return "\(expected); \(found)"
      }
    }
    func entry(_ byteCount: Int, _ raw: Int) -> [UInt8] {
      var index = ByteWriter()
      index.varint(UInt64(byteCount))
      index.varint(UInt64(raw))
      return Array(index.bytes)
    }
    let most = Compression.bound(100)
    #expect(refusal(Self.file(chunk: (most, 100), index: entry(32 + most, 100))) == nil)
    let chunk = refusal(Self.file(chunk: (most + 1, 100), index: entry(33 + most, 100)))
    #expect(
      chunk == "an index of 1 chunks; chunk 0 of \(33 + most) bytes, 100 raw, at 64")
    let small = Self.file(
      chunk: (10, 100), index: entry(42, 100) + [UInt8](repeating: 0, count: 90))
    #expect(
      refusal(small) == "an index of chunks that have room in 42 bytes; 124 bytes for 1 chunks")
    let many = Self.file(
      chunk: (10, 100), index: [UInt8](repeating: 32, count: 100), chunkCount: 50)
    #expect(
      refusal(many) == "an index of chunks that have room in 42 bytes; 132 bytes for 50 chunks")
  }

  @Test("a chunk of more bytes than a reader accepts is not written")
  func longChunk() throws {
    let directory = try open(SimulatedDisk())
    let writer = try CheckpointWriter.begin(
      directory, databaseID: Self.id, lsn: LogSequenceNumber(7), time: 0, logChecksum: 0)
    let chunk = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ChunkHeader.rawByteLimit + 1, alignment: 1)
    defer { chunk.deallocate() }
    let expected = StorageError.limit(
      what: "the size of a checkpoint chunk", value: UInt64(chunk.count),
      limit: UInt64(ChunkHeader.rawByteLimit))
    #expect(throws: expected) { try writer.chunk(UnsafeRawBufferPointer(chunk)) }
    writer.abort()
    #expect(try directory.contents().checkpoints.isEmpty)
  }
}
