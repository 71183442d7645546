extension Pages {
  /// Inserts a page into an inner page, and splits the inner page if it becomes too large.
  static func insertChild(
    _ slot: UnsafeMutablePointer<Page?>, at index: Int, _ key: Key, _ child: Page
  ) -> (key: Key, page: Page)? {
    let extra = PageAccess.entryByteCount(keyCount: key.orderedByteCount, valueCount: 0)
    let page = PageAccess.writable(slot, extra: extra, references: true)
    key.withOrderedBytes { key in
      _ = page.insert(at: index, key.baseAddress.unsafelyUnwrapped, key.count, valueCount: 0, child)
    }
    // Either half of a split may be nearly empty and next to a small neighbour.
    mergeChild(slot, at: index)
    mergeChild(slot, at: index - 1)
    guard page.byteCount > page.byteCountMax, page.count >= Page.innerSplitCountMin else {
      return nil
    }
    return split(page, isAppend: index == page.count - 1)
  }

  /// Splits a page.
  ///
  /// - Parameter isAppend: whether the last entry is new, so that the page is split before it.
  /// - Returns: the new right page and the lower bound of the keys in it.
  static func split(_ page: PageAccess, isAppend: Bool) -> (key: Key, page: Page) {
    var index = page.count - 1
    if !isAppend || page.offset(index) + index * page.stride > Page.plainByteCountMax {
      // Find the cut that makes the halves most equal in size.
      let half = page.byteCount / 2
      index = 1
      var best = Int.max
      for cut in 1..<page.count {
        let distance = abs(page.offset(cut) + cut * page.stride - half)
        if distance > best { break }
        best = distance
        index = cut
      }
    }
    if page.kind == .inner {
      // Whatever the sizes of keys are, both halves refer to several pages, so that there are few levels.
      index = min(max(index, Page.innerHalfCountMin), page.count - Page.innerHalfCountMin)
    }
    let first = page.key(index)
    var keyCount = first.count
    if page.kind == .leaf {
      // The shortest prefix of the key that is greater than the key before it.
      let before = page.key(index - 1)
      var shared = 0
      while shared < before.count
        && before.start.load(fromByteOffset: shared, as: UInt8.self)
          == first.start.load(fromByteOffset: shared, as: UInt8.self)
      { shared += 1 }
      keyCount = shared + 1
    }
    let key = Key(
      trustedOrderedBytes: UnsafeRawBufferPointer(start: first.start, count: keyCount))
    return (key, page.moveEntries(from: index))
  }

  /// Removes the page at `index` from the inner page in `slot` if it is empty. Merges it with its neighbours
  /// while it is nearly empty and `canMerge` allows it.
  static func mergeChild(_ slot: UnsafeMutablePointer<Page?>, at index: Int) {
    let page = PageAccess(slot)
    var index = index
    if PageAccess(unresolved: page.reference(index)).count == 0 {
      page.remove(at: index)
      // The former neighbours of the removed page may be merged with each other.
      index = min(index, page.count - 1)
    }
    while index >= 0, PageAccess(unresolved: page.reference(index)).isNearlyEmpty {
      let left = canMerge(page, at: index - 1) ? index - 1 : index
      if left == index, !canMerge(page, at: index) { return }
      let seam = PageAccess(page.reference(left)).count
      append(page.reference(left + 1), page.key(left + 1), to: page.reference(left))
      page.remove(at: left + 1)
      if PageAccess(page.reference(left)).kind == .inner {
        // The child pages on both sides of the seam had different parents and could not be merged before.
        mergeChild(page.reference(left), at: seam)
      }
      index = left
    }
  }

  /// Whether the page at `left` and the next one together fit into three quarters of a page.
  private static func canMerge(_ page: PageAccess, at left: Int) -> Bool {
    guard left >= 0, left + 1 < page.count else { return false }
    let a = PageAccess(unresolved: page.reference(left))
    let b = PageAccess(unresolved: page.reference(left + 1))
    return a.byteCount + b.byteCount <= min(a.byteCountMax, b.byteCountMax) / 4 * 3
  }

  /// Appends the entries of the page in `source` to the page in `target`. `separator` is the lower bound of
  /// the keys in `source`.
  private static func append(
    _ source: UnsafeMutablePointer<Page?>, _ separator: (start: UnsafeRawPointer, count: Int),
    to target: UnsafeMutablePointer<Page?>
  ) {
    let right = PageAccess(source)
    let hasPriorities = right.hasPriorities || PageAccess(target).hasPriorities
    let references = right.hasReferences || PageAccess(target).hasReferences
    let slots = (references ? 16 : 2) * (right.count + PageAccess(target).count)
    let left = PageAccess.writable(
      target, extra: Int(right.header.pointee.used) + separator.count + 2 + slots,
      references: references)
    for index in 0..<right.count {
      // The first key of an inner page may be outdated. The separator in the page above is not.
      let key = index == 0 && right.kind == .inner ? separator : right.key(index)
      let value = right.value(index)
      let target = left.insert(
        at: left.count, key.start, key.count, valueCount: value.count,
        right.hasReferences ? right.reference(index).pointee : nil)
      if let bytes = value.baseAddress, value.count > 0 {
        target.copyMemory(from: bytes, byteCount: value.count)
      }
    }
    left.header.pointee.hasPriorities = hasPriorities
    left.recount()
  }
}
