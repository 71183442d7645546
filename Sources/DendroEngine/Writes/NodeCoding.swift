import DendroStorage
import DendroTree

/// Nodes inside a write.
///
/// | first byte | then |
/// | --- | --- |
/// | 40 empty | nothing |
/// | 41 branch | the count of children as a varint, then each: length of the key as a varint, its ordered bytes, its node; in ascending order of keys |
/// | 42 branch with priority | the priority, packed; then as 41 |
/// | any other | a packed leaf, with or without priority |
enum NodeCoding {
  /// Bytes that a child takes at least: a key's length, a key, a leaf.
  static let childByteMin = 3

  /// - Parameters:
  ///   - depth: levels that may still follow below.
  ///   - allowsBytes: whether leaves may be bytes, as in the second root.
  static func decode(
    _ reader: inout ByteReader, depth: Int = Limits.depth, allowsBytes: Bool = false
  ) throws(CodingError) -> Node {
    switch reader.isAtEnd ? nil : reader.bytes[reader.offset] {
    case BodyTag.empty:
      _ = try reader.tag("a node")
      return .empty
    case BodyTag.branch:
      _ = try reader.tag("a node")
      return try decodeChildren(&reader, priority: nil, depth: depth, allowsBytes)
    case BodyTag.branchWithPriority:
      _ = try reader.tag("a node")
      let priority = try ScalarCoding.decodePriority(&reader)
      return try decodeChildren(&reader, priority: priority, depth: depth, allowsBytes)
    default:
      if allowsBytes, let bytes = reader.leafOfBytes() { return bytes }
      return try ScalarCoding.decodeLeaf(&reader)
    }
  }

  private static func decodeChildren(
    _ reader: inout ByteReader, priority: Scalar?, depth: Int, _ allowsBytes: Bool
  ) throws(CodingError) -> Node {
    guard depth > 0 else {
      throw CodingError(expected: "at most \(Limits.depth) levels", found: "more")
    }
    // Bounded by the bytes that are left, so that a hostile count reserves no memory.
    let count = try reader.count("a count of children", limit: reader.remaining / childByteMin)
    guard count > 0 else {
      throw CodingError(expected: "a child", found: "none")
    }
    var builder = NodeBuilder()
    for _ in 0..<count {
      let length = try reader.count("a key's length", limit: Limits.keyBytes + 1)
      guard let key = Key(orderedBytes: try reader.take(length, "a key")) else {
        throw CodingError(expected: "a key", found: "bytes that are no key's")
      }
      let child = try decode(&reader, depth: depth - 1, allowsBytes: allowsBytes)
      guard !child.isEmpty else {
        throw CodingError(expected: "a child", found: "an empty node")
      }
      builder.append(key, child)
    }
    return builder.finish(priority: priority)
  }
}
