import DendroTestSupport
import DendroTree
import Synchronization

/// The chunks of a tree in memory, as a source of pages.
final class ChunkList: PageSource {
  struct Refused: Error {}

  let chunks: [[UInt8]]
  let leafCount: UInt64
  /// What the hasher got.
  let content: [UInt8]
  private let state = Mutex(State())

  struct State {
    var refused: Set<UInt32> = []
    var loadedCount = 0
    var failureCount = 0
    var readCount = 0
  }

  struct Collector: ContentHasher {
    var bytes: [UInt8] = []
    mutating func combine(_ new: UnsafeRawBufferPointer) { bytes.append(contentsOf: new) }
  }

  init(_ root: Node, chunkByteLimit: Int) throws {
    var chunks: [[UInt8]] = []
    var writer = PageImageWriter(chunkByteLimit: chunkByteLimit)
    var hasher = Collector()
    try writer.write(root, hasher: &hasher) { (bytes) throws(PageFailure) in
      chunks.append(Array(bytes))
    }
    self.chunks = chunks
    leafCount = writer.leafCount
    content = hasher.bytes
  }

  init(chunks: [[UInt8]]) {
    self.chunks = chunks
    leafCount = 0
    content = []
  }

  var counts: State { state.value }

  /// Makes chunks unreadable from now on.
  func refuse(_ chunks: Set<UInt32>) { state.withLock { $0.refused = chunks } }

  func pages(ofChunk number: UInt32) throws(PageFailure) -> ChunkPages {
    let isRefused = state.withLock { state in
      state.readCount += 1
      return state.refused.contains(number)
    }
    if isRefused { throw PageFailure(Refused()) }
    do {
      return try chunks[Int(number)].withUnsafeBytes {
        try ChunkPages(decoding: $0, number: number, source: self)
      }
    } catch {
      throw PageFailure(error)
    }
  }

  func failure(_ error: PageImageError, inChunk number: UInt32) -> PageFailure {
    PageFailure(error)
  }

  func didMake(_ chunk: PageChunk) {}
  func willKeep(_ pages: ChunkPages, of chunk: PageChunk) { state.withLock { $0.loadedCount += 1 } }
  func willFree(_ chunk: PageChunk) {}
  func didFail(_ failure: PageFailure) { state.withLock { $0.failureCount += 1 } }

  /// The tree, of which the last chunk alone has been read.
  func tree() throws -> Node {
    chunks.isEmpty ? .empty : try pages(ofChunk: UInt32(chunks.count - 1)).tree()
  }

  /// The tree with all its pages.
  func wholeTree() throws -> Node {
    var assembler = ChunkAssembler()
    for (number, chunk) in chunks.enumerated() {
      try assembler.append(
        try chunk.withUnsafeBytes {
          try ChunkPages(decoding: $0, number: UInt32(number), source: nil)
        })
    }
    return try assembler.finish()
  }
}
