package import DendroStorage
package import DendroTree

/// What is left of a damaged checkpoint: its trees, without what is lost.
package struct PartialCheckpoint: Sendable {
  package var lsn: LogSequenceNumber
  package var time: Int64
  package var data: PartialTree
  /// Nil if there is no second root.
  package var system: PartialTree?
  /// Those that are lost included, but for the end of the file.
  package var chunkCount: Int
  package var lostChunkCount: Int
  /// Whether the end of the file is lost: at least one chunk, and nothing says how many.
  package var lacksEnd: Bool

  /// Whether nothing is lost.
  var isWhole: Bool { data.holes.isEmpty && (system?.holes.isEmpty ?? true) }

  /// - Returns: nil if it cannot be known which chunks hold the data, or the file is of format version 0.
  /// - Throws: `.io`.
  /// - Complexity: O(bytes of the file); the memory of its trees.
  init?(_ salvage: CheckpointSalvage) throws(StorageError) {
    guard salvage.header.format.version > 0, salvage.chunkCount > 0,
      let parts = try Self.parts(salvage)
    else { return nil }
    lsn = salvage.lsn
    time = salvage.header.time
    chunkCount = salvage.chunkCount
    var lost = 0
    for chunk in 0..<chunkCount {
      if try salvage.readChunk(chunk, { _ in }) == nil { lost += 1 }
    }
    lostChunkCount = lost
    lacksEnd = parts.lacksTop
    var pages = try Self.pages(parts.data, of: salvage, allowsBytes: false)
    if parts.lacksTop { pages.append(nil) }
    data = PartialTree(pages)
    if let chunks = parts.system {
      system = PartialTree(try Self.pages(chunks, of: salvage, allowsBytes: true))
    }
  }

  /// Which chunks hold what.
  private struct Parts {
    var data: Range<Int>
    /// Of the second root.
    var system: Range<Int>?
    /// Whether the chunk with the root of the data is lost behind the others.
    var lacksTop = false
  }

  /// - Returns: nil if chunks of the second root could be taken for the data.
  private static func parts(_ salvage: CheckpointSalvage) throws(StorageError) -> Parts? {
    let count = salvage.chunkCount
    guard salvage.header.format.hasSecondRoot else {
      if salvage.isChunkCountKnown { return Parts(data: 0..<count) }
      return Parts(data: 0..<count, lacksTop: try !isTop(count - 1, of: salvage))
    }
    let end = try salvage.readChunk(count - 1) { (bytes) throws(StorageError) -> RootsChunk? in
      RootsChunk(bytes)
    }
    if let end = end ?? nil, end.dataChunkCount < UInt64(count - 1) {
      let middle = Int(end.dataChunkCount)
      return Parts(data: 0..<middle, system: middle..<(count - 1))
    }
    // The chunk that says so is lost: the top of each tree is the last of its chunks.
    guard salvage.isChunkCountKnown, count > 2, try isTop(count - 2, of: salvage) else {
      return nil
    }
    for chunk in (0..<(count - 2)).reversed() where try isTop(chunk, of: salvage) {
      return Parts(data: 0..<(chunk + 1), system: (chunk + 1)..<(count - 1))
    }
    return nil
  }

  /// Whether a chunk has the root of a tree as its last page.
  private static func isTop(
    _ chunk: Int, of salvage: CheckpointSalvage
  ) throws(StorageError) -> Bool {
    let pages = try pages(chunk..<(chunk + 1), of: salvage, first: 0, allowsBytes: true)
    return pages[0]?.isTop ?? false
  }

  private static func pages(
    _ chunks: Range<Int>, of salvage: CheckpointSalvage, first: Int? = nil, allowsBytes: Bool
  ) throws(StorageError) -> [ChunkPages?] {
    var pages: [ChunkPages?] = []
    pages.reserveCapacity(chunks.count)
    for chunk in chunks {
      let decoded = try salvage.readChunk(chunk) { (bytes) throws(StorageError) in
        try? ChunkPages(
          decoding: bytes, number: UInt32(chunk - (first ?? chunks.lowerBound)), source: nil,
          allowsBytes: allowsBytes)
      }
      pages.append(decoded ?? nil)
    }
    return pages
  }
}
