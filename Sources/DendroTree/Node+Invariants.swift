/// A violated invariant of a tree, which means that this module has a bug.
package struct InvariantViolation: Error, CustomStringConvertible, Sendable {
  package var path: Path
  package var problem: String
  package var description: String { "\(path): \(problem)" }
}

extension Node {
  /// Checks the whole tree: the order of keys, the counts and height of pages, every packed byte,
  /// the validity of keys and priorities, and that no node below the root is empty.
  ///
  /// - Parameter isCompact: whether also no two neighbouring pages may be nearly empty. They may if one of them
  ///   became so while the other was not read from its file.
  /// - Throws: the first violation found.
  /// - Complexity: O(nodes). Nothing is allocated for a node.
  package func checkInvariants(isCompact: Bool = false) throws(InvariantViolation) {
    if let priority = ownPriority {
      if isEmpty { throw PageChecker.fail("an empty node has a priority") }
      if !priority.isValidPriority {
        throw PageChecker.fail("a priority is neither a number nor a string")
      }
    }
    guard case .page(let page) = content else { return }
    defer { withExtendedLifetime(page) {} }
    try PageChecker.check(page.access, isCompact: isCompact)
  }
}

/// Checks the pages of one branch, and what they refer to.
///
/// A violation is thrown with its path below the branch; on its way up it gets the keys above.
private struct PageChecker {
  typealias Bytes = (start: UnsafeRawPointer, count: Int)

  private let isCompact: Bool
  private var leafHeight: Int?
  private var last: Bytes?

  static func fail(_ problem: String) -> InvariantViolation {
    InvariantViolation(path: .root, problem: problem)
  }

  /// Checks a branch by its root page, or a box.
  static func check(_ page: PageAccess, isCompact: Bool) throws(InvariantViolation) {
    if page.kind == .box { return try checkBox(page, isCompact: isCompact) }
    var checker = PageChecker(isCompact: isCompact)
    try checker.check(page, low: nil, high: nil, isRoot: true)
  }

  private static func checkExtent(_ page: PageAccess) throws(InvariantViolation) {
    let header = page.header.pointee
    if page.byteCount > Int(header.capacity) { throw fail("entries and slots overlap") }
    if header.capacity % 8 != 0 { throw fail("slots are not aligned") }
    if page.count == 0 { throw fail("a page is empty") }
    if page.offset(0) != 0 { throw fail("the first entry is not at the start") }
    for index in 0..<page.count {
      let key = page.key(index)
      let end = page.offset(index + 1)
      let value = key.start + key.count - UnsafeRawPointer(page.tail)
      if page.offset(index) >= end || value > end || key.count > Limits.keyBytes {
        throw fail("entry \(index) overlaps its neighbours")
      }
    }
  }

  private static func checkBox(_ page: PageAccess, isCompact: Bool) throws(InvariantViolation) {
    try checkExtent(page)
    if page.count != 1 || page.total != 0 || page.hasPriorities {
      throw fail("a box does not have exactly one entry")
    }
    if page.value(0).count <= Page.inlineValueByteCountMax {
      throw fail("a box has a value that fits into a page")
    }
    try checkValue(page, 0, isCompact: isCompact)
  }

  /// Checks that a value is a packed leaf, or a reference with or without a priority, and what it refers to.
  private static func checkValue(
    _ page: PageAccess, _ index: Int, isCompact: Bool
  ) throws(InvariantViolation) {
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
      try check(target, isCompact: isCompact)
    } else {
      let end =
        PackedScalar.end(validating: bytes, at: offset)
        ?? PackedScalar.bytesEnd(validating: bytes, at: offset)
      if end != bytes.count {
        throw fail("entry \(index) is not a packed leaf")
      }
      if page.hasReferences && page.reference(index).pointee != nil {
        throw fail("a leaf has a reference")
      }
    }
  }

  private mutating func check(
    _ page: PageAccess, low: Bytes?, high: Bytes?, isRoot: Bool, height: Int = 0
  ) throws(InvariantViolation) {
    try Self.checkExtent(page)
    if page.hasReferences { page.prefetchReferencedPages() }
    let byteCountMax =
      page.kind == .inner ? PageImageWriter.pageByteCountMax : 2 * Page.plainByteCountMax
    if page.byteCount > byteCountMax { throw Self.fail("a page is too full") }
    switch page.kind {
    case .box, .stub: throw Self.fail("a box is among the children")
    case .leaf:
      if page.total != page.count { throw Self.fail("a leaf page has a wrong total") }
      if leafHeight ?? height != height { throw Self.fail("leaf pages are not on one level") }
      leafHeight = height
      if page.hasPriorities != (0..<page.count).contains(where: page.hasPriority) {
        throw Self.fail("a leaf page has a wrong flag for priorities")
      }
      for index in 0..<page.count {
        let key = page.key(index)
        try check(key, low: low, high: high, index)
        do throws(InvariantViolation) {
          try Self.checkValue(page, index, isCompact: isCompact)
        } catch {
          throw InvariantViolation(
            path: Path.root.appending(Self.key(key)).appending(error.path), problem: error.problem)
        }
      }
    case .inner: try checkInner(page, low: low, high: high, isRoot: isRoot, height: height)
    }
  }

  private mutating func check(
    _ key: Bytes, low: Bytes?, high: Bytes?, _ index: Int
  ) throws(InvariantViolation) {
    func precedes(_ a: Bytes, _ b: Bytes) -> Bool {
      compareBytes(a.start, a.count, b.start, b.count) < 0
    }
    guard
      KeyCoding.isValid(orderedBytes: UnsafeRawBufferPointer(start: key.start, count: key.count))
    else { throw Self.fail("entry \(index) has an illegal key") }
    if let last, !precedes(last, key) {
      throw Self.fail("\(Self.key(key)) does not come after \(Self.key(last))")
    }
    if let low, precedes(key, low) { throw Self.fail("\(Self.key(key)) is before its page") }
    if let high, !precedes(key, high) { throw Self.fail("\(Self.key(key)) is after its page") }
    last = key
  }

  private mutating func checkInner(
    _ page: PageAccess, low: Bytes?, high: Bytes?, isRoot: Bool, height: Int
  ) throws(InvariantViolation) {
    if isRoot && page.count < 2 { throw Self.fail("the root page has only one child page") }
    var total = 0
    var hasPriorities = false
    var last: PageAccess?
    for index in 0..<page.count {
      guard page.hasReferences, page.reference(index).pointee != nil else {
        throw Self.fail("an inner page lacks a reference")
      }
      let child = PageAccess(page.reference(index))
      try check(
        child, low: index == 0 ? low : page.key(index),
        high: index + 1 < page.count ? page.key(index + 1) : high, isRoot: false,
        height: height + 1)
      total += child.total
      hasPriorities = hasPriorities || child.hasPriorities
      // Two such pages would have been merged when the second one became nearly empty.
      if isCompact, let last, last.isNearlyEmpty, child.isNearlyEmpty,
        last.hasReferences == child.hasReferences
      {
        throw Self.fail("two neighbouring pages are nearly empty")
      }
      last = child
    }
    if page.total != total { throw Self.fail("an inner page has a wrong total") }
    if page.hasPriorities != hasPriorities {
      throw Self.fail("an inner page has a wrong flag for priorities")
    }
  }

  private static func key(_ bytes: Bytes) -> Key {
    Key(trustedOrderedBytes: UnsafeRawBufferPointer(start: bytes.start, count: bytes.count))
  }
}
