/// A `SortPosition` as bytes: their order, byte by byte, is that of positions.
///
/// | first byte | then | sort value |
/// | --- | --- | --- |
/// | 01 | | nothing |
/// | 02, 03 | | `false`, `true` |
/// | 04 | 10 bytes | number: the nearest double, then what an integer is beyond it |
/// | 05 | ordered bytes of the UTF-8, each 00 as 00 FF; 00 01 | string |
/// | 06 | | branch |
///
/// The ordered bytes of the child's key follow. No sort value's bytes are the beginning of another one's, so
/// that the bytes of a value alone are a bound of all positions with that value.
///
/// Up to 31 bytes, a number and the key of a push for example, are stored inline and compared as four
/// integers; more cost one allocation. A value; any thread.
package struct PackedPosition: Sendable {
  /// The first 31 bytes as big-endian integers, padded with zeros; then the count, or `overflowSentinel`. Of
  /// two positions of which one is the beginning of the other, the shorter one is less.
  private var words: (UInt64, UInt64, UInt64, UInt64)
  /// All bytes, if there are more than 31.
  private var overflow: [UInt8]?

  private static let inlineByteCountMax = 31
  private static let overflowSentinel: UInt8 = 0xFF

  package init(_ value: SortValue, _ key: Key) {
    self.init(value, optional: key)
  }

  /// - Parameter key: nil for the bytes of the value alone.
  init(_ value: SortValue, optional key: Key?) {
    let byteCountMax = Self.byteCountMax(value) + (key?.orderedByteCount ?? 0)
    self = withUnsafeTemporaryAllocation(byteCount: byteCountMax, alignment: 8) { scratch in
      let start = scratch.baseAddress.unsafelyUnwrapped
      var end = Self.write(value, to: start)
      key?.withOrderedBytes { bytes in
        end.copyMemory(from: bytes.baseAddress.unsafelyUnwrapped, byteCount: bytes.count)
        end += bytes.count
      }
      return PackedPosition(bytes: UnsafeRawBufferPointer(start: start, count: end - start))
    }
  }

  private init(bytes: UnsafeRawBufferPointer) {
    var padded: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    withUnsafeMutableBytes(of: &padded) { padded in
      padded.copyMemory(
        from: UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.inlineByteCountMax)))
      padded[Self.inlineByteCountMax] =
        bytes.count <= Self.inlineByteCountMax ? UInt8(bytes.count) : Self.overflowSentinel
    }
    words = (
      padded.0.bigEndian, padded.1.bigEndian, padded.2.bigEndian, padded.3.bigEndian
    )
    overflow = bytes.count > Self.inlineByteCountMax ? Array(bytes) : nil
  }

  /// The bytes that are not stored inline; 0 for most positions.
  package var allocatedByteCount: Int { overflow?.count ?? 0 }

  /// Calls `body` with the bytes, which are valid only during the call.
  func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    if let overflow { return overflow.withUnsafeBytes(body) }
    let padded = (
      words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian
    )
    return withUnsafeBytes(of: padded) {
      body(UnsafeRawBufferPointer(rebasing: $0[..<Int($0[Self.inlineByteCountMax])]))
    }
  }

  /// The key of the child.
  package var key: Key {
    withBytes { bytes in
      Key(trustedOrderedBytes: UnsafeRawBufferPointer(rebasing: bytes[Self.valueEnd(bytes)...]))
    }
  }
}

extension PackedPosition: Comparable {
  @inline(__always)
  package static func == (a: PackedPosition, b: PackedPosition) -> Bool {
    a.words.0 == b.words.0 && a.words.1 == b.words.1 && a.words.2 == b.words.2
      && a.words.3 == b.words.3 && (a.overflow == nil || a.overflow == b.overflow)
  }

