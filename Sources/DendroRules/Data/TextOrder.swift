import DendroTree

/// How strings compare in rules: by code units, and never by what Unicode calls equivalent, as
/// `String`'s own operators do.
enum TextOrder {
  static func isEqual(_ a: String, _ b: String) -> Bool {
    // Short strings are equal bit by bit; equal ASCII is too. `==` sees both at once.
    guard a == b else { return false }
    return a.withBytes { a in
      b.withBytes { b in a.count == b.count && a.elementsEqual(b) }
    }
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
