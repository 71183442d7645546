/// Takes an input apart; behind its end everything is zero or empty.
struct FuzzInput {
  private var rest: Slice<UnsafeRawBufferPointer>

  init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func uint8() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func uint16() -> UInt16 { UInt16(uint8()) | UInt16(uint8()) << 8 }

  mutating func uint64() -> UInt64 {
    (0..<8).reduce(0) { value, index in value | UInt64(uint8()) << UInt64(8 * index) }
  }

  /// As many as there are, at most `count`.
  mutating func bytes(_ count: Int) -> [UInt8] {
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func remaining() -> [UInt8] { bytes(rest.count) }

  /// The rest as text; what is no UTF-8 is mended.
  mutating func text() -> String { String(decoding: remaining(), as: UTF8.self) }

  /// The rest as lines.
  mutating func lines() -> [String] {
    remaining().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
  }
}

/// Puts inputs together as `FuzzInput` takes them apart.
struct FuzzOutput {
  private(set) var bytes: [UInt8] = []

  mutating func uint8(_ value: UInt8) { bytes.append(value) }

  mutating func uint16(_ value: UInt16) {
    bytes += [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
  }

  mutating func append(_ more: some Sequence<UInt8>) { bytes += more }
}
