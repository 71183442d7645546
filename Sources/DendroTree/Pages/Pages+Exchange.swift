extension Pages {
  /// The inner pages of one branch on the way to a leaf page.
  private struct InnerPages {
    private static let limit = 8

    private var headers = InlineArray<8, UnsafeMutablePointer<PageHeader>?>(repeating: nil)
    private(set) var count = 0

    /// Whether there was room for all of them.
    var isComplete: Bool { count <= Self.limit }

    @inline(__always)
    mutating func append(_ page: PageAccess) {
      if count < Self.limit { headers[count] = page.header }
      count &+= 1
    }

    @inline(__always)
    mutating func removeAll() { count = 0 }

    /// Notes one more child below each of them.
    @inline(__always)
    func noteChild() {
      var index = 0
      while index < count {
        headers[index].unsafelyUnwrapped.pointee.total &+= 1
        index &+= 1
      }
    }
  }

  /// Edits the leaf at a path below the branch whose root page is in `slot`, as `Node.exchange`.
  ///
  /// If no page on the way is shared and none has to be split, the leaf is edited where it is found; else
  /// `assign` goes down once more.
  static func exchange(
    _ root: UnsafeMutablePointer<Page?>, _ path: PathStep, _ edit: LeafEdit,
    _ place: inout Place, _ replaced: (UnsafeRawBufferPointer) -> Void
  ) -> LeafEdit.Outcome {
    var slot = root
    var branchSlot = root
    var step = path
    var isUnique = true
    // Made once, since making it sets all its places to nil.
    var inner = InnerPages()
    while true {
      inner.removeAll()
      // Below a shared page no slot is asked: other threads may read it, and asking counts as a change.
      isUnique = isUnique && isKnownUniquelyReferenced(&slot.pointee)
      guard var page = loadedPage(slot, &isUnique) else { return .unloaded }
      while page.kind == .inner {
        inner.append(page)
        slot = page.reference(page.childIndex(step.key, step.keyCount))
        isUnique = isUnique && isKnownUniquelyReferenced(&slot.pointee)
        guard let next = loadedPage(slot, &isUnique) else { return .unloaded }
        page = next
      }
      let (index, found) = page.find(step.key, step.keyCount)
      if found, !step.hasRest {
        switch edit {
        case .set, .increment: break
        case .insert, .insertEntries:
          // What is there is edited by others, who can begin here.
          if isUnique, let branch = page.branchReference(index) { place.set(branch, behind: step) }
          return .declined
        }
      }
      if found, step.hasRest {
        guard let branch = page.branchReference(index) else { return .declined }
        slot = branch
        branchSlot = branch
        step = step.next
        continue
      }
      if !found {
        let branch: Page
        switch edit {
        case .insert(let page): branch = page
        case .insertEntries(let entries): branch = Page.copying(entries)
        case .set, .increment:
          return edit.withPacked(replacing: nil) { new in
            if isUnique, inner.isComplete, insert(new, in: slot, at: index, step) {
              inner.noteChild()
              notePlace(of: step, branchSlot, slot, index, &place)
            } else {
              assign(root, path, .packed(new))
            }
            return .inserted
          }
        }
        if isUnique, inner.isComplete, insert(branch, in: slot, at: index, step) {
          inner.noteChild()
          if !step.hasRest { place.set(branchSlot, step) }
        } else {
          assign(root, path, .node(Node(content: .page(branch), priority: nil)))
        }
        return .inserted
      }
      let old = UnsafeRawBufferPointer(page.value(index))
      guard tag(old.baseAddress.unsafelyUnwrapped) != referenceTag else { return .declined }
      return edit.withPacked(replacing: old) { new in
        if LeafEdit.areEqual(old, new) { return .unchanged }
        replaced(old)
        let mayMerge = inner.count > 0
        if isUnique, replace(new, in: slot, at: index, mayMerge: mayMerge) {
          place.set(branchSlot, step)
        } else {
          assign(root, path, .packed(new))
        }
        return .replaced
      }
    }
  }

  /// Notes where a leaf was inserted: in the branch whose root page is in `branch`, or alone in a branch of its
  /// own, which is entry `index` of the page in `slot`.
  @inline(__always)
  private static func notePlace(
    of step: PathStep, _ branch: UnsafeMutablePointer<Page?>, _ slot: UnsafeMutablePointer<Page?>,
    _ index: Int, _ place: inout Place
  ) {
    if !step.hasRest {
      place.set(branch, step)
    } else if !step.next.hasRest {
      place.set(PageAccess(unresolved: slot).reference(index), step.next)
    }
  }

  /// Accesses the page in a slot; nil if it is a stub whose page was not read yet. A stub that no other
  /// value shares is replaced by its page.
  @inline(__always)
  private static func loadedPage(
    _ slot: UnsafeMutablePointer<Page?>, _ isUnique: inout Bool
  ) -> PageAccess? {
    let page = PageAccess(unresolved: slot)
    page.prefetch(byteCount: 320)
    return page.kind == .stub ? loadedPage(of: PageStub(page.header), slot, &isUnique) : page
  }

  @inline(never)
  private static func loadedPage(
    of stub: PageStub, _ slot: UnsafeMutablePointer<Page?>, _ isUnique: inout Bool
  ) -> PageAccess? {
    guard stub.isLoaded else { return nil }
    guard isUnique else { return PageAccess(slot) }
    PageStub.replace(slot)
    isUnique = isKnownUniquelyReferenced(&slot.pointee)
    return PageAccess(unresolved: slot)
  }

  /// Inserts a leaf, or a branch whose only descendant it is, into the leaf page in a slot that no other value
  /// shares.
  ///
  /// - Returns: false if the page would have to be split or converted.
  @inline(__always)
  private static func insert(
    _ new: UnsafeRawBufferPointer, in slot: UnsafeMutablePointer<Page?>, at index: Int,
    _ step: PathStep
  ) -> Bool {
    let old = PageAccess(slot)
    let isBranch = step.hasRest
    if isBranch && !old.hasReferences { return false }
    let valueCount = isBranch ? 1 : new.count
    let extra = PageAccess.entryByteCount(keyCount: step.keyCount, valueCount: valueCount)
    guard old.byteCount &+ extra &+ old.stride <= old.byteCountMax else { return false }
    let branch = isBranch ? chain(step.next, .packed(new)) : nil
    let page = PageAccess.writable(slot, extra: extra, references: old.hasReferences)
    let target = page.insert(
      at: index, step.key, step.keyCount, valueCount: valueCount, branch)
    if isBranch {
      target.storeBytes(of: referenceTag, as: UInt8.self)
    } else {
      target.copyMemory(from: new.baseAddress.unsafelyUnwrapped, byteCount: new.count)
    }
    page.header.pointee.total &+= 1
    return true
  }

  /// Inserts a branch, or one whose only descendant it is, into the leaf page in a slot that no other value shares.
  ///
  /// - Returns: false if the page would have to be split or converted.
  private static func insert(
    _ new: Page, in slot: UnsafeMutablePointer<Page?>, at index: Int, _ step: PathStep
  ) -> Bool {
    let old = PageAccess(slot)
    guard old.hasReferences else { return false }
    let extra = PageAccess.entryByteCount(keyCount: step.keyCount, valueCount: 1)
    guard old.byteCount &+ extra &+ old.stride <= old.byteCountMax else { return false }
    let branch =
      step.hasRest
      ? chain(step.next, .node(Node(content: .page(new), priority: nil))) : new
    let page = PageAccess.writable(slot, extra: extra, references: true)
    page.insert(at: index, step.key, step.keyCount, valueCount: 1, branch)
      .storeBytes(of: referenceTag, as: UInt8.self)
    page.header.pointee.total &+= 1
    return true
  }

  /// Replaces a leaf in the leaf page in a slot that no other value shares.
  ///
  /// - Parameter mayMerge: whether the page has neighbours with which it is merged when it is nearly empty.
  /// - Returns: false if the page would have to be split or merged, or its priorities counted.
  @inline(__always)
  private static func replace(
    _ new: UnsafeRawBufferPointer, in slot: UnsafeMutablePointer<Page?>, at index: Int,
    mayMerge: Bool
  ) -> Bool {
    let page = PageAccess(slot)
    if page.hasPriorities { return false }
    let growth = new.count &- page.value(index).count
    let byteCount = page.byteCount &+ growth
    if growth > 0, byteCount > page.byteCountMax { return false }
    if growth < 0, mayMerge, byteCount < page.byteCountMax / 4 { return false }
    let target = PageAccess.writable(
      slot, extra: max(growth, 0), references: page.hasReferences
    ).replace(at: index, valueCount: new.count, nil)
    target.copyMemory(from: new.baseAddress.unsafelyUnwrapped, byteCount: new.count)
    return true
  }
}
