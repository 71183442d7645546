/// A key of a path and what follows it, in stored bytes that are known to be valid.
struct PathStep {
  let key: UnsafeRawPointer
  let keyCount: Int
  /// The rest of the path, if `hasRest`.
  let rest: UnsafeRawPointer
  let end: UnsafeRawPointer

  @inline(__always)
  init(_ start: UnsafeRawPointer, end: UnsafeRawPointer) {
    let (count, prefix) = Varint.readTrusted(start)
    key = start + prefix
    keyCount = count
    rest = start + prefix + count
    self.end = end
  }

  /// A path of one key.
  @inline(__always)
  init(key bytes: UnsafeRawBufferPointer) {
    key = bytes.baseAddress.unsafelyUnwrapped
    keyCount = bytes.count
    rest = key + bytes.count
    end = rest
  }

  @inline(__always) var hasRest: Bool { rest < end }
  @inline(__always) var next: PathStep { PathStep(rest, end: end) }
  var restBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: rest, count: end - rest) }
}

/// What a place is made to be.
enum Assigned {
  case node(Node)
  /// A valid packed leaf.
  case packed(UnsafeRawBufferPointer)

  var isEmpty: Bool { if case .node(let node) = self { node.isEmpty } else { false } }

  var node: Node {
    switch self {
    case .node(let node): node
    case .packed(let bytes): Pages.leaf(bytes.baseAddress.unsafelyUnwrapped)
    }
  }
}

/// The B-tree of one branch's children: a leaf page while small, inner pages above it when wide.
///
/// Pages split when they outgrow `byteCountMax`: in the middle, or, when the new entry is the
/// last, before it, so that keys that come in order leave full pages behind. Pages merge with a
/// neighbour when they are left less than a quarter full.
enum Pages {
  /// Stands for a reference in an entry's value, after the priority if there is one.
  static let referenceTag: UInt8 = 0x31

  /// What an assignment did to a page, for the page above.
  struct Outcome {
    /// The change in the number of children.
    var delta = 0
    /// A page that was split off to the right, and the least key that may be in it.
    var split: (key: Key, page: Page)?
    /// Whether that was all, and the assignment is still to be made.
    var isPending = false
    /// Whether the page has children with priorities now and had none, or the other way round.
    var priorities = PriorityShift.none
  }

  enum PriorityShift { case none, appeared, vanished }

  /// Makes `new` the child at a path, in the branch whose root page is in `slot`; empties the slot
  /// with the last child.
  static func assign(
    _ slot: UnsafeMutablePointer<Page?>, _ step: PathStep, _ new: borrowing Assigned
  ) {
    let outcome = assignInPage(slot, step, new)
    if let split = outcome.split {
      let root = Page.make(.inner, hasReferences: true, capacity: 64 + split.key.orderedByteCount)
      let access = root.access
      withUnsafeBytes(of: UInt8(0)) { none in
        _ = access.insert(
          at: 0, none.baseAddress.unsafelyUnwrapped, 0, valueCount: 0, slot.pointee)
      }
      split.key.withOrderedBytes { key in
        _ = access.insert(
          at: 1, key.baseAddress.unsafelyUnwrapped, key.count, valueCount: 0, split.page)
      }
      access.recount()
      slot.pointee = root
    }
    if outcome.isPending { return assign(slot, step, new) }
    if outcome.split != nil { return }
    while true {
      let root = PageAccess(slot)
      if root.count == 0 {
        slot.pointee = nil
        return
      }
      guard root.kind == .inner, root.count == 1 else { return }
      let only = root.reference(0).pointee
      slot.pointee = only
    }
  }

  private static func assignInPage(
    _ slot: UnsafeMutablePointer<Page?>, _ step: PathStep, _ new: borrowing Assigned
  ) -> Outcome {
    let page = PageAccess.writable(slot)
    if page.kind == .inner {
      let index = page.childIndex(step.key, step.keyCount)
      var outcome = assignInPage(page.reference(index), step, new)
      page.header.pointee.total = UInt32(truncatingIfNeeded: page.total &+ outcome.delta)
      if outcome.priorities != .none { outcome.priorities = passOn(outcome.priorities, to: page) }
      if let split = outcome.split {
        outcome.split = insertChild(slot, at: index + 1, split.key, split.page)
      } else if PageAccess(page.reference(index)).isNearlyEmpty {
        mergeChild(slot, at: index)
      }
      return outcome
    }
    let (index, found) = page.find(step.key, step.keyCount)
    var outcome = Outcome()
    if step.hasRest {
      if found, let branch = page.branchReference(index) {
        assign(branch, step.next, new)
        if branch.pointee == nil { remove(page, index, &outcome) }
        return outcome
      }
      var child = found ? page.node(index) : .empty
      let wasEmpty = child.isEmpty
      child.assign(new, at: step.restBytes)
      if child.isEmpty && wasEmpty { return outcome }
      outcome = put(slot, index, found, step, .node(child))
    } else {
      outcome = put(slot, index, found, step, new)
    }
    return outcome
  }

