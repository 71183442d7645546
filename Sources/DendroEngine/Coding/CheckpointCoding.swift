package import DendroStorage
package import DendroTree
import Dispatch

extension ContentHash64: ContentHasher {}

/// A tree as the chunks of a checkpoint: its leaves in order, each with its path.
///
/// A chunk's payload is a run of entries; the first one's path stands whole, and in the index.
///
/// | field | size |
/// | --- | --- |
/// | path, shared with the entry before in this chunk | see the article <doc:WriteFormat> |
/// | a packed leaf; or 42 and a packed priority: of a branch, before the branch's first leaf | as packed |
package enum CheckpointCoding {
  /// Raw bytes after which a chunk is closed: large enough to compress well and to keep the index
  /// small, small enough that one subtree can be read without much else.
  private static let chunkByteLimit = 256 << 10

  // MARK: Writing

  /// Writes the whole tree as the checkpoint at `lsn`.
  ///
  /// - Parameter logChecksum: binds the checkpoint to its log; nil where it is read from the directory's.
  /// - Returns: the bytes of the file, which is durable then; nil where `isCancelled` has returned true.
  package static func write(
    _ root: Node, lsn: LogSequenceNumber, time: Int64, databaseID: DatabaseID,
    logChecksum: UInt32? = nil, to directory: DatabaseDirectory, isCancelled: () -> Bool
  ) throws(StorageError) -> UInt64? {
    var logChecksum = logChecksum
    if logChecksum == nil { logChecksum = try LogReader.checksum(directory, at: lsn) }
    let writer = try CheckpointWriter.begin(
      directory, databaseID: databaseID, lsn: lsn, time: time, logChecksum: logChecksum ?? 0)
    var encoder = Encoder(writer: writer)
    do throws(StorageError) {
      guard try encoder.encode(root, isCancelled: isCancelled) else {
        writer.abort()
        return nil
      }
      try encoder.flush()
      try writer.finish(leafCount: encoder.leafCount, contentHash: contentHash(of: root))
      return writer.storedByteCount
    } catch {
      writer.abort()
      throw error
    }
  }

  /// The hash that the checkpoint's footer holds.
  package static func contentHash(of root: Node) -> UInt64 {
    var hasher = ContentHash64()
    root.contentHash(using: &hasher)
    return hasher.finish()
  }

  private struct Encoder {
    let writer: CheckpointWriter
    let buffer = PayloadBuffer(capacity: 4096)
    var path: [UInt8] = []
    /// The path of the previous entry in this chunk.
    var previous: [UInt8] = []
    /// The path of the first entry in this chunk.
    var first: [UInt8] = []
    var leafCount: UInt64 = 0

    init(writer: CheckpointWriter) { self.writer = writer }

    /// - Returns: false where it was cancelled.
    mutating func encode(_ node: Node, isCancelled: () -> Bool) throws(StorageError) -> Bool {
      if node.isLeaf {
        leafCount += 1
        beginEntry()
        NodeCoding.encode(node, into: buffer)
      } else if !node.isEmpty {
        if let priority = node.priority {
          beginEntry()
          buffer.append(NodeCoding.Tag.branchWithPriority)
          ScalarCoding.encode(priority, into: buffer)
        }
        let depth = path.count
        for (key, child) in node.children {
          Path.append(key, to: &path)
          guard try encode(child, isCancelled: isCancelled) else { return false }
          path.removeLast(path.count - depth)
        }
      }
      if buffer.count >= CheckpointCoding.chunkByteLimit {
        try flush()
        return !isCancelled()
      }
      return true
    }

    private mutating func beginEntry() {
      if buffer.count == 0 {
        first = path
        previous.removeAll(keepingCapacity: true)
      }
      path.withUnsafeBytes { bytes in
        let shared = previous.withUnsafeBytes { PathCoding.sharedPrefixCount(bytes, $0) }
        buffer.appendVarint(shared)
        buffer.appendVarint(bytes.count - shared)
        buffer.append(UnsafeRawBufferPointer(rebasing: bytes[shared...]))
      }
      previous.removeAll(keepingCapacity: true)
      previous.append(contentsOf: path)
    }

    mutating func flush() throws(StorageError) {
      guard buffer.count > 0 else { return }
      let firstPath = first
      try buffer.withBytes { (payload) throws(StorageError) in
        try firstPath.withUnsafeBufferPointer { (path) throws(StorageError) in
          try writer.chunk(payload, firstPath: UnsafeRawBufferPointer(path))
        }
      }
      buffer.removeAll()
    }
  }

  // MARK: Reading

  /// The whole tree of a checkpoint. Chunks are decompressed on all cores, then put together in order.
  package static func decode(
    _ reader: CheckpointReader, progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(StorageError) -> Node {
    guard let root = try decode(reader, progress: progress, isCancelled: { false }) else {
      preconditionFailure("decoding that is never cancelled returned nothing")
    }
    return root
  }

  /// `decode(_:progress:)`; nil where `isCancelled`, called every eight chunks, has returned true.
  static func decode(
    _ reader: CheckpointReader, progress: (@Sendable (RecoveryProgress) -> Void)?,
    isCancelled: () -> Bool
  ) throws(StorageError) -> Node? {
    var assembler = Assembler()
    var leafCount: UInt64 = 0
    var completed: UInt64 = 0
    var i = 0
    while i < reader.chunkCount {
      if isCancelled() { return nil }
      let chunks = try readChunks(reader, i..<min(i + 8, reader.chunkCount))
      for chunk in chunks {
        do throws(CodingError) {
          leafCount += try chunk.withUnsafeBufferPointer { (bytes) throws(CodingError) in
            try assembler.append(chunk: UnsafeRawBufferPointer(bytes))
          }
        } catch {
          throw .corrupt(
            path: reader.path, offset: reader.offset(ofChunk: i),
            expected: "\(error.expected) in chunk \(i)", found: error.found)
        }
        completed += UInt64(chunk.count)
        i += 1
      }
      progress?(
        RecoveryProgress(
          phase: .checkpoint, completedByteCount: completed, totalByteCount: reader.rawByteCount))
    }
    guard leafCount == reader.leafCount else {
      throw .corrupt(
        path: reader.path, offset: 0, expected: "\(reader.leafCount) leaves",
        found: String(leafCount))
    }
    return assembler.finish()
  }

  private static func readChunks(_ reader: CheckpointReader, _ range: Range<Int>)
    throws(StorageError) -> [[UInt8]]
  {
    if range.count == 1 { return [try reader.readChunk(range.lowerBound) { Array($0) }] }
    let results = ChunkResults(count: range.count)
    DispatchQueue.concurrentPerform(iterations: range.count) { i in
      results.set(
        i,
        Result { () throws(StorageError) in try reader.readChunk(range.lowerBound + i) { Array($0) }
        })
    }
    return try results.get()
  }

  /// Builds a tree from leaves in tree order, and closes each branch after its last leaf.
  private struct Assembler {
    private struct Open {
      var key: Key?
      var builder = NodeBuilder()
      var priority: Scalar?
    }

    private var open = [Open(key: nil)]
    private var rootLeaf: Node?
    /// The path of the last entry of the chunk before.
    private var path: [UInt8] = []

    /// - Returns: how many leaves the chunk had.
    mutating func append(chunk: UnsafeRawBufferPointer) throws(CodingError) -> UInt64 {
      var reader = ByteReader(chunk)
      var paths = PathReader()
      var isFirst = true
      var leafCount: UInt64 = 0
      while !reader.isAtEnd {
        var shared = try paths.readBytes(&reader)
        if isFirst {
          shared = paths.bytes.withUnsafeBytes { new in
            path.withUnsafeBytes { PathCoding.sharedPrefixCount(new, $0) }
          }
          isFirst = false
        }
        let isBranch =
          !reader.isAtEnd && reader.bytes[reader.offset] == NodeCoding.Tag.branchWithPriority
        let last = try descend(to: paths.bytes, shared: shared, isBranch: isBranch)
        if isBranch {
          _ = try reader.tag("a priority")
          open[open.count - 1].priority = try ScalarCoding.decodePriority(&reader)
          continue
        }
        if let last {
          guard let end = PackedScalar.leafEnd(validating: chunk, at: reader.offset) else {
            throw CodingError(expected: "a packed leaf", found: reader.nextBytes)
          }
          let leaf = try reader.take(end - reader.offset, "a packed leaf")
          let isAppended = paths.bytes.withUnsafeBytes { bytes in
            open[open.count - 1].builder.append(
              storedKey: UnsafeRawBufferPointer(rebasing: bytes[last]), packedLeaf: leaf)
          }
          guard isAppended else {
            throw CodingError(expected: "a key", found: "bytes that are no key's")
          }
        } else {
          rootLeaf = try ScalarCoding.decodeLeaf(&reader)
        }
        leafCount += 1
      }
      path = paths.bytes
      return leafCount
    }

    /// Closes and opens branches until the one that the entry belongs to is open.
    ///
    /// - Returns: where the key of the leaf stands in `bytes`; nil for a branch's own entry and for a
    ///   leaf at the root.
    private mutating func descend(to bytes: [UInt8], shared: Int, isBranch: Bool)
      throws(CodingError) -> Range<Int>?
    {
      try bytes.withUnsafeBufferPointer { (buffer) throws(CodingError) -> Range<Int>? in
        var reader = ByteReader(UnsafeRawBufferPointer(buffer))
        var level = 0
        while !reader.isAtEnd {
          let length = try reader.count("a key's length", limit: Limits.keyBytes + 1)
          let keyBytes = try reader.take(length, "a key")
          let isLeafKey = reader.isAtEnd && !isBranch
          if !isLeafKey, reader.offset <= shared, level + 1 < open.count {
            level += 1
            continue
          }
          close(downTo: level)
          if isLeafKey { return reader.offset - length..<reader.offset }
          guard let key = Key(orderedBytes: keyBytes) else {
            throw CodingError(expected: "a key", found: "bytes that are no key's")
          }
          guard open.count <= Limits.depth else {
            throw CodingError(expected: "at most \(Limits.depth) levels", found: "more")
          }
          open.append(Open(key: key))
          level += 1
        }
        close(downTo: level)
        return nil
      }
    }

    private mutating func close(downTo level: Int) {
      while open.count - 1 > level {
        let closed = open.removeLast()
        let node = closed.builder.finish(priority: closed.priority)
        if !node.isEmpty { open[open.count - 1].builder.append(closed.key!, node) }
      }
    }

    mutating func finish() -> Node {
      if let rootLeaf { return rootLeaf }
      close(downTo: 0)
      let root = open.removeLast()
      return root.builder.finish(priority: root.priority)
    }
  }
}
