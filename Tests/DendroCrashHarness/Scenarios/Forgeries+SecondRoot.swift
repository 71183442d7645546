import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

extension Forgeries {
  /// Checkpoints of both roots whose last chunk, which divides the others between them, says something else.
  static let ofSecondRoots: [Scenario] = [
    secondRoot("as it was written", isGood: true) { _ in },
    secondRoot("no chunk for the second root") { $0.dataChunkCount += 1 },
    secondRoot("more chunks of the data than there are") { $0.dataChunkCount = .max },
    secondRoot("no chunk of the data") { $0.dataChunkCount = 0 },
    secondRoot("another number of leaves") { $0.leafCount += 1 },
    secondRoot("another hash") { $0.contentHash ^= 1 },
    secondRoot("one byte less") { $0.byteCount -= 1 },
    secondRoot("one byte more") { $0.byteCount += 1 },
    secondRoot("leaves of bytes in the data") { $0.data = Node(.bytes([1, 2, 3])) },
  ]

  private struct Parts {
    var data = Node(.string("the data"))
    var system = Node(.bytes([1, 2, 3]))
    var dataChunkCount: UInt64 = 1
    var leafCount: UInt64 = 1
    var contentHash: UInt64 = 0
    var byteCount = 24
  }

  private static func secondRoot(
    _ name: String, isGood: Bool = false, _ forge: @escaping @Sendable (inout Parts) -> Void
  ) -> Scenario {
    Scenario("a checkpoint of both roots: " + name) {
      var parts = Parts()
      parts.contentHash = CheckpointCoding.contentHash(of: parts.system)
      forge(&parts)
      let disk = SimulatedDisk(seed: 1)
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
      let identity = DatabaseID(disk.randomness)
      let writer = try CheckpointWriter.begin(
        directory, databaseID: identity, lsn: lastWrite, time: 1, logChecksum: 0,
        hasSecondRoot: true)
      for tree in [parts.data, parts.system] { try write(tree, to: writer) }
      var bytes = ByteWriter()
      bytes.uint64(parts.dataChunkCount)
      bytes.uint64(parts.leafCount)
      bytes.uint64(parts.contentHash)
      bytes.uint64(0)
      try writer.chunk(UnsafeRawBufferPointer(rebasing: bytes.bytes[..<parts.byteCount]))
      try writer.finish(leafCount: 1, contentHash: CheckpointCoding.contentHash(of: parts.data))
      try LogWriter.create(
        directory, databaseID: identity, after: lastWrite, time: 1, hasSecondRoot: true
      ).close()
      directory.close()
      try judge(disk, isGood: isGood)
    }
  }

  private static func write(_ tree: Node, to writer: CheckpointWriter) throws {
    var pages = PageImageWriter()
    var hasher = ContentHash64()
    try pages.write(tree, hasher: &hasher) { (chunk) throws(PageFailure) in
      do throws(StorageError) {
        try writer.chunk(chunk)
      } catch {
        throw PageFailure(error)
      }
    }
  }
}
