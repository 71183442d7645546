import DendroStorage
import DendroTree

/// Scalars between the tree's packed form, which is also the form on disk, and our buffers.
enum ScalarCoding {
  static func decode(_ reader: inout ByteReader) throws(CodingError) -> Scalar {
    var offset = reader.offset
    guard let scalar = PackedScalar.read(reader.bytes, at: &offset) else {
      throw CodingError(expected: "a packed scalar", found: reader.nextBytes)
    }
    reader = ByteReader(reader.bytes, at: offset)
    return scalar
  }

  static func decodeLeaf(_ reader: inout ByteReader) throws(CodingError) -> Node {
    var offset = reader.offset
    guard let (scalar, priority) = PackedScalar.readLeaf(reader.bytes, at: &offset) else {
      throw CodingError(expected: "a packed leaf", found: reader.nextBytes)
    }
    reader = ByteReader(reader.bytes, at: offset)
    return Node(scalar, priority: priority)
  }

  static func decodePriority(_ reader: inout ByteReader) throws(CodingError) -> Scalar {
    let scalar = try decode(&reader)
    guard scalar.isValidPriority else {
      throw CodingError(expected: "a number or string as priority", found: "a boolean")
    }
    return scalar
  }

  static func decodeNumber(_ reader: inout ByteReader) throws(CodingError) -> Number {
    guard let number = try decode(&reader).number else {
      throw CodingError(expected: "a number", found: "another scalar")
    }
    return number
  }
}

extension ByteReader {
  /// Reads a leaf of bytes; nil, and reads nothing, unless there is one.
  mutating func leafOfBytes() -> Node? {
    var offset = offset
    guard let leaf = PackedScalar.readBytes(bytes, at: &offset) else { return nil }
    self = ByteReader(bytes, at: offset)
    return Node(leaf)
  }

  /// The next few bytes in hexadecimal, for messages.
  var nextBytes: String {
    let next = bytes[offset..<min(offset + 8, bytes.count)]
    if next.isEmpty { return "the end" }
    return next.map { byte in
      let digits = String(byte, radix: 16)
      return digits.count < 2 ? "0" + digits : digits
    }.joined(separator: " ")
  }
}
