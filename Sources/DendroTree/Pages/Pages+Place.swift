extension Pages {
  /// Where an edit ended, if it was made in place.
  struct Place {
    /// The slot of the root page of the branch that has the leaf.
    private(set) var branch: UnsafeMutablePointer<Page?>?
    /// Where the last key begins in the stored path.
    private(set) var key: UnsafeRawPointer?

    /// Notes the branch at which a path ends.
    mutating func set(_ branch: UnsafeMutablePointer<Page?>, behind step: PathStep) {
      self.branch = branch
      key = step.rest
    }

    @inline(__always)
    mutating func set(_ branch: UnsafeMutablePointer<Page?>, _ step: PathStep) {
      self.branch = branch
      key = step.key - Varint.byteCount(step.keyCount)
    }
  }
}
