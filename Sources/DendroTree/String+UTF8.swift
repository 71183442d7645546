extension String {
  /// Calls `body` with the string's UTF-8, of which a copy is made only if it lies in several pieces.
  @inline(__always)
  func withContiguousUTF8<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
    if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
    // LCOV_EXCL_START: on Linux every string lies in one piece
    var contiguous = self
    return contiguous.withUTF8(body)
    // LCOV_EXCL_STOP
  }
}
