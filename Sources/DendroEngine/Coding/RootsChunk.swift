import DendroStorage

/// The last chunk of a checkpoint that has a second root. It says which of the chunks before it belong to which tree: first
/// come those of the data, then those of the second root, whose pages count the chunks from there.
///
/// | size | field |
/// | --- | --- |
/// | 8 | number of chunks of the data |
/// | 8 | number of leaves in the second root |
/// | 8 | content hash of the second root |
///
/// The footer has the leaves and the hash of the data.
struct RootsChunk {
  static let byteCount = 24

  var dataChunkCount: UInt64
  var leafCount: UInt64
  var contentHash: UInt64

  init(dataChunkCount: UInt64, leafCount: UInt64, contentHash: UInt64) {
    self.dataChunkCount = dataChunkCount
    self.leafCount = leafCount
    self.contentHash = contentHash
  }

  /// Nil if there are not as many bytes as the fields have.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var fields = ByteReader(bytes)
    guard bytes.count == Self.byteCount, let dataChunkCount = try? fields.uint64(),
      let leafCount = try? fields.uint64(), let contentHash = try? fields.uint64()
    else { return nil }
    self.init(dataChunkCount: dataChunkCount, leafCount: leafCount, contentHash: contentHash)
  }

  func withBytes<R, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    var bytes = ByteWriter()
    bytes.uint64(dataChunkCount)
    bytes.uint64(leafCount)
    bytes.uint64(contentHash)
    return try body(bytes.bytes)
  }

  /// - Returns: nil for a checkpoint without a second root.
  static func read(_ reader: CheckpointReader) throws(StorageError) -> RootsChunk? {
    guard reader.hasSecondRoot else { return nil }
    let last = reader.chunkCount - 1
    guard last >= 0 else { throw damage(reader, 0, "no chunk") }
    return try reader.readChunk(last) { (bytes) throws(StorageError) in
      guard let found = RootsChunk(bytes) else {
        throw damage(reader, last, "\(bytes.count) bytes")
      }
      // The second root has a chunk at least.
      guard found.dataChunkCount < UInt64(last) else {
        throw damage(reader, last, "\(found.dataChunkCount) chunks of the data among \(last)")
      }
      return found
    }
  }

  /// The number of chunks that hold the data of a checkpoint: its first ones.
  static func dataChunkCount(of reader: CheckpointReader) throws(StorageError) -> Int {
    try read(reader).map { Int($0.dataChunkCount) } ?? reader.chunkCount
  }

  private static func damage(
    _ reader: CheckpointReader, _ chunk: Int, _ found: String
  ) -> StorageError {
    .corrupt(
      path: reader.path, offset: reader.chunkCount > 0 ? reader.offset(ofChunk: chunk) : 0,
      expected: "a last chunk that says which chunks hold the data", found: found)
  }
}
