extension Draft {
  /// Decodes a write: in the place of each server value comes a stand-in.
  ///
  /// - Complexity: O(size of the write).
  package init(decoding write: WriteView) {
    let path = Path(trusted: write.path)
    guard let start = write.body.baseAddress, write.kind != .remove else {
      self.init(.remove(path))
      return
    }
    var decoder = DraftDecoder(trees: write.trees)
    var next = start
    switch write.kind {
    case .update: self.init(.update(path, decoder.entries(of: write)), deferred: decoder.deferred)
    case .increment: self.init(.increment(path, PackedScalar.numberTrusted(next).number))
    case .setPriority:
      let priority = decoder.priority(&next, at: .root)
      self.init(.setPriority(path, priority), deferred: decoder.deferred)
    case .set, .remove:
      let node = decoder.node(&next, at: .root)
      self.init(node.isEmpty ? .remove(path) : .set(path, node), deferred: decoder.deferred)
    }
  }
}

extension Draft.Deferred {
  /// What a server value is in a tree of values: a leaf, so that it keeps its place and may have a priority; or a
  /// priority.
  package static let standIn = Scalar.integer(0)
}

private struct DraftDecoder {
  let trees: [Node]
  var deferred: [Draft.Deferred] = []

  mutating func entries(of write: WriteView) -> [Write.Entry] {
    let room = UnsafeMutableRawPointer.allocate(
      byteCount: EntryReader.pathByteCountMax, alignment: 8)
    defer { room.deallocate() }
    var list: [Write.Entry] = []
    list.reserveCapacity(write.facts.entryCount)
    var entries = EntryReader(write.body, path: room, baseByteCount: 0)
    while entries.advance() {
      let path = Path(trusted: entries.wholePath)
      let action: Write.Entry.Action
      switch entries.kind {
      case .set:
        let node = node(&entries.next, at: path)
        action = node.isEmpty ? .remove : .set(node)
      case .setPriority: action = .setPriority(priority(&entries.next, at: path))
      case .increment:
        action = .increment(PackedScalar.numberTrusted(entries.next).number)
        entries.skipValue()
      case .remove, .update: action = .remove
      }
      list.append(Write.Entry(path: path, action: action))
    }
    return list
  }

  mutating func priority(_ next: inout UnsafeRawPointer, at path: Path) -> Scalar? {
    next += 1
    if (next - 1).load(as: UInt8.self) == 0 { return nil }
    return scalar(&next, at: path, isPriority: true)
  }

  mutating func node(_ next: inout UnsafeRawPointer, at path: Path) -> Node {
    switch next.load(as: UInt8.self) {
    case BodyTag.empty, BodyTag.tree:
      return BodyBytes.node(&next, trees, hasOrderedChildren: true)
    case PackedScalar.priorityTag:
      next += 1
      let priority = scalar(&next, at: path, isPriority: true)
      return Node(scalar(&next, at: path, isPriority: false), priority: priority)
    case BodyTag.branch:
      next += 1
      return branch(&next, at: path, priority: nil)
    case BodyTag.branchWithPriority:
      next += 1
      let priority = scalar(&next, at: path, isPriority: true)
      return branch(&next, at: path, priority: priority)
    default: return Node(scalar(&next, at: path, isPriority: false))
    }
  }

  private mutating func branch(
    _ next: inout UnsafeRawPointer, at path: Path, priority: Scalar?
  ) -> Node {
    let (count, prefix) = Varint.readTrusted(next)
    next += prefix
    var builder = NodeBuilder()
    for _ in 0..<count {
      let (keyByteCount, prefix) = Varint.readTrusted(next)
      let bytes = UnsafeRawBufferPointer(start: next + prefix, count: keyByteCount)
      let key = Key(trustedOrderedBytes: bytes)
      next += prefix + keyByteCount
      builder.append(key, node(&next, at: path.appending(key)))
    }
    return builder.finish(priority: priority)
  }

  private mutating func scalar(
    _ next: inout UnsafeRawPointer, at path: Path, isPriority: Bool
  ) -> Scalar {
    let start = next
    next = BodyBytes.scalarEnd(start)
    let value: Draft.Deferred.Value
    switch start.load(as: UInt8.self) {
    case BodyTag.timestamp: value = .timestamp
    case BodyTag.sum: value = .increment(PackedScalar.numberTrusted(start + 1).number)
    default: return PackedScalar.readTrusted(start).scalar
    }
    deferred.append(Draft.Deferred(path: path, isPriority: isPriority, value: value))
    return Draft.Deferred.standIn
  }
}
