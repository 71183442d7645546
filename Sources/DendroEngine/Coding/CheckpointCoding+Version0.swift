import DendroStorage
import DendroTree

// Checkpoints of format version 0, which are read and no longer written.
//
// A chunk's payload is a run of entries, the leaves of the tree in order:
//
// | field | size |
// | --- | --- |
// | path, shared with the entry before in this chunk | see the article <doc:WriteFormat> |
// | a packed leaf; or 42 and a packed priority: of a branch, before the branch's first leaf | as packed |

extension CheckpointCoding {
  /// `decode` for format version 0.
  static func decodeVersion0(
    _ reader: CheckpointReader, progress: (@Sendable (RecoveryProgress) -> Void)?,
    isCancelled: () -> Bool
  ) throws(StorageError) -> Node? {
    var assembler = Assembler()
    var leafCount: UInt64 = 0
    var completed: UInt64 = 0
    var i = 0
    while i < reader.chunkCount {
      if isCancelled() { return nil }
      let chunks = try ChunkResults.all(i..<min(i + 8, reader.chunkCount)) {
        (chunk) throws(StorageError) in try reader.readChunk(chunk) { Array($0) }
      }
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
    try check(leafCount: leafCount, reader)
    return assembler.finish()
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
          let new = paths.bytes
          shared = path.withUnsafeBytes { BodyWriter.sharedByteCount(new, $0) }
          isFirst = false
        }
        let isBranch =
          !reader.isAtEnd && reader.bytes[reader.offset] == BodyTag.branchWithPriority
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
          let isAppended = open[open.count - 1].builder.append(
            storedKey: UnsafeRawBufferPointer(rebasing: paths.bytes[last]), packedLeaf: leaf)
          guard isAppended else {
            throw CodingError(expected: "a key", found: "bytes that are no key's")
          }
        } else {
          rootLeaf = try ScalarCoding.decodeLeaf(&reader)
        }
        leafCount += 1
      }
      path = Array(paths.bytes)
      return leafCount
    }

    /// Closes and opens branches until the one that the entry belongs to is open.
    ///
    /// - Returns: where the key of the leaf stands in `bytes`; nil for a branch's own entry and for a
    ///   leaf at the root.
    private mutating func descend(to bytes: UnsafeRawBufferPointer, shared: Int, isBranch: Bool)
      throws(CodingError) -> Range<Int>?
    {
      var reader = ByteReader(bytes)
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
