extension JSONScanner {
  /// Consumes a string and passes its unescaped UTF-8 to `body`; the bytes are valid only during the
  /// call. The next byte is the opening quote.
  @inline(__always)
  mutating func string<Result>(
    limit: Int, _ what: StaticString, _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) throws(JSONFailure) -> Result {
    let opening = position
    next += 1
    let cursor = Self.endOfPlainRun(next, end)
    if cursor < end, cursor.pointee == UInt8(ascii: "\""), cursor - next <= limit {
      let result = body(UnsafeBufferPointer(start: next, count: cursor - next))
      next = cursor + 1
      return result
    }
    return try stringSlowly(limit: limit, what, opening, body)
  }

  /// Consumes a short ASCII string without escapes that lies in the buffer as a whole. The next byte is
  /// the opening quote.
  ///
  /// - Returns: its packed form, valid until the next call. For any other string it returns nil and
  ///   consumes nothing.
  @inline(__always)
  mutating func shortString() -> UnsafeRawBufferPointer? {
    let first = next + 1
    let cursor = Self.endOfPlainRun(first, end)
    let count = cursor - first
    guard cursor < end, cursor.pointee == UInt8(ascii: "\""),
      count <= PackedScalar.shortStringByteCountMax
    else { return nil }
    packed.pointee = PackedScalar.stringTag + UInt8(truncatingIfNeeded: count)
    (packed + 1).update(from: first, count: count)
    next = cursor + 1
    return UnsafeRawBufferPointer(start: packed, count: 1 + count)
  }

  @inline(never)
  private mutating func stringSlowly<Result>(
    limit: Int, _ what: StaticString, _ opening: JSONPosition,
    _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) throws(JSONFailure) -> Result {
    scratch.removeAll(keepingCapacity: scratch.capacity <= 1 << 16)
    var usesScratch = false
    var run = next
    var cursor = next
    while true {
      cursor = Self.endOfPlainRun(cursor, end)
      if cursor == end {
        appendToScratch(from: run, to: cursor)
        usesScratch = true
        next = cursor
        guard scratch.count <= limit else { throw tooLong(what, limit, opening) }
        guard try refill() else { throw failure("the string is not closed", at: opening) }
        run = next
        cursor = next
        continue
      }
      let byte = cursor.pointee
      if byte == UInt8(ascii: "\"") {
        let result: Result
        if usesScratch {
          appendToScratch(from: run, to: cursor)
          guard scratch.count <= limit else { throw tooLong(what, limit, opening) }
          result = scratch.withUnsafeBufferPointer(body)
        } else {
          guard cursor - run <= limit else { throw tooLong(what, limit, opening) }
          result = body(UnsafeBufferPointer(start: run, count: cursor - run))
        }
        next = cursor + 1
        return result
      }
      if byte == UInt8(ascii: "\\") {
        appendToScratch(from: run, to: cursor)
        usesScratch = true
        next = cursor
        try escape()
        guard scratch.count <= limit else { throw tooLong(what, limit, opening) }
        run = next
        cursor = next
        continue
      }
      guard byte >= 0x80 else {
        throw failure(
          "the control character U+\(UInt32(byte).hexadecimal(digitCount: 4)) must be escaped",
          at: position(of: cursor))
      }
      if end - cursor < 4, !sourceEnded {
        appendToScratch(from: run, to: cursor)
        usesScratch = true
        next = cursor
        _ = try ensure(4)
        run = next
        cursor = next
      }
      // Texts in other scripts are long runs of such sequences, so the search for the end of a plain run
      // is skipped between them.
      repeat {
        let length = UTF8Sequence.length(cursor, end)
        guard length > 0 else { throw failure("not UTF-8", at: position(of: cursor)) }
        cursor += length
        columnBase += length - 1
      } while end - cursor >= 4 && cursor.pointee >= 0x80
    }
  }

  private func tooLong(_ what: StaticString, _ limit: Int, _ opening: JSONPosition) -> JSONFailure {
    failure(
      "\(what) is longer than \(limit) bytes", kind: .data(.invalidData), at: opening)
  }

  private mutating func appendToScratch(
    from run: UnsafePointer<UInt8>, to cursor: UnsafePointer<UInt8>
  ) {
    scratch.append(contentsOf: UnsafeBufferPointer(start: run, count: cursor - run))
  }

  // MARK: Escapes

