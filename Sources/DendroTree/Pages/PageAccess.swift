/// Reads and edits the bytes of one page: the unsafe type of this module.
///
/// Why it is sound:
/// 1. *Lifetime.* An access does not own its page. Each is made from a reference that a value holds
///    through the whole operation (`withExtendedLifetime`, or a slot of a page that is held so), and
///    none outlives the operation that made it.
/// 2. *Bounds.* Every index is below `count` (checked by `assert`), every offset was written by
///    `insert`, which first made room; entries and slots never overlap, since `used + count · stride
///    ≤ capacity` (`checkInvariants`). Bytes from outside get into a page only after validation, so
///    lengths read from entries are those that were written.
/// 3. *References.* A slot's reference is an initialised `Page?` from `insert` until `remove`,
///    `moveEntries` or `deinit`, which end it exactly once; slots are moved bit by bit, which moves
///    the ownership with them.
/// 4. *Writes.* Mutating calls are made only on the result of `writable`.
struct PageAccess {
  let header: UnsafeMutablePointer<PageHeader>

  init(header: UnsafeMutablePointer<PageHeader>) { self.header = header }

  /// The page behind an initialised slot, without retaining it.
  @inline(__always)
  init(_ slot: UnsafeMutablePointer<Page?>) {
    let address = UnsafeRawPointer(slot).load(as: UnsafeRawPointer.self)
    header = Unmanaged<Page>.fromOpaque(address)._withUnsafeGuaranteedRef { page in
      page.withUnsafeMutablePointerToHeader { $0 }
    }
  }

  @inline(__always) var tail: UnsafeMutableRawPointer { UnsafeMutableRawPointer(header + 1) }
  @inline(__always) var kind: PageHeader.Kind { header.pointee.kind }
  @inline(__always) var count: Int { Int(header.pointee.count) }
  @inline(__always) var total: Int { Int(header.pointee.total) }
  @inline(__always) var hasPriorities: Bool { header.pointee.hasPriorities }
  @inline(__always) var stride: Int { Int(header.pointee.slotStride) }
  @inline(__always) var hasReferences: Bool { header.pointee.slotStride == 16 }
  /// Bytes in use, free ones not counted.
  @inline(__always) var byteCount: Int { Int(header.pointee.used) &+ stride &* count }

  /// Beyond this a page is split, unless it has only entries that are very long.
  @inline(__always) var byteCountMax: Int {
    hasReferences ? Page.referencingByteCountMax : Page.plainByteCountMax
  }
  /// Whether the slots of references would make of a page of many short leaves one that two splits do
  /// not bring near its bound. A half of it cannot be merged with the other one again.
  var isTooFullForReferences: Bool {
    !hasReferences && byteCount > Page.plainByteCountMax / 4 * 3
      && byteCount + 14 * count > Page.plainByteCountMax / 2 * 3
  }
  /// Below this a page is merged with a neighbour, where both fit into three quarters of one.
  @inline(__always) var isNearlyEmpty: Bool { byteCount < byteCountMax / 4 }

  @inline(__always)
  private func slot(_ index: Int) -> UnsafeMutableRawPointer {
    tail + (Int(header.pointee.capacity) &- stride &* (index &+ 1))
  }

  @inline(__always)
  private func offsetAddress(_ index: Int) -> UnsafeMutableRawPointer {
    slot(index) + (hasReferences ? 8 : 0)
  }

  /// Where entry `index` begins; for `count`, where the entries end.
  @inline(__always)
  func offset(_ index: Int) -> Int {
    index == count ? Int(header.pointee.used) : Int(offsetAddress(index).load(as: UInt16.self))
  }

  /// The reference of an entry, in a page that has references.
  @inline(__always)
  func reference(_ index: Int) -> UnsafeMutablePointer<Page?> {
    assert(hasReferences && index < count)
    return slot(index).assumingMemoryBound(to: Page?.self)
  }

  /// The ordered bytes of a key.
  @inline(__always)
  func key(_ index: Int) -> (start: UnsafeRawPointer, count: Int) {
    assert(index < count)
    let entry = UnsafeRawPointer(tail + offset(index))
    let (count, prefix) = Varint.readTrusted(entry)
    return (entry + prefix, count)
  }

