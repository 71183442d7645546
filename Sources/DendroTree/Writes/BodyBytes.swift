/// Reads trusted bytes of a write's body.
enum BodyBytes {
  /// The end of the value of a write or an entry, which is not an update.
  static func valueEnd(_ kind: WriteKind, _ start: UnsafeRawPointer) -> UnsafeRawPointer {
    switch kind {
    case .remove: start
    case .set: nodeEnd(start)
    case .increment: start + PackedScalar.byteCountTrusted(start)
    case .setPriority: start.load(as: UInt8.self) == 0 ? start + 1 : scalarEnd(start + 1)
    case .update: preconditionFailure("an update has no single value")
    }
  }

  /// The end of a packed scalar or of a server value.
  @inline(__always)
  static func scalarEnd(_ start: UnsafeRawPointer) -> UnsafeRawPointer {
    switch start.load(as: UInt8.self) {
    case BodyTag.timestamp: start + 1
    case BodyTag.sum: start + 1 + PackedScalar.byteCountTrusted(start + 1)
    default: start + PackedScalar.byteCountTrusted(start)
    }
  }

  static func nodeEnd(_ start: UnsafeRawPointer) -> UnsafeRawPointer {
    var next = start
    switch next.load(as: UInt8.self) {
    case BodyTag.empty: return next + 1
    case BodyTag.tree: return next + 1 + Varint.readTrusted(next + 1).byteCount
    case PackedScalar.priorityTag: return scalarEnd(scalarEnd(next + 1))
    case BodyTag.branch: next += 1
    case BodyTag.branchWithPriority: next = scalarEnd(next + 1)
    default: return scalarEnd(next)
    }
    let (count, prefix) = Varint.readTrusted(next)
    next += prefix
    for _ in 0..<count {
      let (keyByteCount, prefix) = Varint.readTrusted(next)
      next = nodeEnd(next + prefix + keyByteCount)
    }
    return next
  }

  /// Whether a leaf without a priority stands here that becomes what is at its place, and no server value. A whole double
  /// does not take the place of the integer that equals it.
  static func isPlainLeaf(_ start: UnsafeRawPointer) -> Bool {
    let tag = start.load(as: UInt8.self)
    guard tag < PackedScalar.priorityTag || tag >= PackedScalar.bytesTag else { return false }
    guard tag >= PackedScalar.doubleTag, tag < PackedScalar.priorityTag else { return true }
    guard case .double(let value) = PackedScalar.numberTrusted(start).number else { return true }
    return value != value.rounded()
  }

  /// The bytes of a leaf without a priority that fits into a page; 0 for any other node.
  @inline(__always)
  static func shortLeafByteCount(_ start: UnsafeRawPointer) -> Int {
    let tag = start.load(as: UInt8.self)
    if tag >= PackedScalar.priorityTag && tag < PackedScalar.stringTag { return 0 }
    let count = PackedScalar.byteCountTrusted(start)
    return count <= Page.inlineValueByteCountMax ? count : 0
  }
}
