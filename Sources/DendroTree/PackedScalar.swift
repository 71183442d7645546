/// The packed form of scalars and leaves: their bytes in pages, logs and checkpoints.
///
/// | first byte | then | scalar |
/// | --- | --- | --- |
/// | 00, 01 | | `false`, `true` |
/// | 10 + n, n = 0…8 | n bytes, little-endian, two's complement | integer; n is the least that fits the value, 0 for zero |
/// | 20 + n, n = 0…8 | n bytes: the first n of the 8 big-endian bytes of the IEEE 754 double | double; the other bytes are zero, the nth is not; finite |
/// | 30 | packed scalar (priority), packed scalar | *a leaf with a priority* (number or string) |
/// | 7F | length as LEB128, that many bytes | bytes, at most 10 MiB: in the second root alone |
/// | 80 + n, n = 0…126 | n bytes | string of n bytes of UTF-8 |
/// | FF | length as LEB128 (≥ 127), that many bytes | string, at most 10 MiB |
///
/// Every scalar has exactly one packed form; readers refuse all other bytes.
package enum PackedScalar {
  static let integerTag: UInt8 = 0x10
  static let doubleTag: UInt8 = 0x20
  static let priorityTag: UInt8 = 0x30
  /// Bytes, of the second root alone: right before the strings, whose form they have.
  static let bytesTag: UInt8 = 0x7F
  static let stringTag: UInt8 = 0x80
  static let longStringTag: UInt8 = 0xFF
  /// The bytes of the longest string whose tag includes its length.
  static let shortStringByteCountMax = 126

  /// The number of bytes that `write` writes.
  package static func byteCount(_ scalar: Scalar) -> Int {
    switch scalar {
    case .bool: return 1
    case .integer(let value): return 1 + integerByteCount(value)
    case .double(let value): return 1 + doubleByteCount(value.bitPattern)
    case .string(let value):
      let count = value.utf8.count
      return count < 127 ? 1 + count : 1 + Varint.byteCount(count) + count
    case .bytes(let value): return 1 + Varint.byteCount(value.count) + value.count
    }
  }

  @inline(__always)
  private static func integerByteCount(_ value: Int64) -> Int {
    if value == 0 { return 0 }
    // One bit more than the magnitude needs, for the sign.
    let bits = 65 - (value < 0 ? ~value : value).leadingZeroBitCount
    return (bits + 7) / 8
  }

  @inline(__always)
  private static func doubleByteCount(_ bits: UInt64) -> Int {
    bits == 0 ? 0 : 8 - bits.trailingZeroBitCount / 8
  }

  /// Writes the packed form and returns the address after it.
  @inline(__always)
  package static func write(
    _ scalar: Scalar, to target: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    switch scalar {
    case .bool(let value):
      target.storeBytes(of: value ? 1 : 0, as: UInt8.self)
      return target + 1
    case .integer(let value):
      let count = integerByteCount(value)
      target.storeBytes(of: integerTag + UInt8(count), as: UInt8.self)
      withUnsafeBytes(of: value.littleEndian) {
        (target + 1).copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: count)
      }
      return target + 1 + count
    case .double(let value):
      precondition(value.isFinite, "a leaf's double is finite")
      let count = doubleByteCount(value.bitPattern)
      target.storeBytes(of: doubleTag + UInt8(count), as: UInt8.self)
      withUnsafeBytes(of: value.bitPattern.bigEndian) {
        (target + 1).copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: count)
      }
      return target + 1 + count
    case .string(let value):
      return value.withContiguousUTF8 { write(utf8: $0, to: target) }
    case .bytes(let value):
      target.storeBytes(of: bytesTag, as: UInt8.self)
      let start = Varint.write(value.count, to: target + 1)
      value.withUnsafeBytes { bytes in
        if let source = bytes.baseAddress {
          start.copyMemory(from: source, byteCount: bytes.count)
        }
      }
      return start + value.count
    }
  }

  @inline(__always)
  static func write(
    utf8: UnsafeBufferPointer<UInt8>, to target: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    var next = target
    if utf8.count < 127 {
      next.storeBytes(of: stringTag + UInt8(utf8.count), as: UInt8.self)
      next += 1
    } else {
      next.storeBytes(of: longStringTag, as: UInt8.self)
      next = Varint.write(utf8.count, to: next + 1)
    }
    if let source = utf8.baseAddress { next.copyMemory(from: source, byteCount: utf8.count) }
    return next + utf8.count
  }

  /// Appends the packed form.
  package static func append(_ scalar: Scalar, to bytes: inout [UInt8]) {
    let count = byteCount(scalar)
    withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { scratch in
      _ = write(scalar, to: scratch.baseAddress.unsafelyUnwrapped)
      bytes.append(contentsOf: UnsafeRawBufferPointer(scratch))
    }
  }

  /// The end of the packed scalar at `offset`; nil unless it is complete, valid and in its only form.
  ///
  /// - Complexity: O(bytes), since a string is validated as UTF-8; allocates nothing.
  package static func end(validating bytes: UnsafeRawBufferPointer, at offset: Int) -> Int? {
    guard offset >= 0, offset < bytes.count else { return nil }
    let tag = bytes[offset]
    let start = offset + 1
    switch tag {
    case 0, 1: return start
    case integerTag...integerTag + 8:
      let count = Int(tag - integerTag)
      guard count <= bytes.count - start else { return nil }
      let value = integer(bytes.baseAddress.unsafelyUnwrapped + start, count)
      return integerByteCount(value) == count ? start + count : nil
    case doubleTag...doubleTag + 8:
      let count = Int(tag - doubleTag)
      guard count <= bytes.count - start else { return nil }
      let bits = doubleBits(bytes.baseAddress.unsafelyUnwrapped + start, count)
      guard Double(bitPattern: bits).isFinite, doubleByteCount(bits) == count else { return nil }
      return start + count
    case stringTag...longStringTag:
      var count = Int(tag - stringTag)
      var first = start
      if tag == longStringTag {
        guard let (length, prefix) = Varint.read(bytes, at: start), length >= 127,
          length <= Limits.stringBytes
        else { return nil }
        count = length
        first = start + prefix
      }
      guard count <= bytes.count - first,
        isValidUTF8(UnsafeRawBufferPointer(rebasing: bytes[first..<first + count]))
      else { return nil }
      return first + count
    default: return nil
    }
  }

  /// The end of the packed bytes at `offset`; nil unless they are complete and in their only form.
  static func bytesEnd(validating bytes: UnsafeRawBufferPointer, at offset: Int) -> Int? {
    guard offset >= 0, offset < bytes.count, bytes[offset] == bytesTag,
      let (count, prefix) = Varint.read(bytes, at: offset + 1), count <= Limits.leafBytes,
      count <= bytes.count - offset - 1 - prefix
    else { return nil }
    return offset + 1 + prefix + count
  }

  /// Reads packed bytes, as `read(_:at:)` reads the scalars of the data.
  package static func readBytes(_ bytes: UnsafeRawBufferPointer, at offset: inout Int) -> Scalar? {
    guard let end = bytesEnd(validating: bytes, at: offset) else { return nil }
    let (scalar, _) = readTrusted(bytes.baseAddress.unsafelyUnwrapped + offset)
    offset = end
    return scalar
  }

  /// Reads the packed scalar at `offset` and moves `offset` to its end. Returns nil, and leaves `offset`
  /// unchanged, unless the scalar is complete, valid and in its only form.
  package static func read(_ bytes: UnsafeRawBufferPointer, at offset: inout Int) -> Scalar? {
    guard let end = end(validating: bytes, at: offset) else { return nil }
    let (scalar, _) = readTrusted(bytes.baseAddress.unsafelyUnwrapped + offset)
    offset = end
    return scalar
  }

  @inline(__always)
  private static func integer(_ address: UnsafeRawPointer, _ count: Int) -> Int64 {
    if count == 0 { return 0 }
    var value: UInt64 = 0
    for index in 0..<count {
      value |= UInt64((address + index).load(as: UInt8.self)) << UInt64(8 &* index)
    }
    let shift = Int64(64 &- 8 &* count)
    return (Int64(bitPattern: value) << shift) >> shift
  }

  @inline(__always)
  private static func doubleBits(_ address: UnsafeRawPointer, _ count: Int) -> UInt64 {
    var bits: UInt64 = 0
    for index in 0..<count {
      bits |= UInt64((address + index).load(as: UInt8.self)) << UInt64(56 &- 8 &* index)
    }
    return bits
  }

  /// The valid packed scalar at an address, and its size in bytes.
  @inline(__always)
  static func readTrusted(_ address: UnsafeRawPointer) -> (scalar: Scalar, byteCount: Int) {
    let tag = address.load(as: UInt8.self)
    if tag >= bytesTag {
      let (count, first) = stringExtent(address, tag)
      let bytes = UnsafeRawBufferPointer(start: address + first, count: count)
      if tag == bytesTag { return (.bytes(Array(bytes)), first + count) }
      return (.string(String(decoding: bytes, as: UTF8.self)), first + count)
    }
    if tag >= doubleTag {
      let count = Int(tag - doubleTag)
      return (.double(Double(bitPattern: doubleBits(address + 1, count))), 1 + count)
    }
    if tag >= integerTag {
      let count = Int(tag - integerTag)
      return (.integer(integer(address + 1, count)), 1 + count)
    }
    return (.bool(tag == 1), 1)
  }

  /// The number at an address, where a valid packed number is, and its size in bytes. No scalar is made, which may
  /// have a string.
  @inline(__always)
  static func numberTrusted(_ address: UnsafeRawPointer) -> (number: Number, byteCount: Int) {
    let tag = address.load(as: UInt8.self)
    let count = Int(tag & 0x0F)
    if tag >= doubleTag {
      return (.double(Double(bitPattern: doubleBits(address + 1, count))), 1 + count)
    }
    return (.integer(integer(address + 1, count)), 1 + count)
  }

  /// The size in bytes of the valid packed scalar at an address.
  @inline(__always)
  static func byteCountTrusted(_ address: UnsafeRawPointer) -> Int {
    let tag = address.load(as: UInt8.self)
    if tag >= bytesTag {
      let (count, first) = stringExtent(address, tag)
      return first + count
    }
    return 1 + (tag < integerTag ? 0 : Int(tag & 0x0F))
  }

  /// What the valid packed scalar at an address is.
  static func kind(_ address: UnsafeRawPointer) -> NodeView.ContentKind {
    switch address.load(as: UInt8.self) {
    case 0, 1: .bool
    case ..<bytesTag: .number
    case bytesTag: .bytes
    default: .string
    }
  }

  /// Whether the valid packed scalar at an address is a number.
  @inline(__always)
  static func isNumber(_ address: UnsafeRawPointer) -> Bool {
    let tag = address.load(as: UInt8.self)
    return tag >= integerTag && tag < priorityTag
  }

  /// The bytes of the valid packed string at an address; nil for other scalars.
  static func stringBytes(_ address: UnsafeRawPointer) -> UnsafeRawBufferPointer? {
    let tag = address.load(as: UInt8.self)
    guard tag >= stringTag else { return nil }
    let (count, first) = stringExtent(address, tag)
    return UnsafeRawBufferPointer(start: address + first, count: count)
  }

  /// The count of the bytes of a string or of bytes, and where they begin.
  @inline(__always)
  private static func stringExtent(
    _ address: UnsafeRawPointer, _ tag: UInt8
  ) -> (byteCount: Int, first: Int) {
    if tag != longStringTag, tag != bytesTag { return (Int(tag - stringTag), 1) }
    let (count, prefix) = Varint.readTrusted(address + 1)
    return (count, 1 + prefix)
  }
}
