import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// A directory with a sealed segment of several blocks, a short last segment and a checkpoint, each with its parity.
struct ParityDirectory {
  let disk: SimulatedDisk
  let directory: DatabaseDirectory
  /// The bytes of each file, before anything was done to them.
  let originals: [String: [UInt8]]

  static let segment = SegmentName(firstLSN: LogSequenceNumber(1)).fileName
  static let last = SegmentName(firstLSN: LogSequenceNumber(41)).fileName
  static let checkpoint = FileName.checkpointName(LogSequenceNumber(40))
  static let names = [segment, last, checkpoint]

  init() throws {
    disk = SimulatedDisk()
    directory = try open(disk)
    let log = try newLog(directory)
    for number in 1...40 { try log.append(noise(3500, seed: UInt64(number))) }
    try log.roll(time: 5)
    for number in 41...43 { try log.append(payload(number)) }
    try log.close()
    let writer = try CheckpointWriter.begin(
      directory, databaseID: DatabaseID(high: 1, low: 2), lsn: LogSequenceNumber(40), time: 1234,
      logChecksum: 0)
    for number in 0..<30 {
      let result = noise(9000, seed: UInt64(100 + number)).withUnsafeBytes { raw in
        Result { () throws(StorageError) in try writer.chunk(raw) }
      }
      try result.get()
    }
    try writer.finish(leafCount: 99, contentHash: 0xABCD)
    for name in Self.names { try directory.writeParity(of: name) }
    var originals: [String: [UInt8]] = [:]
    for name in try directory.contents().fileNames + directory.contents().parityFiles {
      originals[name] = disk.contents(of: root + "/" + name)
    }
    self.originals = originals
  }

  func layout(of name: String) -> ParityLayout {
    ParityLayout(coveredByteCount: UInt64(originals[name]?.count ?? 0))
  }

  /// Bytes of the widest stretch whose damage costs nothing, wherever it begins.
  func width(of name: String) -> Int {
    (Int(layout(of: name).parityBlockCount) - 1) * ParityLayout.blockByteCount + 1
  }

  /// Changes every byte of a range of a file.
  func damage(_ name: String, _ range: Range<Int>) {
    let bytes = originals[name] ?? []
    disk.overwrite(
      root + "/" + name, at: range.lowerBound,
      with: bytes[range.clamped(to: 0..<bytes.count)].map(~))
  }

  func restore(_ name: String) {
    let bytes = originals[name] ?? []
    disk.resize(root + "/" + name, to: bytes.count)
    disk.overwrite(root + "/" + name, at: 0, with: bytes)
  }

  func mending(of name: String) throws -> Mending { try Mending(of: name, in: directory) }

  /// What a file reads as through its parity.
  func mended(_ name: String) throws -> [UInt8] {
    let mended = try directory.mended(by: [mending(of: name)])
    defer { if mended !== directory { mended.close() } }
    let path = root + "/" + name
    let file = try mended.fileSystem.open(at: path, .read)
    var bytes = RawBuffer()
    // Pieces that keep to no block.
    let piece = 10_007
    bytes.reserve(piece)
    var all: [UInt8] = []
    while true {
      let count = try file.readFully(
        into: UnsafeMutableRawBufferPointer(start: bytes.base, count: piece),
        at: UInt64(all.count), path: path)
      all += UnsafeRawBufferPointer(start: bytes.base, count: count)
      if count < piece { break }
    }
    #expect(try file.size(path: path) == UInt64(all.count))
    return all
  }
}
