/// The B-tree of the children of one branch: a single leaf page, or several below inner pages.
///
/// A page is split when it outgrows `byteCountMax`: in the middle, or before the new entry if that is the
/// last one, so that keys which are inserted in order leave full pages. A page is merged with a
/// neighbour when a removal leaves it less than a quarter full.
enum Pages {
  /// The tag of a reference in an entry's value, after the priority if there is one. The reference itself
  /// is in the slot.
  static let referenceTag: UInt8 = 0x31

  /// What an assignment did to a page, as far as the page above must know.
  struct Outcome {
    /// The change in the number of children.
    var delta = 0
    /// The page that was split off to the right, and the lower bound of the keys in it.
    var split: (key: Key, page: Page)?
    /// Whether the page was only split, so that the assignment must be tried again.
    var mustRetry = false
    /// Whether the page got its first priority or lost its last one.
    var priorities = PriorityChange.none
  }

  enum PriorityChange { case none, appeared, vanished }

  /// Makes `new` the node at a path below the branch whose root page is in `slot`. When the last child is
  /// removed, the slot becomes nil.
  static func assign(
    _ slot: UnsafeMutablePointer<Page?>, _ step: PathStep, _ new: borrowing AssignedValue
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
    if outcome.mustRetry { return assign(slot, step, new) }
    if outcome.split != nil { return }
    while true {
      let root = PageAccess(unresolved: slot)
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
    _ slot: UnsafeMutablePointer<Page?>, _ step: PathStep, _ new: borrowing AssignedValue
  ) -> Outcome {
    let page = PageAccess.writable(slot)
    if page.kind == .inner {
      let index = page.childIndex(step.key, step.keyCount)
      var outcome = assignInPage(page.reference(index), step, new)
      page.header.pointee.total = UInt32(truncatingIfNeeded: page.total &+ outcome.delta)
      if outcome.priorities != .none {
        outcome.priorities = propagate(outcome.priorities, to: page)
      }
      if let split = outcome.split {
        outcome.split = insertChild(slot, at: index + 1, split.key, split.page)
      } else if PageAccess(unresolved: page.reference(index)).isNearlyEmpty {
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
      outcome = assignEntry(slot, index, found, step, .node(child))
    } else {
      outcome = assignEntry(slot, index, found, step, new)
    }
    return outcome
  }

  /// Inserts, replaces or removes one entry of a leaf page.
  private static func assignEntry(
    _ slot: UnsafeMutablePointer<Page?>, _ index: Int, _ found: Bool, _ step: PathStep,
    _ new: borrowing AssignedValue
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
      outcome.mustRetry = true
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

  /// Removes an entry of a writable leaf page.
  private static func remove(_ page: PageAccess, _ index: Int, _ outcome: inout Outcome) {
    let losesPriority = page.hasPriorities && page.hasPriority(index)
    page.remove(at: index)
    page.header.pointee.total &-= 1
    outcome.delta = -1
    guard losesPriority else { return }
    page.findPriorities()
    if !page.hasPriorities { outcome.priorities = .vanished }
  }

  /// Updates the flag of an inner page after a change in a page below it, and returns the change of the
  /// inner page.
  private static func propagate(
    _ change: PriorityChange, to page: PageAccess
  ) -> PriorityChange {
    let hadPriorities = page.hasPriorities
    if change == .appeared {
      page.header.pointee.hasPriorities = true
    } else {
      page.findPriorities()
    }
    return page.hasPriorities == hadPriorities ? .none : change
  }
}
