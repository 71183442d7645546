extension Path {
  /// Parses keys separated by slashes. Empty keys are dropped, so "" and "/" are the root.
  ///
  /// - Throws: `ValidationError` of kind `.invalidPath`, which names the illegal key.
  package init(parsing text: String) throws(ValidationError) {
    var text = text
    let result: Result<Path, ValidationError> = text.withUTF8 { utf8 in
      Result { () throws(ValidationError) in try Path(validUTF8: UnsafeRawBufferPointer(utf8)) }
    }
    self = try result.get()
  }

  private init(validUTF8 utf8: UnsafeRawBufferPointer) throws(ValidationError) {
    var parsed: Result<(byteCount: Int, keyCount: Int), ValidationError> = .success((0, 0))
    let bytes = [UInt8](unsafeUninitializedCapacity: Self.storedByteCountMax(of: utf8)) {
      target, written in
      parsed = Result { () throws(ValidationError) in
        try Path.encode(utf8, to: UnsafeMutableRawPointer(target.baseAddress.unsafelyUnwrapped))
      }
      if case .success(let (byteCount, _)) = parsed { written = byteCount }
    }
    self.init(bytes: bytes, count: try parsed.get().keyCount)
  }

  /// Parses a path as `init(parsing:)` does, and calls `body` with its stored bytes, for which nothing is
  /// allocated.
  ///
  /// - Parameter body: gets the stored bytes, valid only during the call, and the number of keys.
  static func withStoredBytes<R>(
    parsing text: String, _ body: (UnsafeRawBufferPointer, Int) -> R
  ) throws(ValidationError) -> R {
    var text = text
    let result: Result<R, ValidationError> = text.withUTF8 { utf8 in
      let utf8 = UnsafeRawBufferPointer(utf8)
      return withUnsafeTemporaryAllocation(
        byteCount: storedByteCountMax(of: utf8), alignment: 1
      ) { target in
        Result { () throws(ValidationError) in
          let (byteCount, keyCount) = try encode(
            utf8, to: target.baseAddress.unsafelyUnwrapped)
          return body(UnsafeRawBufferPointer(rebasing: target[..<byteCount]), keyCount)
        }
      }
    }
    return try result.get()
  }

  /// `withStoredBytes(parsing:_:)` without a result, for other modules, where the generic form is not
  /// specialized.
  package static func parse(
    _ text: String, _ body: (UnsafeRawBufferPointer, Int) -> Void
  ) throws(ValidationError) {
    try withStoredBytes(parsing: text, body)
  }

  /// A segment of n bytes needs at most n + 2 in a path, and takes n + 1 in the text with its slash.
  private static func storedByteCountMax(of utf8: UnsafeRawBufferPointer) -> Int {
    2 * utf8.count + 2
  }

  /// Writes the stored bytes of a path to `target`, which has room for them.
  private static func encode(
    _ utf8: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer
  ) throws(ValidationError) -> (byteCount: Int, keyCount: Int) {
    var next = target
    var keyCount = 0
    var segmentStart = 0
    while segmentStart < utf8.count {
      var segmentEnd = segmentStart
      while segmentEnd < utf8.count && utf8[segmentEnd] != 0x2F { segmentEnd &+= 1 }
      if segmentEnd > segmentStart {
        let segment = UnsafeRawBufferPointer(rebasing: utf8[segmentStart..<segmentEnd])
        if let reason = KeyCoding.problem(segment) {
          throw ValidationError(
            .invalidPath,
            "The key \(KeyCoding.quoted(segment)) of the path \(KeyCoding.quoted(utf8)) \(reason)")
        }
        next = Path.write(segment, to: next)
        keyCount += 1
      }
      segmentStart = segmentEnd + 1
    }
    return (next - target, keyCount)
  }

  /// Writes the length and the ordered bytes of one key, and returns the address after them.
  @inline(__always)
  private static func write(
    _ segment: UnsafeRawBufferPointer, to next: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    // The number of ordered bytes is known only after encoding. For a segment of less than 127 bytes its
    // varint always takes one byte.
    if segment.count < 127 {
      let byteCount = KeyCoding.encode(segment, to: next + 1)
      next.storeBytes(of: UInt8(byteCount), as: UInt8.self)
      return next + 1 + byteCount
    }
    let byteCount = segment.count  // Too long for an integer key, so encoding keeps the length.
    let target = Varint.write(byteCount, to: next)
    _ = KeyCoding.encode(segment, to: target)
    return target + byteCount
  }
}
