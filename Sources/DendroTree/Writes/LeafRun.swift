/// Short leaves that are siblings, on their way into a tree, in the order of their keys: if their branch is not there
/// yet, they are its page as they are.
///
/// Unsafe: `bytes` and `offsets` have room for what `hasRoom` admits.
struct LeafRun: ~Copyable {
  private static let countMax = 64

  private let bytes = UnsafeMutableRawPointer.allocate(
    byteCount: Page.plainByteCountMax, alignment: 8)
  private let offsets = UnsafeMutablePointer<UInt16>.allocate(capacity: Self.countMax)
  private(set) var count = 0
  private var byteCount = 0
  /// The bytes of the stored path that they have in common.
  private(set) var parentByteCount = 0

  deinit {
    bytes.deallocate()
    offsets.deallocate()
  }

  @inline(__always)
  var isEmpty: Bool { count == 0 }

  mutating func begin(below parentByteCount: Int) {
    removeAll()
    self.parentByteCount = parentByteCount
  }

  mutating func removeAll() {
    count = 0
    byteCount = 0
  }

  /// Whether there is room for one more key, with its length, and its leaf.
  func hasRoom(for more: Int) -> Bool {
    count < Self.countMax && byteCount &+ more &+ 2 &* (count &+ 1) <= Page.plainByteCountMax
  }

  /// Adds a leaf where its key belongs.
  ///
  /// - Returns: false if there is no room, or a leaf with this key.
  mutating func insert(storedKey: UnsafeRawBufferPointer, leaf: UnsafeRawBufferPointer) -> Bool {
    let entryByteCount = storedKey.count &+ leaf.count
    guard hasRoom(for: entryByteCount) else { return false }
    let key = PathStep(stored: storedKey)
    var index = count
    while index > 0 {
      // Mostly they come in order.
      let before = PathStep(
        UnsafeRawPointer(bytes + Int(offsets[index &- 1])), end: UnsafeRawPointer(bytes))
      let order = compareBytes(before.key, before.keyCount, key.key, key.keyCount)
      if order == 0 { return false }
      if order < 0 { break }
      index &-= 1
    }
    let offset = index < count ? Int(offsets[index]) : byteCount
    let target = bytes + offset
    (target + entryByteCount).copyMemory(from: target, byteCount: byteCount &- offset)
    target.copyMemory(from: storedKey.baseAddress.unsafelyUnwrapped, byteCount: storedKey.count)
    (target + storedKey.count).copyMemory(
      from: leaf.baseAddress.unsafelyUnwrapped, byteCount: leaf.count)
    var next = count
    while next > index {
      offsets[next] = offsets[next &- 1] &+ UInt16(truncatingIfNeeded: entryByteCount)
      next &-= 1
    }
    offsets[index] = UInt16(truncatingIfNeeded: offset)
    byteCount &+= entryByteCount
    count &+= 1
    return true
  }

  /// The entries of their page; valid until the run is changed.
  var entries: PageEntries {
    PageEntries(
      bytes: UnsafeRawBufferPointer(start: bytes, count: byteCount),
      offsets: UnsafeBufferPointer(start: offsets, count: count))
  }
}
