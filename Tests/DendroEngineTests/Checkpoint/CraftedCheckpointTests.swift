import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

/// Checkpoints that no engine of ours writes, under right checksums. Their pages are read when they are touched.
@Suite("Crafted checkpoints")
struct CraftedCheckpointTests {
  private static let objectCount = 12

  /// Objects with a few leaves each, so that several of their pages are in one chunk.
  private static func tree() throws -> Node {
    var root = Node.empty
    for object in 0..<objectCount {
      for leaf in 0..<6 {
        _ = root.apply(
          .set(try path("o\(object)/leaf\(leaf)"), Node(.string("\(object) of \(leaf)"))))
      }
    }
    return root
  }

  private static func chunks(of root: Node) throws -> [[UInt8]] {
    struct NoHasher: ContentHasher {
      mutating func combine(_ bytes: UnsafeRawBufferPointer) {}
    }
    var chunks: [[UInt8]] = []
    var writer = PageImageWriter(chunkByteLimit: 500)
    var hasher = NoHasher()
    try writer.write(root, hasher: &hasher) { (bytes) throws(PageFailure) in
      chunks.append(Array(bytes))
    }
    return chunks
  }

  /// A database that is nothing but a checkpoint of these chunks, and the log behind it.
  private static func database(_ chunks: [[UInt8]], leafCount: UInt64) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 1)
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readWrite(create: true))
    defer { directory.close() }
    let id = DatabaseID(high: 1, low: 2)
    let lsn = LogSequenceNumber(1)
    let writer = try CheckpointWriter.begin(
      directory, databaseID: id, lsn: lsn, time: 0, logChecksum: 7)
    for chunk in chunks {
      let result = chunk.withUnsafeBytes { bytes in
        Result { () throws(StorageError) in try writer.chunk(bytes) }
      }
      try result.get()
    }
    try writer.finish(leafCount: leafCount, contentHash: 0)
    try LogWriter.create(directory, databaseID: id, after: lsn, logChecksum: 7, time: 0).close()
    return disk
  }

  /// Where a page says something about one in another chunk: which kind it has, its chunk, its place there, its
  /// children, its depth. Each takes one byte in these trees.
  private static func references(_ chunk: [UInt8]) -> [Int] {
    let pages = chunk.withUnsafeBytes { AnnotatedPages($0).pages }
    return pages.flatMap(\.fields).filter { $0.name.hasPrefix("page below") && $0.bytes.count == 5 }
      .map(\.offset)
  }

  /// Whether all pages can be read one chunk after the other, as a check of the whole file does.
  private static func isWhole(_ disk: SimulatedDisk) throws -> Bool {
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    do throws(StorageError) {
      _ = try CheckpointCoding.decode(
        try CheckpointReader.open(directory, lsn: LogSequenceNumber(1)))
      return true
    } catch {
      guard case .corrupt = error else { throw error }
      return false
    }
  }

  /// Reads and writes every object, in this order.
  ///
  /// - Returns: how many objects could not be read.
  private static func use(
    _ engine: Engine, _ root: Node, _ objects: some Sequence<Int>, _ what: Comment
  ) throws -> Int {
    var failed = 0
    for object in objects {
      let place = try path("o\(object)")
      do throws(EngineError) {
        #expect(try engine.view(at: place) == root.node(at: place), what)
      } catch {
        guard error.isDamage else {
          Issue.record("\(what): \(error)")
          continue
        }
        failed += 1
      }
    }
    for object in objects {
      engine.submit(try set("o\(object)/leaf0/new", .bool(true))) { _ in }
      engine.submit(try set("o\(object)/leaf1", .bool(true)), completion: nil)
      engine.submit(Draft(.remove(try path("o\(object)"))), completion: nil)
    }
    engine.pump()
    return failed
  }

  @Test(
    "a page that is not what the page above says fails all pages of its chunk, and is never empty data"
  )
  func references() throws {
    let root = try Self.tree()
    let chunks = try Self.chunks(of: root)
    var count = 0
    for number in chunks.indices {
      for offset in Self.references(chunks[number]) {
        // All but the number of the chunk, which can be that of another chunk with the same pages.
        for (field, change) in [(0, 1), (2, 1), (3, 1), (3, 2), (4, 1)] {
          for isReversed in [false, true] {
            var changed = chunks
            changed[number][offset + field] ^= UInt8(change)
            let what: Comment = "byte \(offset + field) of chunk \(number)"
            let disk = try Self.database(changed, leafCount: root.leafCount64)
            #expect(try !Self.isWhole(disk), what)
            let engine: Engine
            do {
              engine = try Engine.open(
                at: "/db", options: LoadingTests.options(), environment: disk.environment)
            } catch {
              continue
            }
            let objects = 0..<Self.objectCount
            let failed =
              isReversed
              ? try Self.use(engine, root, objects.reversed(), what)
              : try Self.use(engine, root, objects, what)
            #expect(failed > 1, what)
            #expect(throws: EngineError.self, what) { try engine.wholeHead() }
            try engine.close()
            count += 1
          }
        }
      }
    }
    #expect(count > 50)
  }

  @Test("a page that refers to a chunk of another one")
  func otherChunk() throws {
    let root = try Self.tree()
    let chunks = try Self.chunks(of: root)
    for number in chunks.indices {
      for offset in Self.references(chunks[number]) {
        for chunk in 0..<UInt8(number) where chunk != chunks[number][offset + 1] {
          var changed = chunks
          changed[number][offset + 1] = chunk
          let disk = try Self.database(changed, leafCount: root.leafCount64)
          guard
            let engine = try? Engine.open(
              at: "/db", options: LoadingTests.options(), environment: disk.environment)
          else { continue }
          #expect(throws: EngineError.self) { try engine.wholeHead() }
          engine.submit(try set("o1/leaf1", .bool(true)), completion: nil)
          engine.pump()
          try engine.close()
        }
      }
    }
  }

  @Test("a page to which no page refers")
  func spare() throws {
    let root = try Self.tree()
    var chunks = try Self.chunks(of: root)
    chunks[0] += chunks[0]
    let disk = try Self.database(chunks, leafCount: root.leafCount64)
    let engine = try Engine.open(
      at: "/db", options: LoadingTests.options(), environment: disk.environment)
    let failed = try Self.use(engine, root, 0..<Self.objectCount, "a spare page")
    #expect(failed > 0 && failed < Self.objectCount)
    try engine.close()
  }
}

extension Node {
  fileprivate var leafCount64: UInt64 { UInt64(leafCount()) }
}
