/// A growing buffer in which writes are encoded.
///
/// Public, although only this package uses it: what is `package` is not inlined into other modules.
///
/// Unchecked `Sendable`: it has no synchronization of its own and exactly one owner at a time. The open
/// batch's buffer is passed under the admission lock to the turn that commits the batch, and comes back the
/// same way.
///
/// Unsafe inside: `base` has room for `capacity` bytes, the first `count` of which are initialised;
/// `reserve` is the only place that moves them, and every append reserves before it stores. No method
/// calls another one of the same buffer while it changes a property, so that nothing has to be checked at
/// run time for overlapping accesses.
public final class PayloadBuffer: @unchecked Sendable {
  @exclusivity(unchecked) @usableFromInline var base: UnsafeMutableRawPointer
  @exclusivity(unchecked) @usableFromInline var capacity: Int
  @exclusivity(unchecked) @usableFromInline var used = 0

  /// The bytes so far. Computed, since a stored property would be checked when another module reads it.
  @inlinable @inline(__always)
  public var count: Int { used }

  /// - Parameter capacity: bytes reserved at once; grows by doubling.
  public init(capacity: Int = 256) {
    self.capacity = max(capacity, 16)
    base = .allocate(byteCount: self.capacity, alignment: 8)
  }

  deinit { base.deallocate() }

  @inlinable @inline(__always)
  func reserve(_ more: Int) {
    if used &+ more > capacity { grow(more) }
  }

  @usableFromInline @inline(never)
  func grow(_ more: Int) {
    let size = max(capacity * 2, used + more)
    let moved = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
    moved.copyMemory(from: base, byteCount: used)
    base.deallocate()
    base = moved
    capacity = size
  }

  /// Appends a byte.
  @inlinable @inline(__always)
  public func append(_ byte: UInt8) {
    reserve(1)
    base.storeBytes(of: byte, toByteOffset: used, as: UInt8.self)
    used &+= 1
  }

  /// Appends bytes.
  @inlinable @inline(__always)
  public func append(_ raw: UnsafeRawBufferPointer) {
    guard let source = raw.baseAddress else { return }
    reserve(raw.count)
    (base + used).copyMemory(from: source, byteCount: raw.count)
    used &+= raw.count
  }

  /// Appends `count` bytes, all of which `fill` must store at the address that it is given.
  @inlinable @inline(__always)
  public func append(room count: Int, _ fill: (UnsafeMutableRawPointer) -> Void) {
    reserve(count)
    fill(base + used)
    used &+= count
  }

  /// Appends as many bytes as `fill` returns: so many it must store at the address that it is given, at most `room`.
  @inlinable @inline(__always)
  public func append(roomFor room: Int, _ fill: (UnsafeMutableRawPointer) -> Int) {
    reserve(room)
    let added = fill(base + used)
    precondition(added <= room, "there is room for what is appended")
    used &+= added
  }

  /// Calls `body` with the bytes, which may be changed in place. Nothing may be appended within.
  @inline(__always)
  func withMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer) -> R) -> R {
    body(UnsafeMutableRawBufferPointer(start: base, count: used))
  }

  /// Room for so many bytes behind the last one, until the buffer is used otherwise. `noteAppended` says how many of
  /// them were stored.
  @inlinable @inline(__always)
  public func room(for count: Int) -> UnsafeMutableRawBufferPointer {
    reserve(count)
    return UnsafeMutableRawBufferPointer(start: base + used, count: count)
  }

  /// Appends the first `count` bytes of the room, all of which were stored.
  @inlinable @inline(__always)
  public func noteAppended(_ count: Int) {
    precondition(count <= capacity &- used, "there is room for what is appended")
    used &+= count
  }

  /// Appends the bytes of another buffer.
  public func append(_ other: PayloadBuffer) { other.withBytes { append($0) } }

  /// Appends a number as a varint: unsigned LEB128 in its shortest form.
  @inlinable @inline(__always)
  public func appendVarint(_ value: UInt64) {
    if value < 0x80 { return append(UInt8(truncatingIfNeeded: value)) }
    appendLongVarint(value)
  }

  @usableFromInline
  func appendLongVarint(_ value: UInt64) {
    reserve(10)
    var rest = value
    while rest >= 0x80 {
      base.storeBytes(
        of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: used, as: UInt8.self)
      used &+= 1
      rest >>= 7
    }
    base.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: used, as: UInt8.self)
    used &+= 1
  }

  /// Appends a number, which is not negative, as a varint.
  public func appendVarint(_ value: Int) { appendVarint(UInt64(value)) }

  /// Removes all bytes after the first `count`.
  @inlinable @inline(__always)
  public func removeAfter(_ count: Int) {
    precondition(count <= used, "bytes that were never appended cannot be kept")
    used = count
  }

  /// Empties the buffer, and frees its memory if one large write has made it large.
  public func removeAll() {
    used = 0
    if capacity > 8 << 20 {
      base.deallocate()
      capacity = 256
      base = .allocate(byteCount: capacity, alignment: 8)
    }
  }

  /// The bytes so far. They may not be kept beyond `body`, nor appended to within.
  @inlinable @inline(__always)
  public func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E)
    -> R
  {
    try body(UnsafeRawBufferPointer(start: base, count: used))
  }
}
