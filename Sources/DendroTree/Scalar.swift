/// The value of a leaf, or a priority.
///
/// Equality is that of the data model: 1 equals 1.0, -0.0 equals 0, true does not equal 1, and strings
/// are equal only if they have the same code points. The order is `false` < `true` < numbers < strings;
/// strings compare by UTF-16 code units. A scalar is a value and may be used on any thread.
package enum Scalar: Sendable {
  case bool(Bool)
  case integer(Int64)
  /// A finite double. Parsers and converters refuse other doubles.
  case double(Double)
  /// A string of at most `Limits.stringBytes` bytes of UTF-8.
  case string(String)
  /// At most `Limits.leafBytes` bytes: of the second root alone, never of the data.
  case bytes([UInt8])

  /// The value as a number; nil for a bool or string.
  package var number: Number? {
    switch self {
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    case .bool, .string, .bytes: nil
    }
  }

  /// Whether the scalar can be a priority, that is, a number or a string.
  package var isValidPriority: Bool {
    switch self {
    case .bool, .bytes: false
    case .integer, .double, .string: true
    }
  }

  /// Whether two equal scalars also have the same packed form: 1 and 1.0 do not, nor do 0.0 and -0.0.
  func hasSameBits(as other: Scalar) -> Bool {
    switch (self, other) {
    case (.integer, .double), (.double, .integer): false
    case (.double(let a), .double(let b)): a.bitPattern == b.bitPattern
    default: true
    }
  }

  private var rank: Int {
    switch self {
    case .bool(false): 0
    case .bool(true): 1
    case .integer, .double: 2
    case .string: 3
    case .bytes: 4
    }
  }

  /// - Returns: negative, zero or positive.
  static func compare(_ a: Scalar, _ b: Scalar) -> Int {
    if a.rank != b.rank { return a.rank - b.rank }
    if let x = a.number, let y = b.number { return Number.compare(x, y) }
    if case .string(let x) = a, case .string(let y) = b { return compareStrings(x, y) }
    if case .bytes(let x) = a, case .bytes(let y) = b {
      return x == y ? 0 : x.lexicographicallyPrecedes(y) ? -1 : 1
    }
    return 0
  }

  /// Compares by UTF-16 code units, without normalisation.
  private static func compareStrings(_ a: String, _ b: String) -> Int {
    var a = a
    var b = b
    return a.withUTF8 { a in
      b.withUTF8 { b in compareUTF8(UnsafeRawBufferPointer(a), UnsafeRawBufferPointer(b)) }
    }
  }

  /// Compares valid UTF-8 in the order of UTF-16 code units.
  package static func compareUTF8(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    guard let x = a.baseAddress, let y = b.baseAddress else { return a.count - b.count }
    let common = min(a.count, b.count)
    var offset = 0
    while offset &+ 8 <= common,
      (x + offset).loadUnaligned(as: UInt64.self) == (y + offset).loadUnaligned(as: UInt64.self)
    {
      offset &+= 8
    }
    while offset < common && a[offset] == b[offset] { offset &+= 1 }
    if offset == common { return a.count - b.count }
    // The first different bytes are two lead bytes, or they are at the same index of characters with
    // equal lead bytes. UTF-16 order differs from byte order only in this: the leads EE and EF
    // (U+E000…U+FFFF) come after F0…F4 (surrogate pairs).
    let p = a[offset]
    let q = b[offset]
    if p >= 0xEE && q >= 0xEE && (p < 0xF0) != (q < 0xF0) { return p < 0xF0 ? 1 : -1 }
    return p < q ? -1 : 1
  }
}

extension Scalar: Comparable {
  package static func == (a: Scalar, b: Scalar) -> Bool { compare(a, b) == 0 }
  package static func < (a: Scalar, b: Scalar) -> Bool { compare(a, b) < 0 }
}

extension Scalar: Hashable {
  package func hash(into hasher: inout Hasher) {
    hasher.combine(rank)
    switch self {
    case .bool: break
    case .integer(let value): hasher.combine(Number.integer(value))
    case .double(let value): hasher.combine(Number.double(value))
    case .string(var value): value.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    case .bytes(let value): hasher.combine(value)
    }
  }
}
