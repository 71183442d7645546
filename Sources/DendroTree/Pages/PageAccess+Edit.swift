extension PageAccess {
  /// Makes the page in a slot writable: copies it if another value shares it, or if it has no room for
  /// one more entry of `extra` bytes, or if it lacks references and `references` is true. A copy replaces
  /// the page in the slot, and so does the page of a stub.
  static func writable(
    _ slot: UnsafeMutablePointer<Page?>, extra: Int = 0, references: Bool = false
  ) -> PageAccess {
    if PageAccess(unresolved: slot).kind == .stub { PageStub.replace(slot) }
    let old = PageAccess(unresolved: slot)
    let isUnique = isKnownUniquelyReferenced(&slot.pointee)
    let stride = references ? 16 : old.stride
    let needed = Int(old.header.pointee.used) + extra + stride * (old.count + (extra > 0 ? 1 : 0))
    if isUnique && stride == old.stride && needed <= old.header.pointee.capacity { return old }
    // A growing page gets an eighth of spare room, up to the size at which pages are split.
    let limit = stride == 16 ? Page.referencingByteCountMax : Page.plainByteCountMax
    let roomy = min(needed + needed / 8, max(limit, needed))
    let page = Page.make(
      old.kind, hasReferences: stride == 16, capacity: extra > 0 ? roomy : needed)
    let new = page.access
    new.copyEntries(of: old)
    let count = old.count
    if stride == 2 {
      new.copyPlainSlots(of: old)
    } else {
      if old.hasReferences && !isUnique { old.prefetchReferencedPages() }
      for index in 0..<count {
        new.setOffset(index, old.offset(index))
        let target = new.slot(index)
        if !old.hasReferences {
          target.initializeMemory(as: Page?.self, to: nil)
        } else if isUnique {
          target.copyMemory(from: old.slot(index), byteCount: 8)  // Moves the reference, see below.
        } else {
          target.initializeMemory(as: Page?.self, to: old.reference(index).pointee)
        }
      }
    }
    if isUnique { old.header.pointee.count = 0 }  // The new page owns the references now.
    slot.pointee = page
    return new
  }

  /// Takes over the header and the entries of a page; the slots are missing.
  @inline(__always)
  fileprivate func copyEntries(of old: PageAccess) {
    header.pointee.count = old.header.pointee.count
    header.pointee.used = old.header.pointee.used
    header.pointee.total = old.header.pointee.total
    header.pointee.hasPriorities = old.header.pointee.hasPriorities
    tail.copyMemory(from: old.tail, byteCount: Int(old.header.pointee.used))
  }

  /// Takes over the slots of a page; neither has references.
  @inline(__always)
  fileprivate func copyPlainSlots(of old: PageAccess) {
    slot(count - 1).copyMemory(from: old.slot(count - 1), byteCount: 2 * count)
  }

  @inline(__always)
  func setOffset(_ index: Int, _ offset: Int) {
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

  /// Inserts an entry at `index` and returns the address for its value. The page must have room.
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

  /// Resizes the value of an entry and returns the address for the new value. The page must have room.
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

  /// Moves the entries from `index` on to a new page.
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

  /// Computes `total` and `hasPriorities`. A leaf page whose flag is false keeps it, without being
  /// searched.
  func recount() {
    switch kind {
    case .leaf:
      header.pointee.total = UInt32(count)
      if hasPriorities { findPriorities() }
    case .box, .stub: header.pointee.total = 0
    case .inner:
      var total = 0
      for index in 0..<count { total += PageAccess(unresolved: reference(index)).total }
      header.pointee.total = UInt32(total)
      findPriorities()
    }
  }

  /// Computes `hasPriorities` from the entries, or from the pages below.
  func findPriorities() {
    var found = false
    var index = 0
    while index < count && !found {
      found =
        kind == .inner
        ? PageAccess(unresolved: reference(index)).hasPriorities : hasPriority(index)
      index += 1
    }
    header.pointee.hasPriorities = found
  }

  /// Whether the child at an entry of a leaf page, or the node in a box, has a priority.
  func hasPriority(_ index: Int) -> Bool {
    var value = valueStart(index)
    if hasReferences, value.load(as: UInt8.self) == Pages.referenceTag,
      reference(index).pointee != nil  // It is nil while an emptied branch is being removed.
    {
      let page = PageAccess(unresolved: reference(index))
      if page.kind == .stub { return page.resolvedKind == .box && page.hasPriorities }
      if page.kind == .box { value = page.valueStart(0) }  // The box includes the priority.
    }
    return value.load(as: UInt8.self) == PackedScalar.priorityTag
  }
}

extension Page {
  /// The same page without free bytes that are worth a copy. Only for a page without references is there a
  /// copy.
  var trimmed: Page {
    withExtendedLifetime(self) {
      let old = unresolved
      guard old.kind == .leaf, !old.hasReferences,
        Int(old.header.pointee.capacity) - old.byteCount >= 16
      else { return self }
      let page = Page.make(.leaf, hasReferences: false, capacity: old.byteCount)
      page.access.copyEntries(of: old)
      page.access.copyPlainSlots(of: old)
      return page
    }
  }
}
