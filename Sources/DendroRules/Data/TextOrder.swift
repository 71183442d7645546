import DendroTree

/// How strings compare in rules: by code units, and never by what Unicode calls equivalent, as
/// `String`'s own operators do.
enum TextOrder {
  static func isEqual(_ a: String, _ b: String) -> Bool {
    a.withBytes { a in
      b.withBytes { b in
        guard a.count == b.count, let x = a.baseAddress, let y = b.baseAddress else {
          return a.isEmpty && b.isEmpty
        }
        return isEqual(UnsafeRawPointer(x), UnsafeRawPointer(y), a.count)
      }
    }
  }

  /// Whether so many bytes are the same. Both addresses have as many.
  private static func isEqual(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ count: Int) -> Bool {
    var offset = 0
    while offset &+ 8 <= count {
      let (x, y) = (a + offset, b + offset)
      guard x.loadUnaligned(as: UInt64.self) == y.loadUnaligned(as: UInt64.self) else {
        return false
      }
      offset &+= 8
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

  /// Whether `a` comes first by UTF-16 code units, as in Java and JavaScript.
  static func precedes(_ a: String, _ b: String) -> Bool { Scalar.string(a) < Scalar.string(b) }
}

extension String {
  /// Calls `body` with the UTF-8, of which a copy is made only if it lies in several pieces.
  @inline(__always)
  func withBytes<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
    if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
    // LCOV_EXCL_START: on Linux every string lies in one piece
    var contiguous = self
    return contiguous.withUTF8(body)
    // LCOV_EXCL_STOP
  }
}
