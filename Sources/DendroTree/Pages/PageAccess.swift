import CDendroProcessor

/// Reads and edits the bytes of one page: the unsafe type of this module.
///
/// Why it is sound:
/// 1. *Lifetime.* An access does not own its page. It is made from a reference that stays alive during
///    the whole operation (by `withExtendedLifetime`, or since it lies in a slot of a page that is kept
///    alive that way), and it does not outlive the operation.
/// 2. *Bounds.* Every index is less than `count` (checked by `assert`). Every offset was written by
///    `insert`, after `writable` had made room. Entries and slots never overlap, since `used + count ·
///    stride ≤ capacity` (`checkInvariants`). Bytes from files are validated before they are put into a
///    page, so the lengths in entries are correct.
/// 3. *References.* The reference of a slot is an initialised `Page?` from `insert` until `remove`,
///    `moveEntries` or `deinit`, each of which deinitialises or moves it exactly once. Copying the bytes
///    of a slot to another address moves its ownership.
/// 4. *Writes.* Mutating methods are called only on the result of `writable`.
///
/// The methods that change a page are in `PageAccess+Edit.swift`.
struct PageAccess {
  let header: UnsafeMutablePointer<PageHeader>

  init(header: UnsafeMutablePointer<PageHeader>) { self.header = header }

  /// Accesses the page that an initialised slot refers to, without retaining it. If that is a stub, its
  /// page is read.
  @inline(__always)
  init(_ slot: UnsafeMutablePointer<Page?>) {
    self = PageAccess(unresolved: slot).resolved
  }

  /// Accesses the page of an initialised slot as `init(_:)` does, to look a key up in it.
  ///
  /// A lookup in a large tree mostly waits for memory. What it reads after the header is asked for together
  /// with the header, so that it waits once for each page.
  @inline(__always)
  init(lookingUpIn slot: UnsafeMutablePointer<Page?>) {
    let page = PageAccess(unresolved: slot)
    page.prefetch()
    self = page.resolved
  }

  /// Asks for the first bytes of the page: 512 of them are a whole page with references, whose slots are at its end. Those
  /// after the end of a shorter one may belong to anything: they are not read.
  @inline(__always)
  func prefetch(byteCount: Int = 512) {
    let start = UnsafeRawPointer(header)
    for line in 1..<byteCount / 64 { dendro_prefetch(start + 64 * line) }
  }

  /// Asks for the first line of each page that this one refers to, whose references are counted next: a
  /// processor waits for one count before it asks for another.
  @inline(__always)
  func prefetchReferencedPages() {
    for index in 0..<count {
      dendro_prefetch(UnsafeRawPointer(slot(index)).load(as: UnsafeRawPointer?.self))
    }
  }

  /// Accesses the page or the stub that an initialised slot refers to, without retaining it.
  @inline(__always)
  init(unresolved slot: UnsafeMutablePointer<Page?>) {
    let address = UnsafeRawPointer(slot).load(as: UnsafeRawPointer.self)
    header = Unmanaged<Page>.fromOpaque(address)._withUnsafeGuaranteedRef { page in
      page.withUnsafeMutablePointerToHeader { $0 }
    }
  }

  /// The page itself, or the one that a stub stands for.
  @inline(__always)
  var resolved: PageAccess {
    kind == .stub ? PageAccess(header: PageStub(header).resolved()) : self
  }

  /// The kind of the page, or of the one that a stub stands for, which is not read.
  @inline(__always)
  var resolvedKind: PageHeader.Kind { kind == .stub ? PageStub(header).kind : kind }

  @inline(__always) var tail: UnsafeMutableRawPointer { UnsafeMutableRawPointer(header + 1) }
  @inline(__always) var kind: PageHeader.Kind { header.pointee.kind }
  @inline(__always) var count: Int { Int(header.pointee.count) }
  @inline(__always) var total: Int { Int(header.pointee.total) }
  @inline(__always) var hasPriorities: Bool { header.pointee.hasPriorities }
  @inline(__always) var stride: Int { Int(header.pointee.slotStride) }
  @inline(__always) var hasReferences: Bool { header.pointee.slotStride == 16 }
  /// The number of bytes of all entries and slots.
  @inline(__always) var byteCount: Int { Int(header.pointee.used) &+ stride &* count }

  /// A page that is larger than this is split, unless it has too few entries: one in a leaf page, fewer than
  /// `Page.innerSplitCountMin` in an inner page.
  @inline(__always) var byteCountMax: Int {
    hasReferences ? Page.referencingByteCountMax : Page.plainByteCountMax
  }
  /// Whether the larger slots of references would make a page of many short leaves so large that two
  /// splits do not bring it near its bound. The page is split first then; its halves are too large to be
  /// merged again.
  var isTooFullForReferences: Bool {
    !hasReferences && byteCount > Page.plainByteCountMax / 4 * 3
      && byteCount + 14 * count > Page.plainByteCountMax / 2 * 3
  }
  /// Whether the page is merged with a neighbour, if both together fit into three quarters of a page.
  @inline(__always) var isNearlyEmpty: Bool { byteCount < byteCountMax / 4 }

