extension Path {
  /// Parses keys separated by slashes. Empty keys are dropped, so "" and "/" are the root.
  ///
  /// - Throws: `ValidationError` of kind `.invalidPath`, which names the illegal key.
  package init(parsing text: String) throws(ValidationError) {
    // The array is made of bytes whose number is known: a path may be kept for long.
    self = try Path.withStoredBytes(parsing: text) { stored, keyCount in
      Path(bytes: Array(stored), count: keyCount)
    }
  }

  /// Parses a path as `init(parsing:)` does, and calls `body` with its stored bytes, for which nothing is
  /// allocated.
  ///
  /// - Parameter body: gets the stored bytes, valid only during the call, and the number of keys.
  static func withStoredBytes<R>(
    parsing text: String, _ body: (UnsafeRawBufferPointer, Int) -> R
  ) throws(ValidationError) -> R {
    let result = text.utf8.withContiguousStorageIfAvailable { parsed(utf8: $0, body) }
    if let result { return try result.get() }
    var contiguous = text
    contiguous.makeContiguousUTF8()
    return try withStoredBytes(parsing: contiguous, body)
  }

  @inline(__always)
  private static func parsed<R>(
    utf8: UnsafeBufferPointer<UInt8>, _ body: (UnsafeRawBufferPointer, Int) -> R
  ) -> Result<R, ValidationError> {
    let parser = PathParser(UnsafeRawBufferPointer(utf8))
    return withUnsafeTemporaryAllocation(byteCount: parser.storedByteCountMax, alignment: 1) {
      target in
      Result { () throws(ValidationError) in
        let (byteCount, keyCount) = try parser.parse(into: target.baseAddress.unsafelyUnwrapped)
        return body(UnsafeRawBufferPointer(rebasing: target[..<byteCount]), keyCount)
      }
    }
  }

  /// `withStoredBytes(parsing:_:)` without a result, for other modules, where the generic form is not
  /// specialized.
  package static func parse(
    _ text: String, _ body: (UnsafeRawBufferPointer, Int) -> Void
  ) throws(ValidationError) {
    try withStoredBytes(parsing: text, body)
  }
}