  @inline(__always)
  package static func < (a: PackedPosition, b: PackedPosition) -> Bool {
    if a.words.0 != b.words.0 { return a.words.0 < b.words.0 }
    if a.words.1 != b.words.1 { return a.words.1 < b.words.1 }
    if a.words.2 != b.words.2 { return a.words.2 < b.words.2 }
    if a.words.3 != b.words.3 { return a.words.3 < b.words.3 }
    return a.overflow != nil && a.overflowPrecedes(b)
  }

  /// The first eight bytes: positions of which these differ are in their order.
  @inline(__always) var head: UInt64 { words.0 }

  @inline(never)
  private func overflowPrecedes(_ other: PackedPosition) -> Bool {
    compareBytes(other) < 0
  }

  private func compareBytes(_ other: PackedPosition) -> Int {
    withBytes { a in other.withBytes { b in Self.compare(a, b) } }
  }

  static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    DendroTree.compareBytes(
      a.baseAddress.unsafelyUnwrapped, a.count, b.baseAddress.unsafelyUnwrapped, b.count)
  }
}

// MARK: - Values

extension PackedPosition {
  private enum Tag {
    static let none: UInt8 = 1
    static let `false`: UInt8 = 2
    static let `true`: UInt8 = 3
    static let number: UInt8 = 4
    static let string: UInt8 = 5
    static let branch: UInt8 = 6
  }

  private static let numberByteCount = 11

  private static func byteCountMax(_ value: SortValue) -> Int {
    if case .scalar(.string(let text)) = value { return 2 * text.utf8.count + 3 }
    return numberByteCount
  }

  /// Writes a value, and returns the address after it.
  private static func write(
    _ value: SortValue, to target: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    let tag: UInt8
    switch value {
    case .none: tag = Tag.none
    case .branch: tag = Tag.branch
    case .scalar(.bool(let value)): tag = value ? Tag.true : Tag.false
    case .scalar(.integer(let value)):
      let nearest = Double(value)
      return write(nearest, beyond: beyond(value, nearest), to: target)
    case .scalar(.double(let value)): return write(value, beyond: 0, to: target)
    case .scalar(.string(var text)): return text.withUTF8 { write($0, to: target) }
    case .scalar(.bytes): preconditionFailure("there are no queries of the second root")
    }
    target.storeBytes(of: tag, as: UInt8.self)
    return target + 1
  }

  /// An integer less its nearest double: not 0 only beyond 2^53, and 512 at most.
  private static func beyond(_ value: Int64, _ nearest: Double) -> Int64 {
    // 2^63, which is no Int64, wraps around to the least one.
    value &- (nearest < 0x1p63 ? Int64(nearest) : Int64.min)
  }

  private static func write(
    _ nearest: Double, beyond: Int64, to target: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    let bits = (nearest + 0).bitPattern  // -0.0 becomes 0.
    let ordered = nearest < 0 ? ~bits : bits | 1 << 63
    target.storeBytes(of: Tag.number, as: UInt8.self)
    (target + 1).storeBytes(of: ordered.bigEndian, as: UInt64.self)
    (target + 9).storeBytes(of: UInt16(0x8000 + beyond).bigEndian, as: UInt16.self)
    return target + numberByteCount
  }

  private static func write(
    _ utf8: UnsafeBufferPointer<UInt8>, to target: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    var next = target
    func append(_ byte: UInt8) {
      next.storeBytes(of: byte, as: UInt8.self)
      next += 1
    }
    append(Tag.string)
    for byte in utf8 {
      append(KeyCoding.ordered(byte))
      if byte == 0 { append(0xFF) }
    }
    append(0)
    append(1)
    return next
  }

  /// The end of the value's bytes.
  private static func valueEnd(_ bytes: UnsafeRawBufferPointer) -> Int {
    switch bytes[0] {
    case Tag.number: return numberByteCount
    case Tag.string:
      var end = 1
      while bytes[end] != 0 || bytes[end + 1] == 0xFF { end += bytes[end] == 0 ? 2 : 1 }
      return end + 2
    default: return 1
    }
  }
}
