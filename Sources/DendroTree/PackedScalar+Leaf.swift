// Leaves: a scalar, behind its priority if it has one.

extension PackedScalar {
  /// The number of bytes that `writeLeaf` writes.
  package static func leafByteCount(_ scalar: Scalar, priority: Scalar?) -> Int {
    byteCount(scalar) + (priority.map { 1 + byteCount($0) } ?? 0)
  }

  /// Writes the packed form of a leaf and returns the address after it.
  package static func writeLeaf(
    _ scalar: Scalar, priority: Scalar?, to target: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    var next = target
    if let priority {
      next.storeBytes(of: priorityTag, as: UInt8.self)
      next = write(priority, to: next + 1)
    }
    return write(scalar, to: next)
  }

  /// The end of the packed leaf at `offset`; nil unless it is complete, valid and in its only form.
  package static func leafEnd(validating bytes: UnsafeRawBufferPointer, at offset: Int) -> Int? {
    guard offset >= 0, offset < bytes.count else { return nil }
    guard bytes[offset] == priorityTag else { return end(validating: bytes, at: offset) }
    guard offset + 1 < bytes.count, bytes[offset + 1] >= integerTag,
      let scalar = end(validating: bytes, at: offset + 1)
    else { return nil }
    return end(validating: bytes, at: scalar)
  }

  /// Reads the packed leaf at `offset` and moves `offset` to its end. Returns nil, and leaves `offset`
  /// unchanged, unless the leaf is complete, valid and in its only form.
  package static func readLeaf(
    _ bytes: UnsafeRawBufferPointer, at offset: inout Int
  ) -> (scalar: Scalar, priority: Scalar?)? {
    guard let end = leafEnd(validating: bytes, at: offset) else { return nil }
    var address = bytes.baseAddress.unsafelyUnwrapped + offset
    var priority: Scalar?
    if bytes[offset] == priorityTag {
      let (value, byteCount) = readTrusted(address + 1)
      priority = value
      address += 1 + byteCount
    }
    offset = end
    return (readTrusted(address).scalar, priority)
  }
}
