/// The payloads of short records: each is that of one set, in another order and without the bytes with which
/// all of them begin, and what it has in common with the beginning of the one before is not stored again.
///
/// A writer and a reader each have one, and pass it the same payloads; see <doc:LogFormat>.
struct ShortPayload: ~Copyable {
  /// What is never stored: the set's time is the record's, and its path shares nothing with a path before it.
  private static let prefix: (UInt8, UInt8, UInt8) = (0x00, 0x01, 0x00)
  private static let prefixByteCount = 3
  /// The most bytes behind the prefix.
  static let byteCountMax = 255
  /// The room in front of the bytes of `last` and `next`: for the prefix and the path's length, so that the whole
  /// payload stands there without a copy.
  private static let headByteCount = prefixByteCount + 1

  /// Behind the prefix, with the first byte, the path's length, at the end: so two paths that begin alike have
  /// their beginning in common, whatever their lengths.
  private var last = RawBuffer()
  private var next = RawBuffer()
  private var nextByteCount = 0
  private(set) var byteCount = 0

  /// The bytes of the payload that was noted last.
  func bytes(from start: Int = 0) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: last.base + Self.headByteCount + start, count: byteCount - start)
  }

  /// Forgets the last payload, so that the next one has nothing in common with it.
  mutating func restart() { byteCount = 0 }

  /// Notes a payload that is to be written.
  ///
  /// - Returns: how many bytes it has in common with the one before; nil, and nothing is noted, if it has
  ///   no place in a short record.
  mutating func note(_ payload: UnsafeRawBufferPointer) -> Int? {
    let count = payload.count - Self.prefixByteCount
    guard count > 0, count <= Self.byteCountMax, let source = payload.baseAddress,
      payload[0] == Self.prefix.0, payload[1] == Self.prefix.1, payload[2] == Self.prefix.2
    else { return nil }
    let first = source + Self.headByteCount
    var shared = 0
    last.reserve(
      Self.headByteCount + Self.byteCountMax, keeping: Self.headByteCount + byteCount)
    let place = last.base + Self.headByteCount
    // One byte is stored at least.
    let sharedMax = min(byteCount, count) - 1
    while shared < sharedMax,
      place.load(fromByteOffset: shared, as: UInt8.self)
        == first.load(fromByteOffset: shared, as: UInt8.self)
    {
      shared += 1
    }
    place.copyMemory(from: first, byteCount: count - 1)
    place.storeBytes(of: payload[Self.prefixByteCount], toByteOffset: count - 1, as: UInt8.self)
    byteCount = count
    return shared
  }

  /// The payload that a reader has found, of which it then compares the checksum. Valid until the next call.
  ///
  /// - Returns: nil if the payload before has fewer bytes than are `shared`.
  @inline(__always)
  mutating func found(shared: Int, stored: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard shared <= byteCount else { return nil }
    let count = shared + stored.count
    if next.capacity < Self.headByteCount + count {
      next.reserve(Self.headByteCount + max(count, Self.byteCountMax))
    }
    let place = next.base + Self.headByteCount
    if shared > 0 {
      place.copyMemory(from: last.base + Self.headByteCount, byteCount: shared)
    }
    if let source = stored.baseAddress {
      (place + shared).copyMemory(from: source, byteCount: stored.count)
    }
    nextByteCount = count
    return UnsafeRawBufferPointer(start: place, count: count)
  }

  /// Notes the payload that was found last.
  @inline(__always)
  mutating func noteFound() {
    swap(&last, &next)
    byteCount = nextByteCount
  }

  /// The payload that was noted last, as it was before it was stored. Valid until the next one is noted.
  @inline(__always)
  mutating func whole() -> UnsafeRawBufferPointer {
    let place = last.base
    place.storeBytes(of: Self.prefix.0, as: UInt8.self)
    place.storeBytes(of: Self.prefix.1, toByteOffset: 1, as: UInt8.self)
    place.storeBytes(of: Self.prefix.2, toByteOffset: 2, as: UInt8.self)
    let length = place.load(fromByteOffset: Self.prefixByteCount + byteCount, as: UInt8.self)
    place.storeBytes(of: length, toByteOffset: Self.prefixByteCount, as: UInt8.self)
    return UnsafeRawBufferPointer(start: place, count: Self.prefixByteCount + byteCount)
  }
}
