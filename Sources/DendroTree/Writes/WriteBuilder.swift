/// Builds one write from values, in one pass, straight into the bytes of its body: made once, on the caller's thread.
///
/// A set is one value: `begin(.set)`, its value, `finish`. An update is several entries: `beginEntry`, its value,
/// `endEntry`, in any order. A value is a scalar, a server value, a tree, or a branch: `beginBranch`, then a key and a
/// value for each child, in any order, `endBranch`. A child without a value is left out, and so is a branch without
/// children.
///
/// Who fills a builder checks values and depth; the builder checks keys, paths, and whether the paths of an update are
/// in conflict. Not thread-safe.
package struct WriteBuilder: ~Copyable {
  let scratch: WriteScratch

  package init() { scratch = WriteScratch.take() }

  deinit { WriteScratch.giveBack(scratch) }

  // MARK: Values

  /// Where the next value begins. What was appended behind it can be removed again.
  package struct Mark {
    let byteCount: Int
    let serverValueCount: Int
    let treeCount: Int
  }

  package var mark: Mark {
    Mark(
      byteCount: scratch.bytes.count, serverValueCount: scratch.serverValueCount,
      treeCount: scratch.trees.count)
  }

  /// Whether nothing was appended since.
  package func isEmpty(since mark: Mark) -> Bool { scratch.bytes.count == mark.byteCount }

  /// Removes what was appended since.
  package func remove(since mark: Mark) {
    scratch.bytes.removeAfter(mark.byteCount)
    scratch.serverValueCount = mark.serverValueCount
    scratch.trees.removeLast(scratch.trees.count - mark.treeCount)
  }

  /// Appends a valid scalar: a finite number, a string of at most `Limits.stringBytes`.
  package func append(_ scalar: Scalar) { BodyWriter.append(scalar, to: scratch.bytes) }

  /// Appends a string of at most `Limits.stringBytes`, which is not copied on the way.
  package func append(_ string: String) {
    var string = string
    string.withUTF8 { utf8 in
      scratch.bytes.append(roomFor: utf8.count &+ 6) { PackedScalar.write(utf8: utf8, to: $0) - $0 }
    }
  }

  package func append(_ integer: Int64) {
    scratch.bytes.append(roomFor: 9) { PackedScalar.write(.integer(integer), to: $0) - $0 }
  }

  /// Appends a finite double.
  package func append(_ double: Double) {
    scratch.bytes.append(roomFor: 9) { PackedScalar.write(.double(double), to: $0) - $0 }
  }

  package func append(_ bool: Bool) { scratch.bytes.append(bool ? 1 : 0) }

  package func append(_ value: Draft.Deferred.Value) {
    scratch.serverValueCount &+= 1
    scratch.bytes.append(value)
  }

  /// Appends a node; nothing if it is empty. A branch stays as it is, pages.
  package func append(_ node: Node) {
    if node.isEmpty { return }
    guard node.isBranch else { return BodyWriter.append(node, to: scratch.bytes) }
    scratch.bytes.append(BodyTag.tree)
    scratch.bytes.appendVarint(scratch.trees.count)
    scratch.trees.append(node)
  }

  // MARK: Priorities

  /// Appends the value of an entry that changes a priority.
  ///
  /// - Parameter append: appends the scalar or the server value.
  package func appendPriority(_ append: () -> Void) {
    scratch.bytes.append(1)
    append()
  }

  /// Appends the value of an entry that removes a priority.
  package func appendNoPriority() { scratch.bytes.append(0) }

  /// Gives a priority to the value that begins at a mark and has none.
  ///
  /// - Parameters:
  ///   - mark: where the value begins.
  ///   - append: appends the scalar or the server value.
  /// - Complexity: O(bytes of the value).
  package func insertPriority<E: Error>(
    at mark: Mark, _ append: () throws(E) -> Void
  ) throws(E) {
    let bytes = scratch.bytes
    let value = bytes.withBytes { Array($0[mark.byteCount...]) }
    bytes.removeAfter(mark.byteCount)
    let isBranch = value.first == BodyTag.branch
    bytes.append(isBranch ? BodyTag.branchWithPriority : PackedScalar.priorityTag)
    try append()
    value.withUnsafeBytes { value in
      bytes.append(UnsafeRawBufferPointer(rebasing: value[(isBranch ? 1 : 0)...]))
    }
  }

  // MARK: Branches

  /// A branch whose children are appended.
  package struct Branch {
    fileprivate let mark: Mark
    /// Where the count of children is.
    fileprivate let countOffset: Int
    fileprivate let firstChild: Int
  }

  /// Begins a branch without a priority.
  package func beginBranch() -> Branch {
    let mark = mark
    scratch.bytes.append(BodyTag.branch)
    return begin(mark)
  }

  private func begin(_ mark: Mark) -> Branch {
    let countOffset = scratch.bytes.count
    // Room for the count of most branches.
    scratch.bytes.append(0)
    return Branch(mark: mark, countOffset: countOffset, firstChild: scratch.childCount)
  }

  /// Takes back a branch that was begun, with what was appended to it.
  package func cancelBranch(_ branch: Branch) {
    scratch.removeChildren(from: branch.firstChild)
    remove(since: branch.mark)
  }

  /// Begins a child, whose value comes next.
  ///
  /// - Returns: false if the key is illegal; nothing was appended then.
  @inline(__always)
  package func beginChild(_ key: String) -> Bool { scratch.beginChild(key) }

  /// Ends a child.
  ///
  /// - Returns: whether it has a value; if not, its key is removed again.
  @inline(__always)
  package func endChild() -> Bool { scratch.endChild() }

  /// Ends a branch: puts its children in order. Of several with the same key the last one stays.
  ///
  /// - Returns: whether it has children; if not, it is removed again.
  package func endBranch(_ branch: Branch) -> Bool {
    if scratch.endBranch(countOffset: branch.countOffset, firstChild: branch.firstChild) {
      return true
    }
    remove(since: branch.mark)
    return false
  }

  /// The value as a tree of values, and the server values in it, in whose places are stand-ins.
  package var node: (node: Node, deferred: [Draft.Deferred]) {
    scratch.bytes.withBytes { bytes in
      let view = WriteView(
        .set, at: UnsafeRawBufferPointer(start: nil, count: 0), body: bytes, facts: WriteFacts())
      guard bytes.count > 0, case let draft = Draft(decoding: view),
        case .set(_, let node) = draft.write
      else { return (.empty, []) }
      return (node, draft.deferred)
    }
  }

  // MARK: Writes

  /// Begins an entry of an update, whose value comes next.
  ///
  /// - Parameters:
  ///   - path: relative to the update's.
  ///   - kind: a set, an increment (the value is its delta) or a change of a priority.
  /// - Returns: the keys of the path.
  /// - Throws: what is wrong with the path.
  package func beginEntry(_ path: String, _ kind: WriteKind = .set) throws(ValidationError) -> Int {
    try scratch.beginEntry(path, kind)
  }

  /// `beginEntry` with a path that is known to be legal.
  package func beginEntry(_ path: Path, _ kind: WriteKind = .set) {
    scratch.beginEntry(path, kind)
  }

  /// Ends an entry. A set without a value removes; one of nothing but a sum becomes an increment.
  package func endEntry() { scratch.endEntry() }

  /// Takes back an entry whose value turned out to be wrong.
  package func cancelEntry() { scratch.cancelEntry() }

  /// Calls `use` with the update of all entries, borrowed for the time of the call.
  ///
  /// - Parameters:
  ///   - base: the path of the update.
  ///   - use: gets the update.
  /// - Throws: as `Write.validate()`.
  package func withUpdate<R>(at base: Path, _ use: (WriteView) -> R) throws(ValidationError) -> R {
    try scratch.withUpdate(at: base, use)
  }

  /// Calls `use` with the set of the value, borrowed for the time of the call: a remove if there is none, an
  /// increment if it is nothing but a sum.
  package func withSet<R>(at path: Path, _ use: (WriteView) -> R) throws(ValidationError) -> R {
    guard path.count <= Limits.depth else {
      throw ValidationError.tooDeep(path, depth: path.count)
    }
    return scratch.withSet(at: path, use)
  }

  /// Calls `use` with the change of a priority, which was appended as a scalar or a server value; nothing removes it.
  package func withPriority<R>(
    at path: Path, _ use: (WriteView) -> R
  ) throws(ValidationError) -> R {
    guard path.count <= Limits.depth else {
      throw ValidationError.tooDeep(path, depth: path.count)
    }
    return scratch.withPriority(at: path, use)
  }
}

extension ValidationError {
  /// A write, at a path or below it, that is too many levels deep.
  static func tooDeep(_ path: Path, depth: Int) -> ValidationError {
    ValidationError(
      .invalidData,
      "The write at \(path.prefix(Limits.depth)) is \(depth) levels deep; the limit is \(Limits.depth)."
    )
  }
}