  /// Inserts, replaces or removes one entry of a leaf page.
  private static func put(
    _ slot: UnsafeMutablePointer<Page?>, _ index: Int, _ found: Bool, _ step: PathStep,
    _ new: borrowing Assigned
  ) -> Outcome {
    var outcome = Outcome()
    if new.isEmpty {
      guard found else { return outcome }
      remove(PageAccess(slot), index, &outcome)
      return outcome
    }
    let value = PageValue(new)
    if value.reference != nil, PageAccess(slot).isTooFullForReferences {
      outcome.split = split(PageAccess.writable(slot), isAppend: false)
      outcome.isPending = true
      return outcome
    }
    let page: PageAccess
    var losesPriority = false
    if found {
      losesPriority =
        PageAccess(slot).hasPriorities && !value.hasPriority && PageAccess(slot).hasPriority(index)
      let growth = value.byteCount - PageAccess(slot).value(index).count
      page = PageAccess.writable(
        slot, extra: max(growth, 0), references: value.reference != nil)
      value.write(to: page.replace(at: index, valueCount: value.byteCount, value.reference))
    } else {
      let extra = PageAccess.entryByteCount(keyCount: step.keyCount, valueCount: value.byteCount)
      page = PageAccess.writable(slot, extra: extra, references: value.reference != nil)
      value.write(
        to: page.insert(
          at: index, step.key, step.keyCount, valueCount: value.byteCount, value.reference))
      page.header.pointee.total &+= 1
      outcome.delta = 1
    }
    if value.hasPriority && !page.hasPriorities {
      page.header.pointee.hasPriorities = true
      outcome.priorities = .appeared
    } else if losesPriority {
      page.findPriorities()
      if !page.hasPriorities { outcome.priorities = .vanished }
    }
    if page.byteCount > page.byteCountMax && page.count > 1 {
      outcome.split = split(page, isAppend: !found && index == page.count - 1)
    }
    return outcome
  }

  /// Removes an entry of a leaf page, which is writable.
  private static func remove(_ page: PageAccess, _ index: Int, _ outcome: inout Outcome) {
    let losesPriority = page.hasPriorities && page.hasPriority(index)
    page.remove(at: index)
    page.header.pointee.total &-= 1
    outcome.delta = -1
    guard losesPriority else { return }
    page.findPriorities()
    if !page.hasPriorities { outcome.priorities = .vanished }
  }

  /// What became of the priorities in an inner page, below which they appeared or vanished in a page.
  private static func passOn(_ shift: PriorityShift, to page: PageAccess) -> PriorityShift {
    let hadPriorities = page.hasPriorities
    if shift == .appeared {
      page.header.pointee.hasPriorities = true
    } else {
      page.findPriorities()
    }
    return page.hasPriorities == hadPriorities ? .none : shift
  }

  /// Inserts a reference into an inner page, which then may have to be split in turn.
  private static func insertChild(
    _ slot: UnsafeMutablePointer<Page?>, at index: Int, _ key: Key, _ child: Page
  ) -> (key: Key, page: Page)? {
    let extra = PageAccess.entryByteCount(keyCount: key.orderedByteCount, valueCount: 0)
    let page = PageAccess.writable(slot, extra: extra, references: true)
    key.withOrderedBytes { key in
      _ = page.insert(at: index, key.baseAddress.unsafelyUnwrapped, key.count, valueCount: 0, child)
    }
    // Either half may be small beside a small neighbour.
    mergeChild(slot, at: index)
    mergeChild(slot, at: index - 1)
    guard page.byteCount > page.byteCountMax, page.count > 2 else { return nil }
    return split(page, isAppend: index == page.count - 1)
  }

  private static func split(_ page: PageAccess, isAppend: Bool) -> (key: Key, page: Page) {
    var index = page.count - 1
    if !isAppend || page.offset(index) + index * page.stride > Page.plainByteCountMax {
      // The cut that leaves both halves most alike.
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
    let first = page.key(index)
    var keyCount = first.count
    if page.kind == .leaf {
      // As much of the key as tells it from the one before.
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

  /// Removes an empty page from the inner page in `slot`, or merges a nearly empty one with its
  /// neighbours as long as both fit into one.
  private static func mergeChild(_ slot: UnsafeMutablePointer<Page?>, at index: Int) {
    let page = PageAccess(slot)
    var index = index
    if PageAccess(page.reference(index)).count == 0 {
      page.remove(at: index)
      // Its neighbours are neighbours now.
      index = min(index, page.count - 1)
    }
    while index >= 0, PageAccess(page.reference(index)).isNearlyEmpty {
      let left = mayMerge(page, at: index - 1) ? index - 1 : index
      if left == index, !mayMerge(page, at: index) { return }
      let seam = PageAccess(page.reference(left)).count
      append(page.reference(left + 1), page.key(left + 1), to: page.reference(left))
      page.remove(at: left + 1)
      if PageAccess(page.reference(left)).kind == .inner {
        // The pages that met there had different pages above them.
        mergeChild(page.reference(left), at: seam)
      }
      index = left
    }
  }

  /// Whether the page at `left` and the next one fit into three quarters of one.
  private static func mayMerge(_ page: PageAccess, at left: Int) -> Bool {
    guard left >= 0, left + 1 < page.count else { return false }
    let a = PageAccess(page.reference(left))
    let b = PageAccess(page.reference(left + 1))
    return a.byteCount + b.byteCount <= min(a.byteCountMax, b.byteCountMax) / 4 * 3
  }

  /// Appends the entries of the page in `source`, whose least possible key is `separator`.
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
      // The first key of an inner page is not kept up to date; the one above it is.
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