  /// Consumes one escape and appends the scalar to `scratch`. The next byte is the backslash.
  private mutating func escape() throws(JSONFailure) {
    let backslash = position
    guard try ensure(2) else { throw failure("the string ends in an escape", at: backslash) }
    let byte = next[1]
    next += 2
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): scratch.append(byte)
    case UInt8(ascii: "b"): scratch.append(0x08)
    case UInt8(ascii: "f"): scratch.append(0x0C)
    case UInt8(ascii: "n"): scratch.append(0x0A)
    case UInt8(ascii: "r"): scratch.append(0x0D)
    case UInt8(ascii: "t"): scratch.append(0x09)
    case UInt8(ascii: "u"):
      let unit = try hexUnit(backslash)
      guard unit & 0xF800 == 0xD800 else {
        appendToScratch(scalar: unit)
        return
      }
      guard unit < 0xDC00, try ensure(2), next[0] == UInt8(ascii: "\\"),
        next[1] == UInt8(ascii: "u")
      else { throw loneSurrogate(unit, backslash) }
      next += 2
      let low = try hexUnit(backslash)
      guard low & 0xFC00 == 0xDC00 else { throw loneSurrogate(unit, backslash) }
      appendToScratch(scalar: 0x10000 + (unit & 0x3FF) << 10 + low & 0x3FF)
    default: throw failure("no such escape", at: backslash)
    }
  }

  private func loneSurrogate(_ unit: UInt32, _ position: JSONPosition) -> JSONFailure {
    failure("\\u\(unit.hexadecimal(digitCount: 4)) is half of a surrogate pair", at: position)
  }

  private mutating func hexUnit(_ backslash: JSONPosition) throws(JSONFailure) -> UInt32 {
    guard try ensure(4) else { throw failure("\\u needs four hexadecimal digits", at: backslash) }
    var unit: UInt32 = 0
    for index in 0..<4 {
      let byte = next[index]
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: throw failure("\\u needs four hexadecimal digits", at: backslash)
      }
      unit = unit << 4 | UInt32(digit)
    }
    next += 4
    return unit
  }

  /// Appends the UTF-8 of a scalar that is not a surrogate.
  private mutating func appendToScratch(scalar: UInt32) {
    switch scalar {
    case ..<0x80: scratch.append(UInt8(truncatingIfNeeded: scalar))
    case ..<0x800:
      scratch.append(UInt8(truncatingIfNeeded: 0xC0 | scalar >> 6))
      scratch.append(UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F))
    case ..<0x10000:
      scratch.append(UInt8(truncatingIfNeeded: 0xE0 | scalar >> 12))
      scratch.append(UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3F))
      scratch.append(UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F))
    default:
      scratch.append(UInt8(truncatingIfNeeded: 0xF0 | scalar >> 18))
      scratch.append(UInt8(truncatingIfNeeded: 0x80 | scalar >> 12 & 0x3F))
      scratch.append(UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3F))
      scratch.append(UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F))
    }
  }

  // MARK: Plain bytes

  /// Finds the first byte from `start` on that is not plain: a quote, a backslash, a control character
  /// or, if `asciiOnly`, a byte outside of ASCII. Returns `end` if there is none.
  ///
  /// It tests eight bytes at a time with the well-known bit tricks for «has a byte equal to» and «has a
  /// byte less than», whose lowest hit is exact.
  @inline(__always)
  static func endOfPlainRun(
    _ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, asciiOnly: Bool = true
  ) -> UnsafePointer<UInt8> {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    var cursor = start
    while end - cursor >= 8 {
      let word = UInt64(
        littleEndian: UnsafeRawPointer(cursor).loadUnaligned(as: UInt64.self))
      let quote = word ^ (ones &* 0x22)
      let backslash = word ^ (ones &* 0x5C)
      let hits =
        (quote &- ones) & ~quote | (backslash &- ones) & ~backslash
        | (word &- ones &* 0x20) & ~word | (asciiOnly ? word : 0)
      let found = hits & highs
      if found != 0 { return cursor + found.trailingZeroBitCount >> 3 }
      cursor += 8
    }
    while cursor < end {
      let byte = cursor.pointee
      if byte < 0x20 || byte == 0x22 || byte == 0x5C || asciiOnly && byte >= 0x80 { return cursor }
      cursor += 1
    }
    return cursor
  }
}
