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

  /// Parses a path as `init(parsing:)` does.
  ///
  /// - Parameter utf8: valid UTF-8.
  package init(utf8: UnsafeRawBufferPointer) throws(ValidationError) {
    self = try utf8.withMemoryRebound(to: UInt8.self) { utf8 in
      Path.parsed(utf8: utf8) { stored, keyCount in Path(bytes: Array(stored), count: keyCount) }
    }.get()
  }

  /// Parses a path as `init(parsing:)` does, and calls `body` with its stored bytes, for which nothing is
  /// allocated.
  ///
  /// - Parameter body: gets the stored bytes, valid only during the call, and the number of keys.
  static func withStoredBytes<R>(
    parsing text: String, _ body: (UnsafeRawBufferPointer, Int) -> R
  ) throws(ValidationError) -> R {
    try text.withContiguousUTF8 { parsed(utf8: $0, body) }.get()
  }

  @inline(__always)
  private static func parsed<R>(
    utf8: UnsafeBufferPointer<UInt8>, _ body: (UnsafeRawBufferPointer, Int) -> R
  ) -> Result<R, ValidationError> {
    let parser = PathParser(UnsafeRawBufferPointer(utf8))
    let byteCountMax = PathParser.storedByteCountMax(ofTextOf: utf8.count)
    return withUnsafeTemporaryAllocation(byteCount: byteCountMax, alignment: 1) { target in
      Result { () throws(ValidationError) in
        let (byteCount, keyCount) = try parser.parse(into: target.baseAddress.unsafelyUnwrapped)
        return body(UnsafeRawBufferPointer(rebasing: target[..<byteCount]), keyCount)
      }
    }
  }

  /// The room that `store(_:to:)` needs for a text.
  package static func storedByteCountMax(_ text: String) -> Int {
    PathParser.storedByteCountMax(ofTextOf: text.utf8.count)
  }

  /// Parses a path as `init(parsing:)` does, and writes its stored bytes.
  ///
  /// - Parameters:
  ///   - text: the path.
  ///   - target: room for `storedByteCountMax(_:)` bytes.
  package static func store(
    _ text: String, to target: UnsafeMutableRawBufferPointer
  ) throws(ValidationError) -> (byteCount: Int, keyCount: Int) {
    try text.withContiguousUTF8 { utf8 in
      Result { () throws(ValidationError) in
        // A string that is not contiguous is counted here a second time, in the bytes that are parsed.
        precondition(target.count >= PathParser.storedByteCountMax(ofTextOf: utf8.count))
        return try PathParser(UnsafeRawBufferPointer(utf8)).parse(
          into: target.baseAddress.unsafelyUnwrapped)
      }
    }.get()
  }

  /// The room that `store(utf8:to:)` needs for a text of so many bytes.
  package static func storedByteCountMax(ofTextOf byteCount: Int) -> Int {
    PathParser.storedByteCountMax(ofTextOf: byteCount)
  }

  /// Parses a path as `init(parsing:)` does, and writes its stored bytes.
  ///
  /// - Parameters:
  ///   - utf8: the path; valid UTF-8.
  ///   - target: room for `storedByteCountMax(ofTextOf:)` bytes.
  /// - Returns: the number of stored bytes; nil if a key is illegal, which costs no more than a legal one.
  package static func store(
    utf8: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer
  ) -> Int? {
    var illegalStart = 0
    return PathParser(utf8).parse(into: target, &illegalStart)?.byteCount
  }
}
