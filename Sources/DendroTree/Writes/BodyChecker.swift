/// Checks the body of a write that comes from outside, a log above all, so that it can be trusted afterwards.
///
/// It says only whether a body is valid; `WriteReader`, which decodes, says what is wrong with one that is not.
package struct BodyChecker: ~Copyable {
  /// The path of the entry at hand.
  private var path = PathChecker(comparesPaths: true)
  private let allowed: Allowed

  /// What a body may have beside the data's values.
  package struct Allowed: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Leaves of bytes: in the second root.
    package static let bytes = Allowed(rawValue: 1)
    /// Server values: in a write that is kept.
    package static let serverValues = Allowed(rawValue: 2)
  }

  package init(allowing allowed: Allowed = []) { self.allowed = allowed }

  /// Checks the body that begins at `offset`, and moves `offset` to its end.
  ///
  /// - Parameters:
  ///   - kind: of the write.
  ///   - bytes: what the body lies in.
  ///   - offset: where it begins.
  ///   - depth: levels that may follow below the write's path.
  /// - Returns: nil unless the body is valid.
  /// - Complexity: O(bytes of the body); allocates nothing.
  package mutating func check(
    _ kind: WriteKind, _ bytes: UnsafeRawBufferPointer, at offset: inout Int, depth: Int
  ) -> WriteFacts? {
    var facts = WriteFacts()
    guard depth >= 0 else { return nil }
    guard kind == .update else {
      let isGood = checkValue(kind, bytes, &offset, depth, &facts)
      return isGood ? facts : nil
    }
    return checkEntries(bytes, &offset, depth, &facts) ? facts : nil
  }

  private mutating func checkEntries(
    _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, _ depth: Int, _ facts: inout WriteFacts
  ) -> Bool {
    guard let (count, prefix) = Varint.read(bytes, at: offset) else { return false }
    offset += prefix
    // An entry takes at least three bytes.
    guard count <= (bytes.count - offset) / 3 else { return false }
    facts.entryCount = count
    path.restart()
    for index in 0..<count {
      guard offset < bytes.count, let kind = WriteKind(rawValue: bytes[offset]), kind != .update
      else { return false }
      offset += 1
      guard path.read(bytes, at: &offset, depth: depth),
        checkValue(kind, bytes, &offset, depth - path.keyCount, &facts)
      else { return false }
      if kind == .setPriority || index > 0 && !path.isBehindLast { facts.isOrdered = false }
    }
    return true
  }

  // MARK: Values

  private func checkValue(
    _ kind: WriteKind, _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, _ depth: Int,
    _ facts: inout WriteFacts
  ) -> Bool {
    switch kind {
    case .remove:
      facts.removalCount += 1
      return true
    case .set:
      if offset < bytes.count, bytes[offset] == BodyTag.empty { facts.removalCount += 1 }
      return checkNode(bytes, &offset, depth, &facts)
    case .increment:
      guard let end = PackedScalar.end(validating: bytes, at: offset),
        PackedScalar.isNumber(bytes.baseAddress.unsafelyUnwrapped + offset)
      else { return false }
      offset = end
      return true
    case .setPriority:
      guard offset < bytes.count else { return false }
      offset += 1
      return bytes[offset - 1] == 0
        || bytes[offset - 1] == 1 && checkPriority(bytes, &offset, &facts)
    case .update: return false
    }
  }

  private func checkPriority(
    _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, _ facts: inout WriteFacts
  ) -> Bool {
    if checkServerValue(bytes, &offset, &facts) { return true }
    guard let end = PackedScalar.end(validating: bytes, at: offset),
      bytes[offset] >= PackedScalar.integerTag
    else { return false }
    offset = end
    return true
  }

  /// Passes over a server value, if one is there and may be.
  private func checkServerValue(
    _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, _ facts: inout WriteFacts
  ) -> Bool {
    guard allowed.contains(.serverValues), offset < bytes.count else { return false }
    switch bytes[offset] {
    case BodyTag.timestamp: offset += 1
    case BodyTag.sum:
      guard let end = PackedScalar.end(validating: bytes, at: offset + 1),
        PackedScalar.isNumber(bytes.baseAddress.unsafelyUnwrapped + offset + 1)
      else { return false }
      offset = end
    default: return false
    }
    facts.hasServerValues = true
    return true
  }

  private func checkLeaf(
    _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, _ facts: inout WriteFacts
  ) -> Bool {
    if let end = PackedScalar.leafEnd(validating: bytes, at: offset) {
      offset = end
      return true
    }
    if allowed.isEmpty { return false }
    if allowed.contains(.bytes), let end = PackedScalar.bytesEnd(validating: bytes, at: offset) {
      offset = end
      return true
    }
    // A server value as the priority, as the value, or as both.
    if bytes[offset] == PackedScalar.priorityTag {
      offset += 1
      guard checkPriority(bytes, &offset, &facts) else { return false }
    }
    if checkServerValue(bytes, &offset, &facts) { return true }
    guard let end = PackedScalar.end(validating: bytes, at: offset) else { return false }
    offset = end
    return true
  }

  /// Bytes that a child takes at least: a key's length, a key, a leaf.
  private static let childByteMin = 3

  /// - Parameter depth: levels that may follow below.
  private func checkNode(
    _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, _ depth: Int, _ facts: inout WriteFacts
  ) -> Bool {
    guard offset < bytes.count else { return false }
    switch bytes[offset] {
    case BodyTag.empty:
      offset += 1
      return true
    case BodyTag.branch: offset += 1
    case BodyTag.branchWithPriority:
      offset += 1
      guard checkPriority(bytes, &offset, &facts) else { return false }
    default: return checkLeaf(bytes, &offset, &facts)
    }
    guard depth > 0, let (count, prefix) = Varint.read(bytes, at: offset) else { return false }
    offset += prefix
    guard count > 0, count <= (bytes.count - offset) / Self.childByteMin else { return false }
    var last = UnsafeRawBufferPointer(start: nil, count: 0)
    for _ in 0..<count {
      guard let (keyByteCount, prefix) = Varint.read(bytes, at: offset),
        keyByteCount <= bytes.count - offset - prefix
      else { return false }
      let start = offset + prefix
      let key = UnsafeRawBufferPointer(rebasing: bytes[start..<start + keyByteCount])
      guard KeyCoding.isValid(orderedBytes: key) else { return false }
      if let before = last.baseAddress, let own = key.baseAddress {
        facts.hasOrderedChildren =
          facts.hasOrderedChildren && compareBytes(before, last.count, own, key.count) < 0
      }
      last = key
      offset = start + keyByteCount
      guard offset < bytes.count, bytes[offset] != BodyTag.empty,
        checkNode(bytes, &offset, depth - 1, &facts)
      else { return false }
    }
    return true
  }
}
