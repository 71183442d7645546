import DendroStorage

extension [UInt8] {
  /// Nil if the bytes end before.
  func integer<I: FixedWidthInteger>(at offset: Int, as type: I.Type = I.self) -> I? {
    guard offset >= 0, offset <= count - MemoryLayout<I>.size else { return nil }
    return withUnsafeBytes { I(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: I.self)) }
  }

  /// Nothing if the bytes end before.
  mutating func set<I: FixedWidthInteger>(_ value: I, at offset: Int) {
    guard offset >= 0, offset <= count - MemoryLayout<I>.size else { return }
    Swift.withUnsafeBytes(of: value.littleEndian) {
      replaceSubrange(offset..<offset + $0.count, with: $0)
    }
  }

  /// A varint and where it ends; nil if there is none.
  func varint(at offset: inout Int) -> UInt64? {
    withUnsafeBytes { bytes in
      var reader = ByteReader(bytes, at: offset)
      guard let value = try? reader.varint() else { return nil }
      offset = reader.offset
      return value
    }
  }
}