  /// The bytes after the key.
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

  /// The entry with that key, or where it would be inserted.
  @inline(__always)
  func find(_ key: UnsafeRawPointer, _ keyCount: Int) -> (index: Int, found: Bool) {
    var high = count &- 1
    if high < 0 { return (0, false) }
    // Keys mostly come in order, and recent ones are read most.
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

  /// The page of an inner page that a key belongs to.
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

// Changes. The first group makes room and may put another page into the slot.
extension PageAccess {
  /// The page in a slot, copied first if another value shares it, with room for `extra` more bytes
  /// of entry, one more slot, and references if asked for.
  static func writable(
    _ slot: UnsafeMutablePointer<Page?>, extra: Int = 0, references: Bool = false
  ) -> PageAccess {
    let old = PageAccess(slot)
    let isUnique = isKnownUniquelyReferenced(&slot.pointee)
    let stride = references ? 16 : old.stride
    let needed = Int(old.header.pointee.used) + extra + stride * (old.count + (extra > 0 ? 1 : 0))
    if isUnique && stride == old.stride && needed <= old.header.pointee.capacity { return old }
    // An eighth more than asked for, as long as the page is not about to be split.
    let limit = stride == 16 ? Page.referencingByteCountMax : Page.plainByteCountMax
    let roomy = min(needed + needed / 8, max(limit, needed))
    let page = Page.make(
      old.kind, hasReferences: stride == 16, capacity: extra > 0 ? roomy : needed)
    let new = page.access
    new.header.pointee.count = old.header.pointee.count
    new.header.pointee.used = old.header.pointee.used
    new.header.pointee.total = old.header.pointee.total
    new.header.pointee.hasPriorities = old.header.pointee.hasPriorities
    new.tail.copyMemory(from: old.tail, byteCount: Int(old.header.pointee.used))
    let count = old.count
    if stride == 2 {
      (new.slot(count - 1)).copyMemory(from: old.slot(count - 1), byteCount: 2 * count)
    } else {
      for index in 0..<count {
        new.setOffset(index, old.offset(index))
        let target = new.slot(index)
        if !old.hasReferences {
          target.initializeMemory(as: Page?.self, to: nil)
        } else if isUnique {
          target.copyMemory(from: old.slot(index), byteCount: 8)  // Moved, see below.
        } else {
          target.initializeMemory(as: Page?.self, to: old.reference(index).pointee)
        }
      }
    }
    if isUnique { old.header.pointee.count = 0 }  // Its references live on in the new page.
    slot.pointee = page
    return new
  }

  @inline(__always)
  private func setOffset(_ index: Int, _ offset: Int) {
    offsetAddress(index).storeBytes(of: UInt16(truncatingIfNeeded: offset), as: UInt16.self)
  }

  private func shiftOffsets(from first: Int, by delta: Int) {
    var index = first
    while index < count {
      setOffset(index, offset(index) &+ delta)
      index &+= 1
    }
  }

  static func entryByteCount(keyCount: Int, valueCount: Int) -> Int {
    Varint.byteCount(keyCount) + keyCount + valueCount
  }

  /// Makes an entry before `index`, in a page with room, and returns where its value goes.
  func insert(
    at index: Int, _ key: UnsafeRawPointer, _ keyCount: Int, valueCount: Int, _ reference: Page?
  ) -> UnsafeMutableRawPointer {
    let byteCount = PageAccess.entryByteCount(keyCount: keyCount, valueCount: valueCount)
    assert(self.byteCount + byteCount + stride <= Int(header.pointee.capacity))
    let count = self.count
    let used = Int(header.pointee.used)
    let start = offset(index)
    let entry = tail + start
    if index < count {
      (entry + byteCount).copyMemory(from: entry, byteCount: used &- start)
      let last = slot(count &- 1)
      (last - stride).copyMemory(from: last, byteCount: stride &* (count &- index))
    }
    header.pointee.used = UInt32(truncatingIfNeeded: used &+ byteCount)
    header.pointee.count = UInt16(truncatingIfNeeded: count &+ 1)
    if hasReferences { slot(index).initializeMemory(as: Page?.self, to: reference) }
    setOffset(index, start)
    shiftOffsets(from: index &+ 1, by: byteCount)
    let keyStart = Varint.write(keyCount, to: entry)
    keyStart.copyMemory(from: key, byteCount: keyCount)
    return keyStart + keyCount
  }

  /// Gives an entry another value, in a page with room, and returns where it goes.
  func replace(
    at index: Int, valueCount: Int, _ reference: Page?
  ) -> UnsafeMutableRawPointer {
    let old = value(index)
    let start = old.baseAddress.unsafelyUnwrapped
    let delta = valueCount &- old.count
    if delta != 0 {
      let end = start + old.count
      let rest = tail + Int(header.pointee.used) - end
      (start + valueCount).copyMemory(from: end, byteCount: rest)
      header.pointee.used = UInt32(truncatingIfNeeded: Int(header.pointee.used) &+ delta)
      shiftOffsets(from: index &+ 1, by: delta)
    }
    if hasReferences { self.reference(index).pointee = reference }
    return start
  }

  func remove(at index: Int) {
    let start = offset(index)
    let end = offset(index &+ 1)
    if hasReferences { reference(index).deinitialize(count: 1) }
    let used = Int(header.pointee.used)
    (tail + start).copyMemory(from: tail + end, byteCount: used &- end)
    shiftOffsets(from: index &+ 1, by: start &- end)
    let last = slot(count &- 1)
    (last + stride).copyMemory(from: last, byteCount: stride &* (count &- 1 &- index))
    header.pointee.used = UInt32(truncatingIfNeeded: used &- (end &- start))
    header.pointee.count = UInt16(truncatingIfNeeded: count &- 1)
  }

  /// Moves the entries from `index` on into a new page.
  func moveEntries(from index: Int) -> Page {
    let count = self.count
    let start = offset(index)
    let byteCount = Int(header.pointee.used) - start
    let page = Page.make(
      kind, hasReferences: hasReferences, capacity: byteCount + stride * (count - index))
    let new = page.access
    new.header.pointee.count = UInt16(count - index)
    new.header.pointee.used = UInt32(byteCount)
    new.tail.copyMemory(from: tail + start, byteCount: byteCount)
    new.slot(count - index - 1)
      .copyMemory(from: slot(count - 1), byteCount: stride * (count - index))
    new.shiftOffsets(from: 0, by: -start)
    header.pointee.count = UInt16(index)
    header.pointee.used = UInt32(start)
    new.header.pointee.hasPriorities = header.pointee.hasPriorities
    recount()
    new.recount()
    return page
  }

  /// Sets `total` and `hasPriorities` from what is there. A leaf page without priorities has none
  /// afterwards either.
  func recount() {
    switch kind {
    case .leaf:
      header.pointee.total = UInt32(count)
      if hasPriorities { findPriorities() }
    case .box: header.pointee.total = 0
    case .inner:
      var total = 0
      for index in 0..<count { total += PageAccess(reference(index)).total }
      header.pointee.total = UInt32(total)
      findPriorities()
    }
  }

  /// Sets `hasPriorities` from the entries, or from the pages below.
  func findPriorities() {
    var found = false
    var index = 0
    while index < count && !found {
      found = kind == .inner ? PageAccess(reference(index)).hasPriorities : hasPriority(index)
      index += 1
    }
    header.pointee.hasPriorities = found
  }

  /// Whether the child at an entry of a leaf page has a priority.
  func hasPriority(_ index: Int) -> Bool {
    var value = valueStart(index)
    if hasReferences, value.load(as: UInt8.self) == Pages.referenceTag,
      reference(index).pointee != nil  // The last child of a branch may have gone just now.
    {
      let page = PageAccess(reference(index))
      if page.kind == .box { value = page.valueStart(0) }  // Holds the priority too.
    }
    return value.load(as: UInt8.self) == PackedScalar.priorityTag
  }
}
