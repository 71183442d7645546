import DendroStorage
import DendroTree

/// Decodes paths that `BodyWriter` wrote one after the other.
struct PathReader: ~Copyable {
  /// Bytes of a path's stored form at most: as many keys as the depth allows, each as long as a key
  /// may be with its length and the longest ordered form.
  static let byteLimit = (Limits.depth + 1) * (Limits.keyBytes + 2)

  private var buffer = RawBuffer()
  private var byteCount = 0

  /// The stored form of the path read last; valid until the next one is read.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: buffer.base, count: byteCount) }

  /// Forgets the path read last, as if none was read yet.
  mutating func restart() { byteCount = 0 }

  /// Reads the next path's bytes, without looking at them.
  ///
  /// - Returns: how many bytes of the one before stayed.
  mutating func readBytes(_ reader: inout ByteReader) throws(CodingError) -> Int {
    let shared = try reader.count("a shared prefix", limit: byteCount)
    let rest = try reader.count("a path's length", limit: Self.byteLimit - shared)
    let suffix = try reader.take(rest, "a path")
    buffer.reserve(shared + rest, keeping: shared)
    if let source = suffix.baseAddress {
      (buffer.base + shared).copyMemory(from: source, byteCount: rest)
    }
    byteCount = shared + rest
    return shared
  }

  /// Reads the next path.
  ///
  /// - Parameter depth: keys that it may have: trees are walked by recursion, so that a path of
  ///   thousands would take the stack.
  mutating func read(_ reader: inout ByteReader, depth: Int) throws(CodingError) -> Path {
    _ = try readBytes(&reader)
    guard let path = Path(storedBytes: bytes) else {
      throw CodingError(expected: "a path", found: "bytes that are no path's")
    }
    guard path.count <= depth else {
      throw CodingError(expected: "at most \(Limits.depth) levels", found: "more")
    }
    return path
  }
}
