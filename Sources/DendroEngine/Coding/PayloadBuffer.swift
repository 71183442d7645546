import DendroStorage

/// A growing buffer in which writes are encoded.
///
/// Unchecked `Sendable`: it has no synchronization of its own and exactly one owner at a time. The open
/// batch's buffer is passed under the admission lock to the cycle that commits the batch, and comes back the
/// same way.
///
/// Unsafe inside: `base` has room for `capacity` bytes, the first `count` of which are initialised;
/// `reserve` is the only place that moves them, and every append reserves before it stores. No method
/// calls another one of the same buffer while it changes a property, so that nothing has to be checked at
/// run time for overlapping accesses.
package final class PayloadBuffer: @unchecked Sendable {
  @exclusivity(unchecked) private var base: UnsafeMutableRawPointer
  @exclusivity(unchecked) private var capacity: Int
  @exclusivity(unchecked) package private(set) var count = 0

  /// - Parameter capacity: bytes reserved at once; grows by doubling.
  package init(capacity: Int = 256) {
    self.capacity = max(capacity, 16)
    base = .allocate(byteCount: self.capacity, alignment: 8)
  }

  deinit { base.deallocate() }

  @inline(__always)
  private func reserve(_ more: Int) {
    if count &+ more > capacity { grow(more) }
  }

  @inline(never)
  private func grow(_ more: Int) {
    let size = max(capacity * 2, count + more)
    let moved = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
    moved.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = moved
    capacity = size
  }

  package func append(_ byte: UInt8) {
    reserve(1)
    base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count &+= 1
  }

  package func append(_ raw: UnsafeRawBufferPointer) {
    guard let source = raw.baseAddress else { return }
    reserve(raw.count)
    (base + count).copyMemory(from: source, byteCount: raw.count)
    count &+= raw.count
  }

  /// Appends `count` bytes, all of which `fill` must store at the address that it is given.
  package func append(room count: Int, _ fill: (UnsafeMutableRawPointer) -> Void) {
    reserve(count)
    fill(base + self.count)
    self.count &+= count
  }

  /// Room for so many bytes behind the last one, until the buffer is used otherwise. `noteAppended` says how many of
  /// them were stored.
  @inline(__always)
  func room(for count: Int) -> UnsafeMutableRawBufferPointer {
    reserve(count)
    return UnsafeMutableRawBufferPointer(start: base + self.count, count: count)
  }

  /// Appends the first `count` bytes of the room, all of which were stored.
  @inline(__always)
  func noteAppended(_ count: Int) {
    precondition(count <= capacity &- self.count, "there is room for what is appended")
    self.count &+= count
  }

  package func append(_ other: PayloadBuffer) { other.withBytes { append($0) } }

  package func appendVarint(_ value: UInt64) {
    reserve(10)
    count &+= storeVarint(value, at: base + count)
  }

  package func appendVarint(_ value: Int) { appendVarint(UInt64(value)) }

  /// Removes all bytes after the first `count`.
  package func removeAfter(_ count: Int) {
    precondition(count <= self.count, "bytes that were never appended cannot be kept")
    self.count = count
  }

  /// Empties the buffer, and frees its memory where one large write has made it large.
  package func removeAll() {
    count = 0
    if capacity > 8 << 20 {
      base.deallocate()
      capacity = 256
      base = .allocate(byteCount: capacity, alignment: 8)
    }
  }

  /// The bytes so far. They may not be kept beyond `body`, nor appended to within.
  package func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E)
    -> R
  {
    try body(UnsafeRawBufferPointer(start: base, count: count))
  }
}
