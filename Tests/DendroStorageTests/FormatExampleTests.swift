import DendroPlatform
import DendroTesting
import Testing

@testable import DendroStorage

/// The worked examples of the format's articles: the bytes in the article are read, and are what is
/// written today.
@Suite struct FormatExampleTests {
  final class FixedRandomness: Randomness {
    func next() -> UInt64 { 0x1122_3344_5566_7788 }
  }

  static let id = DatabaseID(high: 0x0706_0504_0302_0100, low: 0x0F0E_0D0C_0B0A_0908)

  static func environment(_ disk: SimulatedDisk) -> Environment {
    Environment(fileSystem: disk, clock: disk.clock, randomness: FixedRandomness())
  }

  static func directory(_ disk: SimulatedDisk) throws -> DatabaseDirectory {
    try DatabaseDirectory.open(
      root, environment: environment(disk), mode: .readWrite(create: true))
  }

  static func writeLog(_ disk: SimulatedDisk) throws {
    let directory = try directory(disk)
    let writer = try LogWriter.create(
      directory, databaseID: id, time: 1_700_000_000_000, options: plainOptions)
    func append(_ payload: [UInt8], count: Int, time: Int64) throws {
      try payload.withUnsafeBytes { bytes in
        try writer.stage(bytes, firstLSN: writer.nextLSN, count: count, baseTime: time)
      }
      try writer.write()
      try writer.synchronize()
    }
    try append(bytes("first"), count: 1, time: 1_700_000_000_005)
    try append(Array(repeating: UInt8(ascii: "a"), count: 40), count: 2, time: 1_700_000_000_300)
    try append([0, 1, 0, 4, 1, 0x61, 1, 0x62, 0x11, 1], count: 1, time: 1_700_000_000_301)
    try writer.writeIdleRecord()
    try writer.roll(time: 1_700_000_001_000)
  }

  static func writeCheckpoint(_ disk: SimulatedDisk) throws {
    let directory = try directory(disk)
    let writer = try CheckpointWriter.begin(
      directory, databaseID: id, lsn: LogSequenceNumber(3), time: 1_700_000_000_300,
      logChecksum: 0xD404_F71B)
    for chunk in [bytes("first"), Array(repeating: UInt8(ascii: "a"), count: 40)] {
      try chunk.withUnsafeBytes { try writer.chunk($0) }
    }
    try writer.finish(leafCount: 2, contentHash: 0xC0FFEE)
  }

  /// The bytes of an article's hex blocks: lines of an offset, two spaces, and bytes in hex.
  static func example(_ article: String) throws -> [UInt8] {
    let source = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let path = "/\(source)/Sources/DendroStorage/DendroStorage.docc/\(article).md"
    let file = try DiskFileSystem().open(at: path, .read)
    var text = [UInt8](repeating: 0, count: Int(try file.size(path: path)))
    _ = try text.withUnsafeMutableBytes { try file.readFully(into: $0, at: 0, path: path) }
    var found: [UInt8] = []
    for line in text.split(separator: UInt8(ascii: "\n")) {
      let words = String(decoding: line, as: UTF8.self).split(separator: " ")
      guard let first = words.first, first.utf8.count == 4, let offset = Int(first, radix: 16),
        offset == found.count
      else { continue }
      for word in words.dropFirst() {
        guard word.utf8.count == 2, let byte = UInt8(word, radix: 16) else { break }
        found.append(byte)
      }
    }
    return found
  }

  @Test("the log of the article is what is written, and is read")
  func logOfTheArticle() throws {
    let example = try Self.example("LogFormat")
    let disk = SimulatedDisk()
    try Self.writeLog(disk)
    #expect(disk.contents(of: segmentPath(1)) == example)

    let other = SimulatedDisk()
    try other.createDirectory(root)
    for first in [1, 5] as [UInt64] {
      _ = try other.open(segmentPath(first), .create)
      let content = first == 1 ? example : try #require(disk.contents(of: segmentPath(5)))
      other.overwrite(segmentPath(first), at: 0, with: content)
    }
    let log = try #require(try read(other))
    #expect(
      log.entries == [
        Entry(firstLSN: 1, count: 1, time: 1_700_000_000_005, payload: bytes("first")),
        Entry(
          firstLSN: 2, count: 2, time: 1_700_000_000_300,
          payload: Array(repeating: UInt8(ascii: "a"), count: 40)),
        Entry(
          firstLSN: 4, count: 1, time: 1_700_000_000_301,
          payload: [0, 1, 0, 4, 1, 0x61, 1, 0x62, 0x11, 1]),
      ])
    #expect(log.end.databaseID == Self.id)
  }

  @Test("the checkpoint of the article is what is written, and is read")
  func checkpointOfTheArticle() throws {
    let example = try Self.example("CheckpointFormat")
    let disk = SimulatedDisk()
    try Self.writeCheckpoint(disk)
    let path = root + "/00000000000000000003.checkpoint"
    #expect(disk.contents(of: path) == example)

    let other = SimulatedDisk()
    try other.createDirectory(root)
    _ = try other.open(path, .create)
    other.overwrite(path, at: 0, with: example)
    let reader = try CheckpointReader.open(try open(other), lsn: LogSequenceNumber(3))
    #expect(reader.chunkCount == 2 && reader.contentHash == 0xC0FFEE && reader.leafCount == 2)
    #expect(try reader.readChunk(0) { (raw) throws(StorageError) in Array(raw) } == bytes("first"))
    #expect(
      try reader.readChunk(1) { (raw) throws(StorageError) in Array(raw) }
        == Array(repeating: UInt8(ascii: "a"), count: 40))
  }

  @Test("the parity of the article is what is written, and is read")
  func parityOfTheArticle() throws {
    let example = try Self.example("ParityFormat")
    let disk = SimulatedDisk()
    try Self.writeCheckpoint(disk)
    let directory = try open(disk)
    let name = FileName.checkpointName(LogSequenceNumber(3))
    try directory.writeParity(of: name)
    let checkpoint = try #require(disk.contents(of: root + "/" + name))
    let path = root + "/" + FileName.parityName(of: name)
    let block = checkpoint + Array(repeating: 0, count: 4096 - checkpoint.count)
    #expect(disk.contents(of: path) == example + block)
    let parity = try ParityFile(path, disk)
    #expect(parity.header.head == Array(checkpoint[..<64]))
    #expect(parity.layout == ParityLayout(coveredByteCount: UInt64(checkpoint.count)))
    #expect(parity.checksum(ofBlock: 0) == 0x9445_E18C_3129_32E7)
  }
}
