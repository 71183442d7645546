/// The payloads of short records: each is that of one set, in another order and without the bytes with which
/// all of them begin, and what it has in common with the beginning of the one before is not stored again.
///
/// A writer and a reader each have one, and pass it the same payloads; see <doc:LogFormat>.
struct ShortPayload: ~Copyable {
  /// What is never stored: the set's time is the record's, and its path shares nothing with a path before it.
  static let prefix: [UInt8] = [0x00, 0x01, 0x00]
  /// The most bytes behind the prefix.
  static let byteCountMax = 255

  /// Behind the prefix, with the first byte, the path's length, at the end: so two paths that begin alike have
  /// their beginning in common, whatever their lengths.
  private var last = RawBuffer()
  private var next = RawBuffer()
  private var nextByteCount = 0
  private(set) var byteCount = 0

  /// The bytes of the payload that was noted last.
  func bytes(from start: Int = 0) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: last.base + start, count: byteCount - start)
  }

  /// Forgets the last payload, so that the next one has nothing in common with it.
  mutating func restart() { byteCount = 0 }

  /// Notes a payload that is to be written.
  ///
  /// - Returns: how many bytes it has in common with the one before; nil, and nothing is noted, where it has
  ///   no place in a short record.
  mutating func note(_ payload: UnsafeRawBufferPointer) -> Int? {
    let count = payload.count - Self.prefix.count
    guard count > 0, count <= Self.byteCountMax, let source = payload.baseAddress,
      payload[0] == Self.prefix[0], payload[1] == Self.prefix[1], payload[2] == Self.prefix[2]
    else { return nil }
    let first = source + Self.prefix.count + 1
    var shared = 0
    last.reserve(Self.byteCountMax, keeping: byteCount)
    // One byte is stored at least.
    let sharedMax = min(byteCount, count) - 1
    while shared < sharedMax,
      last.base.load(fromByteOffset: shared, as: UInt8.self)
        == first.load(fromByteOffset: shared, as: UInt8.self)
    {
      shared += 1
    }
    last.base.copyMemory(from: first, byteCount: count - 1)
    last.base.storeBytes(of: payload[Self.prefix.count], toByteOffset: count - 1, as: UInt8.self)
    byteCount = count
    return shared
  }

  /// The payload that a reader has found, of which it then compares the checksum. Valid until the next call.
  ///
  /// - Returns: nil where the payload before has fewer bytes than are `shared`.
  mutating func found(shared: Int, stored: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard shared <= byteCount else { return nil }
    let count = shared + stored.count
    next.reserve(count)
    if shared > 0 { next.base.copyMemory(from: last.base, byteCount: shared) }
    UnsafeMutableRawBufferPointer(start: next.base + shared, count: stored.count)
      .copyMemory(from: stored)
    nextByteCount = count
    return UnsafeRawBufferPointer(start: next.base, count: count)
  }

  /// Notes the payload that was found last.
  mutating func noteFound() {
    swap(&last, &next)
    byteCount = nextByteCount
  }

  /// The payload that was noted last, as it was before it was stored; `place` has room for the prefix and
  /// `byteCountMax` bytes.
  func whole(at place: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer {
    let whole = UnsafeMutableRawBufferPointer(
      start: place, count: Self.prefix.count + byteCount)
    whole.copyBytes(from: Self.prefix)
    whole[Self.prefix.count] = last.base.load(fromByteOffset: byteCount - 1, as: UInt8.self)
    UnsafeMutableRawBufferPointer(rebasing: whole[(Self.prefix.count + 1)...])
      .copyMemory(from: UnsafeRawBufferPointer(start: last.base, count: byteCount - 1))
    return UnsafeRawBufferPointer(whole)
  }
}
