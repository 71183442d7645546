/// Compares two byte strings as memcmp does; a proper prefix is less.
///
/// It compares eight bytes at a time, since keys share long prefixes (push ids). A call into the C
/// library would cost more than the comparison.
///
/// - Returns: negative, zero or positive.
@inline(__always)
func compareBytes(
  _ a: UnsafeRawPointer, _ aCount: Int, _ b: UnsafeRawPointer, _ bCount: Int
) -> Int {
  let common = min(aCount, bCount)
  var offset = 0
  while offset &+ 8 <= common {
    let x = (a + offset).loadUnaligned(as: UInt64.self)
    let y = (b + offset).loadUnaligned(as: UInt64.self)
    if x != y { return x.bigEndian < y.bigEndian ? -1 : 1 }
    offset &+= 8
  }
  if offset < common && common >= 8 {
    // The last word overlaps bytes that are known to be equal.
    let x = (a + (common &- 8)).loadUnaligned(as: UInt64.self)
    let y = (b + (common &- 8)).loadUnaligned(as: UInt64.self)
    if x != y { return x.bigEndian < y.bigEndian ? -1 : 1 }
    offset = common
  }
  while offset < common {
    let x = (a + offset).load(as: UInt8.self)
    let y = (b + offset).load(as: UInt8.self)
    if x != y { return x < y ? -1 : 1 }
    offset &+= 1
  }
  return aCount &- bCount
}

/// LEB128: seven bits a byte, the least significant first. The highest bit of a byte is set if another
/// byte follows.
enum Varint {
  /// The encoded size of `value` in bytes.
  @inline(__always)
  static func byteCount(_ value: Int) -> Int {
    value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5
  }

  /// Writes `value` (less than 2^35) and returns the address after it.
  @inline(__always)
  static func write(_ value: Int, to address: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
    var rest = value
    var next = address
    while rest >= 0x80 {
      next.storeBytes(of: UInt8(truncatingIfNeeded: rest | 0x80), as: UInt8.self)
      rest >>= 7
      next += 1
    }
    next.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
    return next + 1
  }

  /// Appends `value` (less than 2^35).
  @inline(__always)
  static func append(_ value: Int, to bytes: inout [UInt8]) {
    if value < 0x80 { return bytes.append(UInt8(truncatingIfNeeded: value)) }
    withUnsafeTemporaryAllocation(byteCount: 5, alignment: 1) { room in
      let start = room.baseAddress.unsafelyUnwrapped
      let byteCount = write(value, to: start) - start
      bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: byteCount))
    }
  }

  /// Reads a varint from bytes that are known to hold a whole one.
  @inline(__always)
  static func readTrusted(_ address: UnsafeRawPointer) -> (value: Int, byteCount: Int) {
    let first = Int(address.load(as: UInt8.self))
    if first < 0x80 { return (first, 1) }
    var value = first & 0x7F
    var count = 1
    while true {
      let byte = Int((address + count).load(as: UInt8.self))
      value |= (byte & 0x7F) << (7 &* count)
      count &+= 1
      if byte < 0x80 { return (value, count) }
    }
  }

  /// Reads a varint of at most five bytes. Returns nil unless it is whole and in its shortest form.
  @inline(__always)
  static func read(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> (value: Int, byteCount: Int)?
  {
    // Most are of one byte.
    if offset < bytes.count, bytes[offset] < 0x80 { return (Int(bytes[offset]), 1) }
    return readLong(bytes, at: offset)
  }

  @inline(never)
  private static func readLong(
    _ bytes: UnsafeRawBufferPointer, at offset: Int
  ) -> (value: Int, byteCount: Int)? {
    var value = 0
    var count = 0
    while count < 5 {
      guard offset + count < bytes.count else { return nil }
      let byte = Int(bytes[offset + count])
      value |= (byte & 0x7F) << (7 * count)
      count += 1
      if byte < 0x80 { return byte == 0 && count > 1 ? nil : (value, count) }
    }
    return nil
  }
}

/// Whether the bytes are well-formed UTF-8 by table 3-7 of the Unicode standard: no surrogates, no
/// overlong sequences, no code points above U+10FFFF.
@inline(__always)
func isValidUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
  isASCII(bytes) || isValidBeyondASCII(bytes)
}

/// Whether all bytes are less than 0x80.
@inline(__always)
func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
  guard let start = bytes.baseAddress else { return true }
  let count = bytes.count
  var all: UInt64 = 0
  var offset = 0
  while offset &+ 8 <= count {
    all |= (start + offset).loadUnaligned(as: UInt64.self)
    offset &+= 8
  }
  if offset < count {
    if count >= 8 {
      // The last word overlaps the one before.
      all |= (start + (count &- 8)).loadUnaligned(as: UInt64.self)
    } else {
      while offset < count {
        all |= UInt64((start + offset).load(as: UInt8.self))
        offset &+= 1
      }
    }
  }
  return all & 0x8080_8080_8080_8080 == 0
}

private func isValidBeyondASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
  guard let start = bytes.baseAddress else { return true }
  let count = bytes.count
  var offset = 0
  while offset < count {
    if offset &+ 8 <= count,
      (start + offset).loadUnaligned(as: UInt64.self) & 0x8080_8080_8080_8080 == 0
    {
      offset &+= 8
      continue
    }
    let lead = (start + offset).load(as: UInt8.self)
    if lead < 0x80 {
      offset &+= 1
      continue
    }
    let trailing: Int
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch lead {
    case 0xC2...0xDF: trailing = 1
    case 0xE0: (trailing, second) = (2, 0xA0...0xBF)
    case 0xE1...0xEC, 0xEE...0xEF: trailing = 2
    case 0xED: (trailing, second) = (2, 0x80...0x9F)
    case 0xF0: (trailing, second) = (3, 0x90...0xBF)
    case 0xF1...0xF3: trailing = 3
    case 0xF4: (trailing, second) = (3, 0x80...0x8F)
    default: return false
    }
    guard offset + trailing < count, second.contains(bytes[offset + 1]) else { return false }
    var index = 2
    while index <= trailing {
      guard bytes[offset + index] & 0xC0 == 0x80 else { return false }
      index += 1
    }
    offset += trailing + 1
  }
  return true
}
