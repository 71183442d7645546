/// Bytes that violate their format; `offset` counts from the reader's beginning.
package enum ByteError: Error, Hashable, Sendable, CustomStringConvertible {
  case truncated(offset: Int)
  /// A varint longer than its value needs, or over 64 bits.
  case invalidVarint(offset: Int)

  package var description: String {
    switch self {
    case .truncated(let offset): "the bytes end at \(offset)"
    case .invalidVarint(let offset): "no valid varint at \(offset)"
    }
  }

  package var offset: Int {
    switch self {
    case .truncated(let offset), .invalidVarint(let offset): offset
    }
  }
}

/// Reads little-endian integers and varints from unchecked bytes. A read throws if there are too few bytes;
/// none traps.
package struct ByteReader {
  package let bytes: UnsafeRawBufferPointer
  package private(set) var offset: Int

  /// - `bytes`: must outlive the reader and what it returns.
  package init(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) {
    self.bytes = bytes
    self.offset = min(max(offset, 0), bytes.count)
  }

  package var remaining: Int { bytes.count &- offset }
  package var isAtEnd: Bool { offset == bytes.count }

  package mutating func uint8() throws(ByteError) -> UInt8 {
    guard offset < bytes.count else { throw .truncated(offset: offset) }
    defer { offset &+= 1 }
    return bytes[offset]
  }

  package mutating func uint16() throws(ByteError) -> UInt16 { try fixed() }
  package mutating func uint32() throws(ByteError) -> UInt32 { try fixed() }
  package mutating func uint64() throws(ByteError) -> UInt64 { try fixed() }

  /// LEB128, at most ten bytes, in its shortest form only.
  package mutating func varint() throws(ByteError) -> UInt64 {
    let start = offset
    // Most are of one byte.
    if start < bytes.count, bytes[start] < 0x80 {
      offset = start &+ 1
      return UInt64(bytes[start])
    }
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while offset < bytes.count {
      let byte = bytes[offset]
      offset &+= 1
      // The tenth byte holds one bit.
      if shift == 63 && byte > 1 {
        throw .invalidVarint(offset: start)
      }
      value |= UInt64(byte & 0x7F) &<< shift
      if byte < 0x80 {
        if byte == 0 && shift > 0 {
          throw .invalidVarint(offset: start)
        }
        return value
      }
      shift &+= 7
    }
    throw .truncated(offset: start)
  }

  /// A varint of the zigzag form: 0, -1, 1, -2, … are 0, 1, 2, 3, …
  package mutating func signedVarint() throws(ByteError) -> Int64 {
    let value = try varint()
    return Int64(bitPattern: value &>> 1) ^ -Int64(bitPattern: value & 1)
  }

  package mutating func bytes(_ count: Int) throws(ByteError) -> UnsafeRawBufferPointer {
    guard count >= 0, count <= remaining else {
      throw .truncated(offset: offset)
    }
    defer { offset &+= count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset &+ count)])
  }

  private mutating func fixed<I: FixedWidthInteger>() throws(ByteError) -> I {
    guard MemoryLayout<I>.size <= remaining else { throw .truncated(offset: offset) }
    defer { offset &+= MemoryLayout<I>.size }
    return I(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: I.self))
  }
}
