/// Appends little-endian integers and varints to memory that grows.
package struct ByteWriter: ~Copyable {
  package private(set) var count = 0
  private var buffer = RawBuffer()

  package init() {}

  /// What was appended; invalid after the next append.
  package var bytes: UnsafeRawBufferPointer {
    count == 0
      ? UnsafeRawBufferPointer(start: nil, count: 0)
      : UnsafeRawBufferPointer(start: buffer.base, count: count)
  }

  package mutating func removeAll() { count = 0 }

  package mutating func uint8(_ value: UInt8) {
    reserve(1)
    buffer.base.storeBytes(of: value, toByteOffset: count, as: UInt8.self)
    count &+= 1
  }

  package mutating func uint32(_ value: UInt32) { fixed(value) }
  package mutating func uint64(_ value: UInt64) { fixed(value) }

  package mutating func varint(_ value: UInt64) {
    reserve(10)
    count &+= storeVarint(value, at: buffer.base + count)
  }

  package mutating func signedVarint(_ value: Int64) { varint(zigzag(value)) }

  package mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    (buffer.base + count).copyMemory(from: source, byteCount: bytes.count)
    count &+= bytes.count
  }

  private mutating func fixed<I: FixedWidthInteger>(_ value: I) {
    reserve(MemoryLayout<I>.size)
    buffer.base.storeBytes(of: value.littleEndian, toByteOffset: count, as: I.self)
    count &+= MemoryLayout<I>.size
  }

  private mutating func reserve(_ more: Int) {
    let needed = count + more
    if needed > buffer.capacity { buffer.reserve(max(needed, 2 * count), keeping: count) }
  }
}

/// Stores LEB128 and returns its length, 1…10; there must be room for it.
///
/// Inlined across modules: every write encodes several.
@inlinable @inline(__always)
package func storeVarint(_ value: UInt64, at place: UnsafeMutableRawPointer) -> Int {
  var rest = value
  var length = 0
  while rest >= 0x80 {
    place.storeBytes(
      of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: length, as: UInt8.self)
    rest &>>= 7
    length &+= 1
  }
  place.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: length, as: UInt8.self)
  return length &+ 1
}

func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: (value &<< 1) ^ (value &>> 63)) }
