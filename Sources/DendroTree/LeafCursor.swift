/// Where the last edit of a leaf ended, so that the edit of its sibling need not go down from the root.
///
/// It is for edits that follow each other without a gap, those of one update or of one record of the log: from
/// the first edit on, the tree must be neither changed nor copied in part in any other way before `forget` is
/// called. All pages on the way to the last leaf are without other references then, and where they lie is known.
/// A copy of the whole tree is noticed.
package struct LeafCursor: ~Copyable {
  private static let pathByteCountMax = 96

  /// The slot of the root page of the branch in which the last edit was.
  private var branch: UnsafeMutablePointer<Page?>?
  /// The stored path of that branch.
  private var path = InlineArray<96, UInt8>(repeating: 0)
  private var pathByteCount = 0

  package init() {}

  /// To be called before the tree is changed in any other way than by `Node.exchange` with this cursor.
  package mutating func forget() { branch = nil }

  /// The slot of the branch and the rest of a path, where the path is that of a child of the branch.
  func position(
    of storedPath: UnsafeRawBufferPointer
  ) -> (branch: UnsafeMutablePointer<Page?>, step: PathStep)? {
    guard let branch, storedPath.count > pathByteCount, let start = storedPath.baseAddress else {
      return nil
    }
    let isBelow = path.span.withUnsafeBytes {
      compareBytes($0.baseAddress.unsafelyUnwrapped, pathByteCount, start, pathByteCount) == 0
    }
    guard isBelow else { return nil }
    let step = PathStep(start + pathByteCount, end: start + storedPath.count)
    return step.hasRest ? nil : (branch, step)
  }

  /// Whether the branch is where the path leads from `root`, whose pages on the way are not shared.
  func isRight(from root: inout Page?) -> Bool {
    guard let branch else { return false }
    return withUnsafeMutablePointer(to: &root) { root in
      var slot = root
      var offset = 0
      return path.span.withUnsafeBytes { path in
        while offset < pathByteCount {
          let step = PathStep(
            stored: UnsafeRawBufferPointer(rebasing: path[offset..<pathByteCount]))
          guard isKnownUniquelyReferenced(&slot.pointee) else { return false }
          var page = PageAccess(slot)
          while page.kind == .inner {
            slot = page.reference(page.childIndex(step.key, step.keyCount))
            guard isKnownUniquelyReferenced(&slot.pointee) else { return false }
            page = PageAccess(slot)
          }
          let (index, found) = page.find(step.key, step.keyCount)
          guard found, let next = page.branchReference(index) else { return false }
          slot = next
          offset += step.rest - UnsafeRawPointer(path.baseAddress.unsafelyUnwrapped + offset)
        }
        return slot == branch
      }
    }
  }

  /// Notes where an edit ended.
  ///
  /// - Parameters:
  ///   - place: nothing is noted where it is that of a child of the root.
  ///   - storedPath: the path of the edit.
  mutating func note(_ place: Pages.Place, in storedPath: UnsafeRawBufferPointer) {
    branch = nil
    guard let found = place.branch, let key = place.key, let start = storedPath.baseAddress else {
      return
    }
    let byteCount = key - start
    guard byteCount > 0, byteCount <= Self.pathByteCountMax else { return }
    var bytes = path.mutableSpan
    bytes.withUnsafeMutableBytes {
      $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: storedPath[..<byteCount]))
    }
    pathByteCount = byteCount
    branch = found
  }
}

extension Pages {
  /// Where an edit ended, if it was made in place.
  struct Place {
    /// The slot of the root page of the branch that has the leaf.
    private(set) var branch: UnsafeMutablePointer<Page?>?
    /// Where the last key begins in the stored path.
    private(set) var key: UnsafeRawPointer?

    @inline(__always)
    mutating func set(_ branch: UnsafeMutablePointer<Page?>, _ step: PathStep) {
      self.branch = branch
      key = step.key - Varint.byteCount(step.keyCount)
    }
  }
}

extension Node {
  /// `exchange(_:at:replaced:)`, which begins where the last edit ended if it is of a sibling.
  package mutating func exchange(
    _ edit: LeafEdit, at storedPath: UnsafeRawBufferPointer, _ cursor: inout LeafCursor,
    replaced: (UnsafeRawBufferPointer) -> Void
  ) -> LeafEdit.Outcome {
    guard let sibling = cursor.position(of: storedPath) else {
      cursor.forget()
      var place = Pages.Place()
      let outcome = exchange(edit, at: storedPath, &place, replaced)
      cursor.note(place, in: storedPath)
      return outcome
    }
    if case .set(let packed) = edit, packed.count > LeafEdit.byteCountMax {
      cursor.forget()
      return .declined
    }
    var root = takeBranch()
    guard root != nil else {
      preconditionFailure("the tree was changed, and its cursor not asked to forget")
    }
    var place = Pages.Place()
    let outcome: LeafEdit.Outcome
    if isKnownUniquelyReferenced(&root) {
      assert(
        cursor.isRight(from: &root), "the tree was changed, and its cursor not asked to forget")
      outcome = Pages.exchange(sibling.branch, sibling.step, edit, &place, replaced)
    } else {
      outcome = Pages.exchange(&root, PathStep(stored: storedPath), edit, &place, replaced)
    }
    guard let root else { preconditionFailure("no edit removes a page") }
    content = .page(root)
    if place.branch != sibling.branch { cursor.forget() }
    return outcome
  }
}
