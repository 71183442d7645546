package import DendroStorage
package import DendroTree
import Dispatch

extension ContentHash64: ContentHasher {}

/// Trees as the chunks of a checkpoint: the data, and behind them the second root if it has anything (`RootsChunk`).
///
/// The chunks are images of the tree's pages (`PageImageWriter`), so that reading one is little more than
/// checking and copying it, and a part of the tree can be read without the rest. Checkpoints of format
/// version 0 have the leaves with their paths instead.
package enum CheckpointCoding {
  // MARK: Writing

  /// Writes both trees as the checkpoint at `lsn`.
  ///
  /// - Parameters:
  ///   - logChecksum: binds the checkpoint to its log; nil where it is read from the directory's.
  ///   - chunkByteLimit: as in `EngineOptions`.
  /// - Returns: the bytes of the file, which is durable then; nil where `isCancelled` has returned true.
  package static func write(
    _ roots: TreeRoots, lsn: LogSequenceNumber, time: Int64, databaseID: DatabaseID,
    logChecksum: UInt32? = nil, chunkByteLimit: Int = 128 << 10, to directory: DatabaseDirectory,
    isCancelled: () -> Bool
  ) throws(StorageError) -> UInt64? {
    var logChecksum = logChecksum
    if logChecksum == nil { logChecksum = try LogReader.checksum(directory, at: lsn) }
    let writer = try CheckpointWriter.begin(
      directory, databaseID: databaseID, lsn: lsn, time: time, logChecksum: logChecksum ?? 0,
      hasSecondRoot: !roots.system.isEmpty)
    do throws(StorageError) {
      guard try write(roots, chunkByteLimit, to: writer, isCancelled: isCancelled) else {
        writer.abort()
        return nil
      }
      return writer.storedByteCount
    } catch {
      writer.abort()
      throw error
    }
  }

  private struct Cancelled: Error {}

  /// - Returns: false where it was cancelled.
  private static func write(
    _ roots: TreeRoots, _ chunkByteLimit: Int, to writer: CheckpointWriter, isCancelled: () -> Bool
  ) throws(StorageError) -> Bool {
    guard let data = try write(roots.data, chunkByteLimit, to: writer, isCancelled: isCancelled)
    else { return false }
    if !roots.system.isEmpty {
      let system = try write(roots.system, chunkByteLimit, to: writer, isCancelled: isCancelled)
      guard let system else { return false }
      try RootsChunk(
        dataChunkCount: data.chunkCount, leafCount: system.leafCount,
        contentHash: system.contentHash
      ).withBytes { (bytes) throws(StorageError) in try writer.chunk(bytes) }
    }
    try writer.finish(leafCount: data.leafCount, contentHash: data.contentHash)
    return true
  }

  private struct WrittenTree {
    var chunkCount: UInt64
    var leafCount: UInt64
    var contentHash: UInt64
  }

  /// - Returns: nil where it was cancelled.
  private static func write(
    _ root: Node, _ chunkByteLimit: Int, to writer: CheckpointWriter, isCancelled: () -> Bool
  ) throws(StorageError) -> WrittenTree? {
    var hasher = ContentHash64()
    var pages = PageImageWriter(chunkByteLimit: chunkByteLimit)
    var chunkCount: UInt64 = 0
    do throws(PageFailure) {
      try pages.write(root, hasher: &hasher) { (chunk) throws(PageFailure) in
        chunkCount += 1
        do throws(StorageError) {
          try writer.chunk(chunk)
        } catch {
          throw PageFailure(error)
        }
        if isCancelled() { throw PageFailure(Cancelled()) }
      }
    } catch {
      if error.cause is Cancelled { return nil }
      // Pages are read from a checkpoint before, which says what is wrong with them.
      guard let cause = error.cause as? StorageError else {
        preconditionFailure("a page source fails with a storage error: \(error.cause)")
      }
      throw cause
    }
    return WrittenTree(
      chunkCount: chunkCount, leafCount: pages.leafCount, contentHash: hasher.finish())
  }

  /// The hash that the checkpoint's footer holds.
  package static func contentHash(of root: Node) -> UInt64 {
    var hasher = ContentHash64()
    root.contentHash(using: &hasher)
    return hasher.finish()
  }

  // MARK: Reading

  /// The data of a checkpoint, whole. Chunks are read and decoded on all cores.
  package static func decode(
    _ reader: CheckpointReader, progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(StorageError) -> Node {
    guard let root = try decode(reader, progress: progress, isCancelled: { false }) else {
      preconditionFailure("decoding that is never cancelled returned nothing")
    }
    return root
  }

  /// `decode(_:progress:)`; nil where `isCancelled`, called every few chunks, has returned true.
  static func decode(
    _ reader: CheckpointReader, progress: (@Sendable (RecoveryProgress) -> Void)?,
    isCancelled: () -> Bool
  ) throws(StorageError) -> Node? {
    if reader.header.format.version == 0 {
      return try decodeVersion0(reader, progress: progress, isCancelled: isCancelled)
    }
    let chunks = 0..<(try RootsChunk.dataChunkCount(of: reader))
    let tree = try decode(chunks, of: reader, progress: progress, isCancelled: isCancelled)
    guard let tree else { return nil }
    try check(leafCount: UInt64(tree.leafCount), reader)
    return tree.root
  }

  /// The second root of a checkpoint, whole; the empty node if it has none.
  package static func system(
    _ reader: CheckpointReader, isCancelled: () -> Bool = { false }
  ) throws(StorageError) -> Node? {
    guard let end = try RootsChunk.read(reader) else { return .empty }
    let chunks = Int(end.dataChunkCount)..<(reader.chunkCount - 1)
    let tree = try decode(
      chunks, of: reader, isSystem: true, progress: nil, isCancelled: isCancelled)
    guard let tree else { return nil }
    guard tree.leafCount == Int(clamping: end.leafCount),
      contentHash(of: tree.root) == end.contentHash
    else {
      throw .corrupt(
        path: reader.path, offset: reader.offset(ofChunk: reader.chunkCount - 1),
        expected: "a second root of \(end.leafCount) leaves with the right hash",
        found: "one of \(tree.leafCount)")
    }
    return tree.root
  }

  /// Both trees of a checkpoint, whole.
  package static func roots(
    _ reader: CheckpointReader, progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(StorageError) -> TreeRoots {
    let roots = try roots(reader, progress: progress, isCancelled: { false })
    guard let roots else { preconditionFailure("reading that is never cancelled returned nothing") }
    return roots
  }

  /// `roots(_:progress:)`; nil if `isCancelled`, called every few chunks, has returned true.
  static func roots(
    _ reader: CheckpointReader, progress: (@Sendable (RecoveryProgress) -> Void)?,
    isCancelled: () -> Bool
  ) throws(StorageError) -> TreeRoots? {
    guard let data = try decode(reader, progress: progress, isCancelled: isCancelled),
      let system = try system(reader, isCancelled: isCancelled)
    else { return nil }
    return TreeRoots(data: data, system: system)
  }

  private static func decode(
    _ range: Range<Int>, of reader: CheckpointReader, isSystem: Bool = false,
    progress: (@Sendable (RecoveryProgress) -> Void)?, isCancelled: () -> Bool
  ) throws(StorageError) -> (root: Node, leafCount: Int)? {
    var assembler = ChunkAssembler()
    var leafCount = 0
    var completed: UInt64 = 0
    var next = range.lowerBound
    while next < range.upperBound {
      if isCancelled() { return nil }
      let chunks = next..<min(next + 16, range.upperBound)
      let decoded = try ChunkResults.all(chunks) { (chunk) throws(StorageError) in
        try pages(
          ofChunk: chunk, reader, source: nil, number: chunk - range.lowerBound,
          allowsBytes: isSystem)
      }
      for (chunk, pages) in zip(chunks, decoded) {
        leafCount += pages.leafCount
        completed += UInt64(reader.rawByteCount(ofChunk: chunk))
        do throws(PageImageError) {
          try assembler.append(pages)
        } catch {
          throw damage(error, inChunk: chunk, reader)
        }
      }
      next = chunks.upperBound
      progress?(
        RecoveryProgress(
          phase: .checkpoint, completedByteCount: completed, totalByteCount: reader.rawByteCount))
    }
    do throws(PageImageError) {
      return (try assembler.finish(), leafCount)
    } catch {
      throw damage(error, inChunk: max(range.upperBound - 1, 0), reader)
    }
  }

  /// Reads and decompresses every chunk of a checkpoint, on all cores, and checks its checksum. What is in the chunks
  /// is not looked at.
  ///
  /// - Throws: what `decode` throws for the same bytes, unless a chunk with the right checksum has wrong pages.
  package static func checkChunks(
    _ reader: CheckpointReader, progress: @Sendable (RecoveryProgress) -> Void
  ) throws(StorageError) {
    var completed: UInt64 = 0
    var next = 0
    while next < reader.chunkCount {
      let chunks = next..<min(next + 64, reader.chunkCount)
      let byteCounts = try ChunkResults.all(chunks) { (chunk) throws(StorageError) in
        try reader.readChunk(chunk) { (bytes) throws(StorageError) in bytes.count }
      }
      for count in byteCounts { completed += UInt64(count) }
      next = chunks.upperBound
      progress(
        RecoveryProgress(
          phase: .checkpoint, completedByteCount: completed, totalByteCount: reader.rawByteCount))
    }
  }

  static func check(leafCount: UInt64, _ reader: CheckpointReader) throws(StorageError) {
    guard leafCount == reader.leafCount else {
      throw .corrupt(
        path: reader.path, offset: 0, expected: "\(reader.leafCount) leaves",
        found: String(leafCount))
    }
  }

  /// The pages of one chunk.
  ///
  /// - Parameters:
  ///   - source: where the pages of other chunks are read from when they are touched; nil where
  ///   `ChunkAssembler` puts all of them together.
  ///   - number: of the chunk among those of its tree; nil for its number in the file.
  ///   - allowsBytes: whether leaves may be bytes.
  static func pages(
    ofChunk chunk: Int, _ reader: CheckpointReader, source: (any PageSource)?, number: Int? = nil,
    allowsBytes: Bool = false
  ) throws(StorageError) -> ChunkPages {
    try reader.readChunk(chunk) { (bytes) throws(StorageError) in
      do throws(PageImageError) {
        return try ChunkPages(
          decoding: bytes, number: UInt32(number ?? chunk), source: source,
          allowsBytes: allowsBytes)
      } catch {
        throw damage(error, inChunk: chunk, reader)
      }
    }
  }

  /// The error of a chunk whose bytes have the right checksum and are no pages of the tree.
  static func damage(
    _ error: PageImageError, inChunk chunk: Int, _ reader: CheckpointReader
  ) -> StorageError {
    .corrupt(
      path: reader.path, offset: reader.offset(ofChunk: chunk),
      expected: "\(error.expected) at byte \(error.offset) of chunk \(chunk)", found: error.found)
  }
}
