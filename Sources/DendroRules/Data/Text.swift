import DendroTree

/// A string that is read in place: valid UTF-8, of which no reference is counted and nothing is copied.
///
/// Unsafe: the code that makes a text keeps its bytes alive as long as the text is used. The texts of one verdict are in the pages
/// and in the values of the trees, in the request, in the program, or in the evaluation's `TextMemory`. All of these
/// live longer than the rule that is evaluated.
struct Text: @unchecked Sendable {
  let bytes: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var count: Int { bytes.count }
  var string: String { String(decoding: bytes, as: UTF8.self) }

  /// UTF-16 code units, as in Java and JavaScript.
  var utf16Count: Int {
    var count = 0
    var offset = 0
    while offset < bytes.count {
      if offset &+ 8 <= bytes.count,
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
      {
        count &+= 8
        offset &+= 8
        continue
      }
      // A character has one unit, and two if it has four bytes.
      let byte = bytes[offset]
      count &+= (byte & 0xC0 == 0x80 ? 0 : 1) &+ (byte >= 0xF0 ? 1 : 0)
      offset &+= 1
    }
    return count
  }

  /// By code units, and never by what Unicode calls equivalent, as `String`'s own operator does.
  @inline(__always)
  static func isEqual(_ a: Text, _ b: Text) -> Bool { a.bytes.isEqual(to: b.bytes) }

  /// Whether `a` comes first by UTF-16 code units, as in Java and JavaScript.
  static func precedes(_ a: Text, _ b: Text) -> Bool { Scalar.compareUTF8(a.bytes, b.bytes) < 0 }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are the same. A call into the C library would cost more than the comparison.
  @inline(__always)
  func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count, let a = baseAddress, let b = other.baseAddress else {
      return isEmpty && other.isEmpty
    }
    return Self.isEqual(a, b, count)
  }

  /// Whether these are the first bytes of `other`.
  @inline(__always)
  func isPrefix(of other: UnsafeRawBufferPointer) -> Bool {
    count <= other.count && isEqual(to: UnsafeRawBufferPointer(rebasing: other[..<count]))
  }

  /// Whether so many bytes are the same. Both addresses have as many.
  static func isEqual(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ count: Int) -> Bool {
    var offset = 0
    while offset &+ 8 <= count {
      let (x, y) = (a + offset, b + offset)
      guard x.loadUnaligned(as: UInt64.self) == y.loadUnaligned(as: UInt64.self) else {
        return false
      }
      offset &+= 8
    }
    if offset < count, count >= 8 {
      // The last word overlaps bytes that are known to be equal.
      let (x, y) = (a + (count &- 8), b + (count &- 8))
      return x.loadUnaligned(as: UInt64.self) == y.loadUnaligned(as: UInt64.self)
    }
    while offset < count {
      guard
        a.load(fromByteOffset: offset, as: UInt8.self)
          == b.load(fromByteOffset: offset, as: UInt8.self)
      else { return false }
      offset &+= 1
    }
    return true
  }
}

extension KeyView {
  @inline(__always)
  static func == (a: KeyView, b: KeyView) -> Bool {
    a.count == b.count && UnsafeRawBufferPointer.isEqual(a.start, b.start, a.count)
  }

  /// Whether this key comes first.
  func precedes(_ other: KeyView) -> Bool {
    orderedBytes.lexicographicallyPrecedes(other.orderedBytes)
  }
}

extension Text {
  /// The Unicode scalars.
  var scalars: Scalars { Scalars(bytes) }

  struct Scalars: Sequence, IteratorProtocol {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func next() -> Unicode.Scalar? {
      guard offset < bytes.count else { return nil }
      let lead = bytes[offset]
      let count = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
      // Of the lead byte, those bits that say no length.
      var value = UInt32(count == 1 ? lead : lead & (0x7F &>> UInt8(count)))
      for index in 1..<count { value = value &<< 6 | UInt32(bytes[offset &+ index] & 0x3F) }
      offset &+= count
      return Unicode.Scalar(value) ?? "\u{FFFD}"
    }
  }
}

extension String {
  /// Calls `body` with the UTF-8, of which a copy is made only if it lies in several pieces.
  @inline(__always)
  func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) {
      return result
    }
    // LCOV_EXCL_START: on Linux every string lies in one piece
    var contiguous = self
    return contiguous.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    // LCOV_EXCL_STOP
  }
}
