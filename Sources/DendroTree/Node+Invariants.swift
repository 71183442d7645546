/// A violated invariant of a tree, which means that this module has a bug.
package struct InvariantViolation: Error, CustomStringConvertible, Sendable {
  package var path: Path
  package var problem: String
  package var description: String { "\(path): \(problem)" }
}

extension Node {
  /// Checks the whole tree: the order of keys, the counts, fill and height of pages, every packed byte,
  /// the validity of keys and priorities, and that no node below the root is empty.
  ///
  /// - Throws: `InvariantViolation` for the first violation found.
  /// - Complexity: O(nodes).
  package func checkInvariants() throws {
    try check(at: .root)
  }

  private func check(at path: Path) throws {
    func fail(_ problem: String) -> InvariantViolation {
      InvariantViolation(path: path, problem: problem)
    }
    if let priority = ownPriority {
      if isEmpty { throw fail("an empty node has a priority") }
      if !priority.isValidPriority { throw fail("a priority is neither a number nor a string") }
    }
    guard case .page(let page) = content else { return }
    if page.access.kind == .box { return try PageChecker(path: path).checkBox(page.access) }
    var checker = PageChecker(path: path)
    try checker.check(page.access, low: nil, high: nil, isRoot: true)
    try forEachChild { key, child in
      if child.isEmpty { throw fail("the child \(key) is empty") }
      try child.check(at: path.appending(key))
    }
  }
}

private struct PageChecker {
  let path: Path
  var leafHeight: Int?
  var lastKey: Key?

  init(path: Path) { self.path = path }

  func fail(_ problem: String) -> InvariantViolation {
    InvariantViolation(path: path, problem: problem)
  }

  func checkExtent(_ page: PageAccess) throws {
    let header = page.header.pointee
    if page.byteCount > Int(header.capacity) { throw fail("entries and slots overlap") }
    if header.capacity % 8 != 0 { throw fail("slots are not aligned") }
    if page.count == 0 { throw fail("a page is empty") }
    if page.offset(0) != 0 { throw fail("the first entry is not at the start") }
    for index in 0..<page.count {
      let key = page.key(index)
      let end = page.offset(index + 1)
      let value = page.valueStart(index) - UnsafeRawPointer(page.tail)
      if page.offset(index) >= end || value > end || key.count > Limits.keyBytes {
        throw fail("entry \(index) overlaps its neighbours")
      }
    }
  }

  func checkBox(_ page: PageAccess) throws {
    try checkExtent(page)
    if page.count != 1 || page.total != 0 || page.hasPriorities {
      throw fail("a box does not have exactly one entry")
    }
    if page.value(0).count <= Page.inlineValueByteCountMax {
      throw fail("a box has a value that fits into a page")
    }
    try checkValue(page, 0)
  }

  /// Checks that a value is a packed leaf, or a reference with or without a priority.
  func checkValue(_ page: PageAccess, _ index: Int) throws {
    let bytes = UnsafeRawBufferPointer(page.value(index))
    var offset = 0
    if bytes.first == PackedScalar.priorityTag {
      offset = 1
      guard let priority = PackedScalar.read(bytes, at: &offset), priority.isValidPriority else {
        throw fail("entry \(index) has no valid priority")
      }
    }
    if offset < bytes.count && bytes[offset] == Pages.referenceTag {
      if offset + 1 != bytes.count || !page.hasReferences || page.reference(index).pointee == nil {
        throw fail("entry \(index) is not a complete reference")
      }
      let target = PageAccess(page.reference(index))
      if target.kind == .box && (page.kind == .box || offset > 0) {
        throw fail("a box is in a box or beside a priority")
      }
      if target.kind == .box { try checkBox(target) }
    } else {
      if PackedScalar.end(validating: bytes, at: offset) != bytes.count {
        throw fail("entry \(index) is not a packed leaf")
      }
      if page.hasReferences && page.reference(index).pointee != nil {
        throw fail("a leaf has a reference")
      }
    }
  }

  mutating func check(
    _ page: PageAccess, low: Key?, high: Key?, isRoot: Bool, height: Int = 0
  ) throws {
    try checkExtent(page)
    if page.byteCount > 2 * Page.plainByteCountMax { throw fail("a page is too full") }
    switch page.kind {
    case .box, .stub: throw fail("a box is among the children")
    case .leaf:
      if page.total != page.count { throw fail("a leaf page has a wrong total") }
      if leafHeight ?? height != height { throw fail("leaf pages are not on one level") }
      leafHeight = height
      if page.hasPriorities != (0..<page.count).contains(where: page.hasPriority) {
        throw fail("a leaf page has a wrong flag for priorities")
      }
      for index in 0..<page.count {
        let raw = page.key(index)
        let bytes = UnsafeRawBufferPointer(start: raw.start, count: raw.count)
        guard let key = Key(orderedBytes: bytes) else {
          throw fail("entry \(index) has an illegal key")
        }
        if let lastKey, !(lastKey < key) { throw fail("\(key) does not come after \(lastKey)") }
        if let low, key < low { throw fail("\(key) is before its page") }
        if let high, !(key < high) { throw fail("\(key) is after its page") }
        lastKey = key
        try checkValue(page, index)
      }
    case .inner:
      if isRoot && page.count < 2 { throw fail("the root page has only one child page") }
      var total = 0
      var hasPriorities = false
      var last: PageAccess?
      for index in 0..<page.count {
        guard page.hasReferences, page.reference(index).pointee != nil else {
          throw fail("an inner page lacks a reference")
        }
        let child = PageAccess(page.reference(index))
        try check(
          child, low: index == 0 ? low : page.keyValue(index),
          high: index + 1 < page.count ? page.keyValue(index + 1) : high, isRoot: false,
          height: height + 1)
        total += child.total
        hasPriorities = hasPriorities || child.hasPriorities
        // Two such pages would have been merged when the second one became nearly empty.
        if let last, last.isNearlyEmpty, child.isNearlyEmpty,
          last.hasReferences == child.hasReferences
        {
          throw fail("two neighbouring pages are nearly empty")
        }
        last = child
      }
      if page.total != total { throw fail("an inner page has a wrong total") }
      if page.hasPriorities != hasPriorities {
        throw fail("an inner page has a wrong flag for priorities")
      }
    }
  }
}

extension Node {
  /// The memory of all pages. A page with several references in the tree is counted once for each; one that
  /// was not read from its file yet, not at all.
  ///
  /// - Complexity: O(nodes).
  package func memory() -> TreeMemory {
    var memory = TreeMemory()
    if let page = branch {
      memory.add(page.unresolved)
      withExtendedLifetime(page) {}
    } else {
      memory.leafCount = isEmpty ? 0 : 1
    }
    return memory
  }
}

extension TreeMemory {
  fileprivate mutating func add(_ page: PageAccess) {
    pageCount += 1
    byteCount += Page.overhead + Int(page.header.pointee.capacity)
    if page.kind == .stub {
      if let page = PageStub(page.header).loadedPage { add(page) }
      return
    }
    for index in 0..<page.count {
      if page.hasReferences, page.reference(index).pointee != nil {
        add(PageAccess(unresolved: page.reference(index)))
      } else {
        leafCount += 1
      }
    }
    // A box without a reference is one leaf, which the loop counted as its entry.
  }
}
