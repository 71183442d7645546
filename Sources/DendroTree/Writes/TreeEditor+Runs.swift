// Runs of leaves that are siblings.
extension TreeEditor {
  /// Begins a run with the set of a leaf.
  ///
  /// - Parameters:
  ///   - path: the leaf's, in `path`.
  ///   - parentByteCount: the bytes of it that lead to the parent, by `runParentByteCount`.
  ///   - value: where its packed form begins.
  /// - Returns: false if the leaf is not short; nothing was done then.
  mutating func beginRun(
    _ path: UnsafeRawBufferPointer, below parentByteCount: Int, _ value: UnsafeRawPointer
  ) -> Bool {
    run.begin(below: parentByteCount)
    return addToRun(path, value)
  }

  /// The bytes of a path, in `path`, that lead to the parent of a leaf; nil if that is the root, and if its branch is
  /// known, so that a run would gain nothing.
  func runParentByteCount(of path: UnsafeRawBufferPointer) -> Int? {
    let start = UnsafeRawPointer(self.path)
    guard page != nil, !path.isEmpty,
      branch == nil || siblingStep(start, end: start + path.count) == nil
    else { return nil }
    var parentByteCount = 0
    var step = PathStep(stored: path)
    while step.hasRest {
      parentByteCount = step.rest - start
      step = step.next
    }
    return parentByteCount > 0 ? parentByteCount : nil
  }

  /// Adds the set of a leaf to the run.
  ///
  /// - Returns: false if it is not the set of a short leaf of the same branch, if the run has one with its key, and if
  ///   there is no room; nothing was done then.
  mutating func addToRun(_ path: UnsafeRawBufferPointer, _ value: UnsafeRawPointer) -> Bool {
    let parentByteCount = run.parentByteCount
    let leafByteCount = BodyBytes.shortLeafByteCount(value)
    guard leafByteCount > 0, path.count > parentByteCount,
      case let start = path.baseAddress.unsafelyUnwrapped,
      compareBytes(start, parentByteCount, self.path, parentByteCount) == 0,
      case let step = PathStep(start + parentByteCount, end: start + path.count), !step.hasRest
    else { return false }
    return run.insert(
      storedKey: UnsafeRawBufferPointer(rebasing: path[parentByteCount...]),
      leaf: UnsafeRawBufferPointer(start: value, count: leafByteCount))
  }

  /// Puts the run into the tree: as one page, if its branch is not there yet.
  mutating func finishRun(_ note: Noting) {
    if run.isEmpty { return }
    let parent = UnsafeRawBufferPointer(start: path, count: run.parentByteCount)
    if run.count == 1 || !exchange(.insertEntries(run.entries), at: parent, note) {
      setOneByOne(run.entries, below: parent.count, note)
    }
    run.removeAll()
  }

  /// Puts the run of writes before into the tree.
  mutating func finishRun() {
    page = tree.takeBranch()
    defer { putBack() }
    finishRun { _, _ in }
  }

  private mutating func setOneByOne(
    _ leaves: PageEntries, below parentByteCount: Int, _ note: Noting
  ) {
    let value = Value(nil, WriteFacts())
    let start = leaves.bytes.baseAddress.unsafelyUnwrapped
    for offset in leaves.offsets where failure == nil {
      let entry = start + Int(offset)
      let (keyByteCount, prefix) = Varint.readTrusted(entry)
      let pathByteCount = parentByteCount + prefix + keyByteCount
      (path + parentByteCount).copyMemory(from: entry, byteCount: prefix + keyByteCount)
      var next = entry + prefix + keyByteCount
      change(
        .set, at: UnsafeRawBufferPointer(start: path, count: pathByteCount), &next, value, note)
    }
  }
}