  @inline(__always)
  func slot(_ index: Int) -> UnsafeMutableRawPointer {
    tail + (Int(header.pointee.capacity) &- stride &* (index &+ 1))
  }

  @inline(__always)
  func offsetAddress(_ index: Int) -> UnsafeMutableRawPointer {
    slot(index) + (hasReferences ? 8 : 0)
  }

  /// The offset of entry `index` in the tail; for `count`, the end of the entries.
  @inline(__always)
  func offset(_ index: Int) -> Int {
    index == count ? Int(header.pointee.used) : Int(offsetAddress(index).load(as: UInt16.self))
  }

  /// The reference of an entry. The page must have references.
  @inline(__always)
  func reference(_ index: Int) -> UnsafeMutablePointer<Page?> {
    assert(hasReferences && index < count)
    return slot(index).assumingMemoryBound(to: Page?.self)
  }

  /// The ordered bytes of a key.
  @inline(__always)
  func key(_ index: Int) -> (start: UnsafeRawPointer, count: Int) {
    assert(index < count)
    return key(at: UnsafeRawPointer(tail + offset(index)))
  }

  @inline(__always)
  private func key(at entry: UnsafeRawPointer) -> (start: UnsafeRawPointer, count: Int) {
    let (count, prefix) = Varint.readTrusted(entry)
    return (entry + prefix, count)
  }

  /// The bytes of an entry after its key.
  @inline(__always)
  func value(_ index: Int) -> UnsafeMutableRawBufferPointer {
    let key = key(index)
    let start = UnsafeMutableRawPointer(mutating: key.start + key.count)
    return UnsafeMutableRawBufferPointer(start: start, count: tail + offset(index &+ 1) - start)
  }

  @inline(__always)
  private func compare(_ index: Int, _ key: UnsafeRawPointer, _ keyCount: Int) -> Int {
    let own = self.key(index)
    return compareBytes(own.start, own.count, key, keyCount)
  }

  /// The index of the entry with that key, or the index at which it would be inserted.
  @inline(__always)
  func find(_ key: UnsafeRawPointer, _ keyCount: Int) -> (index: Int, found: Bool) {
    var high = count &- 1
    if high <= 0 { return findInFirst(key, keyCount) }
    // The last entry is tried first: most keys are inserted in order, and recent ones are read most.
    let last = compare(high, key, keyCount)
    if last <= 0 { return last == 0 ? (high, true) : (high &+ 1, false) }
    var low = 0
    while low < high {
      let middle = (low &+ high) >> 1
      let order = compare(middle, key, keyCount)
      if order == 0 { return (middle, true) }
      if order < 0 { low = middle &+ 1 } else { high = middle }
    }
    return (low, false)
  }

  /// The entry with a key, and where its value begins; nil if there is none.
  @inline(__always)
  func lookUp(
    _ key: UnsafeRawPointer, _ keyCount: Int
  ) -> (index: Int, value: UnsafeRawPointer)? {
    // Deep paths have many pages of one entry, which begins with the tail.
    if count == 1 {
      let own = self.key(at: tail)
      guard own.count == keyCount, compareBytes(own.start, keyCount, key, keyCount) == 0 else {
        return nil
      }
      return (0, own.start + keyCount)
    }
    let (index, found) = find(key, keyCount)
    return found ? (index, valueStart(index)) : nil
  }

  /// `find` in a page of at most one entry, as deep paths have many of. The first entry begins with the tail.
  @inline(__always)
  private func findInFirst(_ key: UnsafeRawPointer, _ keyCount: Int) -> (index: Int, found: Bool) {
    if count == 0 { return (0, false) }
    assert(offset(0) == 0)
    let own = self.key(at: tail)
    let order = compareBytes(own.start, own.count, key, keyCount)
    return order < 0 ? (1, false) : (0, order == 0)
  }

  /// The index of the child page of an inner page to which a key belongs.
  @inline(__always)
  func childIndex(_ key: UnsafeRawPointer, _ keyCount: Int) -> Int {
    var high = count &- 1
    if high == 0 || compare(high, key, keyCount) <= 0 { return high }
    var low = 1
    while low < high {
      let middle = (low &+ high) >> 1
      if compare(middle, key, keyCount) <= 0 { low = middle &+ 1 } else { high = middle }
    }
    return low &- 1
  }
}
