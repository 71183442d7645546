import DendroStorage
package import DendroTree

/// The entries of an update in packed form: no path and no node is made for a leaf.
///
/// It is filled, then closed by `finish`, and not changed any more. What it cannot hold, priorities and deferred
/// values, needs a `Draft`. One thread has it at a time; copies share its bytes.
package struct PackedUpdate: Sendable {
  /// The relative paths as stored, each followed by the packed leaf if that is set.
  private let bytes = PayloadBuffer()
  private var entries: [Entry] = []
  /// The trees that are set.
  private var nodes: [Node] = []
  /// The update's body in the log; complete after `finish`.
  let body = PayloadBuffer()

  struct Entry {
    fileprivate var start: Int
    fileprivate var pathByteCount: Int
    fileprivate var keyCount: Int
    fileprivate var action: Action

    fileprivate enum Action {
      case leaf(byteCount: Int32)
      case node(index: Int32)
      case increment(Number)
      case remove
    }
  }

  package init() {}

  // MARK: Filling

  /// Adds the set of a leaf.
  ///
  /// - Parameters:
  ///   - path: relative to the update's.
  ///   - scalar: a valid one: a finite number, a string of at most `Limits.stringBytes`.
  /// - Throws: what is wrong with the path.
  package mutating func set(_ path: String, _ scalar: Scalar) throws(ValidationError) {
    let byteCount = PackedScalar.byteCount(scalar)
    guard byteCount <= LeafEdit.byteCountMax else { return try set(path, Node(scalar)) }
    try append(path, .leaf(byteCount: Int32(byteCount)))
    bytes.append(room: byteCount) { _ = PackedScalar.write(scalar, to: $0) }
  }

  /// Adds the set of a node; the empty node removes what is there.
  package mutating func set(_ path: String, _ node: Node) throws(ValidationError) {
    if node.isEmpty { return try remove(path) }
    if let byteCount = node.packedLeafByteCount, byteCount <= LeafEdit.byteCountMax,
      node.priority == nil
    {
      try append(path, .leaf(byteCount: Int32(byteCount)))
      return bytes.append(room: byteCount) { node.writePackedLeaf(to: $0) }
    }
    try append(path, .node(index: Int32(nodes.count)))
    nodes.append(node)
  }

  /// Adds an increment by a finite number.
  package mutating func increment(_ path: String, by delta: Number) throws(ValidationError) {
    try append(path, .increment(delta))
  }

  package mutating func remove(_ path: String) throws(ValidationError) {
    try append(path, .remove)
  }

  private mutating func append(_ path: String, _ action: Entry.Action) throws(ValidationError) {
    let start = bytes.count
    let room = bytes.room(for: Path.storedByteCountMax(path))
    let (byteCount, keyCount) = try Path.store(path, to: room)
    bytes.noteAppended(byteCount)
    entries.append(
      Entry(start: start, pathByteCount: byteCount, keyCount: keyCount, action: action))
  }

  // MARK: Finishing

  /// Checks the update, puts its entries in order and encodes them.
  ///
  /// - Throws: as `Write.validate()`.
  package mutating func finish(at base: Path) throws(ValidationError) {
    sort()
    guard isValid(below: base.count) else {
      // The message is made where those of all updates are.
      try draft(at: base).write.validate()
      preconditionFailure("an update that is not valid has no error")
    }
    encode()
  }

  /// Sorts by insertion, since most updates are nearly in order: one object after the other, whose fields are
  /// not. An update that needs many moves is sorted by merging.
  private mutating func sort() {
    bytes.withBytes { bytes in
      entries.withUnsafeMutableBufferPointer { entries in
        if !Self.sort(&entries, bytes, atMost: 8 * entries.count) {
          entries.sort { $0.precedes($1, in: bytes) }
        }
      }
    }
  }

  /// Sorts by insertion with at most so many moves.
  ///
  /// - Returns: false where it takes more; the entries are in some order then.
  private static func sort(
    _ entries: inout UnsafeMutableBufferPointer<Entry>, _ bytes: UnsafeRawBufferPointer,
    atMost moveMax: Int
  ) -> Bool {
    var moveCount = 0
    for index in entries.indices.dropFirst()
    where entries[index].precedes(entries[index - 1], in: bytes) {
      let entry = entries[index]
      var place = index
      repeat {
        entries[place] = entries[place - 1]
        place -= 1
      } while place > 0 && entry.precedes(entries[place - 1], in: bytes)
      entries[place] = entry
      moveCount += index - place
      if moveCount > moveMax { return false }
    }
    return true
  }

  /// Whether no path is above or equal to another one, and nothing is too deep. The entries are in order.
  private func isValid(below depth: Int) -> Bool {
    bytes.withBytes { bytes in
      var above: UnsafeRawBufferPointer?
      for entry in entries {
        let path = entry.path(in: bytes)
        // Each key is preceded by its length, so a prefix in bytes is a prefix in keys. All paths below one
        // follow it without a gap.
        if let above, path.count >= above.count,
          PathCoding.sharedPrefixCount(path, above) == above.count
        {
          return false
        }
        above = path
        var levels = depth + entry.keyCount
        if case .node(let index) = entry.action { levels += nodes[Int(index)].height() }
        if levels > Limits.depth { return false }
      }
      return true
    }
  }

  private func encode() {
    body.appendVarint(entries.count)
    bytes.withBytes { bytes in
      var previous = UnsafeRawBufferPointer(start: nil, count: 0)
      for entry in entries {
        let path = entry.path(in: bytes)
        WriteCoding.encodeKind(of: entry.action.kind, path, after: previous, into: body)
        previous = path
        switch entry.action {
        case .leaf: body.append(entry.leaf(in: bytes))
        case .node(let index): NodeCoding.encode(nodes[Int(index)], into: body)
        case .increment(let delta): ScalarCoding.encode(delta.scalar, into: body)
        case .remove: break
        }
      }
    }
  }

  // MARK: Applying

  /// What one entry does.
  enum Action {
    case edit(LeafEdit)
    case set(Node)
    case remove
  }

  /// Calls `body` for each entry in order, with its stored path relative to the update's.
  @inline(__always)
  func forEach(_ body: (UnsafeRawBufferPointer, Action) -> Void) {
    bytes.withBytes { bytes in
      for entry in entries {
        let path = entry.path(in: bytes)
        switch entry.action {
        case .leaf: body(path, .edit(.set(entry.leaf(in: bytes))))
        case .node(let index): body(path, .set(nodes[Int(index)]))
        case .increment(let delta): body(path, .edit(.increment(delta)))
        case .remove: body(path, .remove)
        }
      }
    }
  }

  /// The number of entries that remove.
  ///
  /// - Complexity: O(entries).
  var removalCount: Int {
    entries.count { if case .remove = $0.action { true } else { false } }
  }

  /// The same update as a draft.
  package func draft(at base: Path) -> Draft {
    var list: [Write.Entry] = []
    list.reserveCapacity(entries.count)
    forEach { stored, action in
      guard let path = Path(storedBytes: stored) else {
        preconditionFailure("a path that was parsed is valid")
      }
      list.append(Write.Entry(path: path, action: action.entryAction))
    }
    return Draft(.update(base, list))
  }
}

extension PackedUpdate.Entry {
  fileprivate func path(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes[start..<start &+ pathByteCount])
  }

  fileprivate func precedes(_ other: Self, in bytes: UnsafeRawBufferPointer) -> Bool {
    Path.storedBytes(path(in: bytes), precede: other.path(in: bytes))
  }

  /// The packed leaf of a set.
  fileprivate func leaf(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard case .leaf(let byteCount) = action else { preconditionFailure("no leaf is set") }
    let first = start &+ pathByteCount
    return UnsafeRawBufferPointer(rebasing: bytes[first..<first &+ Int(byteCount)])
  }
}

extension PackedUpdate.Entry.Action {
  fileprivate var kind: UInt8 {
    switch self {
    case .leaf, .node: WriteCoding.Kind.set
    case .increment: WriteCoding.Kind.increment
    case .remove: WriteCoding.Kind.remove
    }
  }
}

extension PackedUpdate.Action {
  /// The action of an entry of a `Write`.
  var entryAction: Write.Entry.Action {
    switch self {
    case .edit(.set(let packed)): .set(Node(packedLeaf: packed))
    case .edit(.increment(let delta)): .increment(delta)
    case .set(let node): .set(node)
    case .remove: .remove
    }
  }
}
