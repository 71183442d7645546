/// The tokens of a JSON text, read from memory or from a source through a buffer of fixed size.
///
/// A token that crosses the end of the buffer is met in one of two ways: short ones (literals,
/// numbers, escapes, one UTF-8 sequence) are moved to the buffer's front before more is read; strings
/// are gathered in `scratch`. So memory is bounded by the buffer and the longest allowed string.
///
/// Unsafe memory: `next` lies between `start` and `end`, both inside the caller's bytes (which outlive
/// the scanner, see ``init(bytes:)``) or inside `buffer`, which the scanner owns until it is destroyed.
struct JSONScanner: ~Copyable {
  typealias Source = (UnsafeMutableRawBufferPointer) throws -> Int

  /// Digits, sign, point and exponent of one number together. A double written out in full has at
  /// most 1,077 characters, so this refuses only what nobody means.
  static let numberBytes = 4096

  private var start: UnsafePointer<UInt8>
  private var next: UnsafePointer<UInt8>
  private var end: UnsafePointer<UInt8>
  /// Where `start` lies in the text.
  private var startOffset = 0
  private var line = 1
  /// The offset of the line's first byte, plus the bytes of the line that continue a scalar: what an
  /// offset exceeds this by is a column.
  private var columnBase = 0

  private let buffer: UnsafeMutableBufferPointer<UInt8>?
  private let source: Source?
  private var sourceEnded: Bool
  private var scratch = [UInt8]()
  /// The packed form of a short string: its tag, then its bytes.
  private let packed = UnsafeMutablePointer<UInt8>.allocate(
    capacity: 8 + PackedScalar.shortStringByteCountMax)

  /// Reads from memory, which must stay as it is while the scanner lives.
  init(bytes: UnsafeRawBufferPointer) {
    // An empty buffer may have no address; any address does for zero bytes.
    let count = bytes.count
    let base =
      bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    start = base.assumingMemoryBound(to: UInt8.self)
    next = start
    end = start + count
    buffer = nil
    source = nil
    sourceEnded = true
  }

  /// Reads from `source`, which fills a part of what it gets from the front and returns how much;
  /// 0 ends the text.
  init(bufferBytes: Int, source: @escaping Source) {
    let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(
      capacity: max(bufferBytes, 2 * Self.numberBytes))
    start = UnsafePointer(buffer.baseAddress.unsafelyUnwrapped)
    next = start
    end = start
    self.buffer = buffer
    self.source = source
    sourceEnded = false
  }

  deinit {
    buffer?.deallocate()
    packed.deallocate()
  }

  // MARK: Place

  /// Bytes read so far.
  var offset: Int { startOffset + (next - start) }

  var position: JSONPosition { position(of: next) }

  private func position(of place: UnsafePointer<UInt8>) -> JSONPosition {
    let offset = startOffset + (place - start)
    return JSONPosition(offset: offset, line: line, column: offset - columnBase + 1)
  }

  func failure(
    _ message: String, kind: JSONError.Kind = .syntax, at position: JSONPosition? = nil
  ) -> JSONFailure {
    .text(JSONError(kind, message, at: position ?? self.position))
  }

  // MARK: Bytes

  /// Reads on behind what is unread, which moves to the buffer's front. False at the end of the text.
  private mutating func refill() throws(JSONFailure) -> Bool {
    guard !sourceEnded, let buffer, let source else { return false }
    let rest = end - next
    let base = buffer.baseAddress.unsafelyUnwrapped
    if rest > 0 { base.update(from: next, count: rest) }
    startOffset += next - start
    next = UnsafePointer(base)
    end = next + rest
    let free = UnsafeMutableRawBufferPointer(
      rebasing: UnsafeMutableRawBufferPointer(buffer)[rest...])
    guard !free.isEmpty else { return false }
    let count: Int
    do { count = try source(free) } catch { throw .outside(error) }
    guard count > 0 else {
      sourceEnded = true
      return false
    }
    precondition(count <= free.count, "a source returned more than it was asked for")
    end += count
    return true
  }

  /// Makes `count` bytes lie together at `next`; false where the text ends before.
  @inline(__always)
  private mutating func ensure(_ count: Int) throws(JSONFailure) -> Bool {
    while end - next < count {
      guard try refill() else { return false }
    }
    return true
  }

  /// Skips white space; the byte behind it, or nil at the end of the text.
  @inline(__always)
  mutating func peek() throws(JSONFailure) -> UInt8? {
    if next < end, next.pointee > UInt8(ascii: " ") { return next.pointee }
    return try peekSlowly()
  }

  @inline(never)
  private mutating func peekSlowly() throws(JSONFailure) -> UInt8? {
    repeat {
      var place = next
      while place < end {
        switch place.pointee {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): place += 1
        case UInt8(ascii: "\n"):
          place += 1
          line += 1
          columnBase = startOffset + (place - start)
        default:
          next = place
          return place.pointee
        }
      }
      next = place
    } while try refill()
    return nil
  }

  /// Steps over the byte that ``peek()`` returned.
  @inline(__always)
  mutating func advance() { next += 1 }

  // MARK: Literals and numbers

  /// Steps over `literal`, of which the first byte was seen.
  mutating func literal(_ literal: StaticString) throws(JSONFailure) {
    let count = literal.utf8CodeUnitCount
    _ = try ensure(count + 1)
    let available = min(end - next, count)
    var same = 0
    while same < available, next[same] == literal.utf8Start[same] { same += 1 }
    let follower = end - next > same ? next[same] : UInt8(ascii: ",")
    guard same == count, !Self.isWordByte(follower) else {
      throw failure("expected \(literal)")
    }
    next += count
  }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Steps over a number of which the first byte, a digit or a minus sign, was seen.
  mutating func number() throws(JSONFailure) -> Number {
    // Nearly always the number lies in the buffer with something behind it.
    var length = JSONNumber.length(next, end)
    while length == end - next {
      guard length <= Self.numberBytes, try refill() else { break }
      length = JSONNumber.length(next, end)
    }
    guard length <= Self.numberBytes else {
      throw failure("the number has more than \(Self.numberBytes) characters")
    }
    switch JSONNumber.parse(UnsafeBufferPointer(start: next, count: length)) {
    case .number(let number):
      next += length
      return number
    case .outOfRange: throw failure("the number is too large for a double")
    case .malformed(let index, let message): throw failure(message, at: position(of: next + index))
    }
  }

  // MARK: Strings

  /// Steps over a string of which the opening quote was seen, and gives its UTF-8 to `body`; the bytes
  /// are valid only there.
  @inline(__always)
  mutating func string<Result>(
    limit: Int, _ what: StaticString, _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) throws(JSONFailure) -> Result {
    let opening = position
    next += 1
    let place = Self.plainRun(next, end)
    if place < end, place.pointee == UInt8(ascii: "\""), place - next <= limit {
      let result = body(UnsafeBufferPointer(start: next, count: place - next))
      next = place + 1
      return result
    }
    return try stringSlowly(limit: limit, what, opening, body)
  }

  /// Steps over a short string without escapes that lies in the buffer, of which the opening quote was
  /// seen.
  ///
  /// - Returns: its packed form, valid until the next call; nil, and nothing is stepped over, if it is
  ///   no such string.
  @inline(__always)
  mutating func shortString() -> UnsafeRawBufferPointer? {
    let first = next + 1
    let place = Self.plainRun(first, end)
    let count = place - first
    guard place < end, place.pointee == UInt8(ascii: "\""),
      count <= PackedScalar.shortStringByteCountMax
    else { return nil }
    packed.pointee = PackedScalar.stringTag + UInt8(truncatingIfNeeded: count)
    (packed + 1).update(from: first, count: count)
    next = place + 1
    return UnsafeRawBufferPointer(start: packed, count: 1 + count)
  }

  @inline(never)
  private mutating func stringSlowly<Result>(
    limit: Int, _ what: StaticString, _ opening: JSONPosition,
    _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) throws(JSONFailure) -> Result {
    scratch.removeAll(keepingCapacity: scratch.capacity <= 1 << 16)
    var gathered = false
    var run = next
    var place = next
    while true {
      place = Self.plainRun(place, end)
      if place == end {
        gather(from: run, to: place)
        gathered = true
        next = place
        guard scratch.count <= limit else { throw tooLong(what, limit, opening) }
        guard try refill() else { throw failure("the string is not closed", at: opening) }
        run = next
        place = next
        continue
      }
      let byte = place.pointee
      if byte == UInt8(ascii: "\"") {
        let result: Result
        if gathered {
          gather(from: run, to: place)
          guard scratch.count <= limit else { throw tooLong(what, limit, opening) }
          result = scratch.withUnsafeBufferPointer(body)
        } else {
          guard place - run <= limit else { throw tooLong(what, limit, opening) }
          result = body(UnsafeBufferPointer(start: run, count: place - run))
        }
        next = place + 1
        return result
      }
      if byte == UInt8(ascii: "\\") {
        gather(from: run, to: place)
        gathered = true
        next = place
        try escape()
        guard scratch.count <= limit else { throw tooLong(what, limit, opening) }
        run = next
        place = next
        continue
      }
      guard byte >= 0x80 else {
        throw failure(
          "the control character U+\(JSONText.hex(UInt32(byte), digits: 4)) must be escaped",
          at: position(of: place))
      }
      if end - place < 4, !sourceEnded {
        gather(from: run, to: place)
        gathered = true
        next = place
        _ = try ensure(4)
        run = next
        place = next
      }
      // One sequence after the other: texts in other scripts are long runs of them.
      repeat {
        let length = UTF8Sequence.length(place, end)
        guard length > 0 else { throw failure("not UTF-8", at: position(of: place)) }
        place += length
        columnBase += length - 1
      } while end - place >= 4 && place.pointee >= 0x80
    }
  }

  private func tooLong(_ what: StaticString, _ limit: Int, _ opening: JSONPosition) -> JSONFailure {
    failure(
      "\(what) is longer than \(limit) bytes", kind: .data(.invalidData), at: opening)
  }

  private mutating func gather(from run: UnsafePointer<UInt8>, to place: UnsafePointer<UInt8>) {
    scratch.append(contentsOf: UnsafeBufferPointer(start: run, count: place - run))
  }

  /// Steps over one escape, the backslash of which is next, and gathers what it means.
  private mutating func escape() throws(JSONFailure) {
    let place = position
    guard try ensure(2) else { throw failure("the string ends in an escape", at: place) }
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
      let unit = try hexUnit(place)
      guard unit & 0xF800 == 0xD800 else {
        gather(scalar: unit)
        return
      }
      guard unit < 0xDC00, try ensure(2), next[0] == UInt8(ascii: "\\"),
        next[1] == UInt8(ascii: "u")
      else { throw loneSurrogate(unit, place) }
      next += 2
      let low = try hexUnit(place)
      guard low & 0xFC00 == 0xDC00 else { throw loneSurrogate(unit, place) }
      gather(scalar: 0x10000 + (unit & 0x3FF) << 10 + low & 0x3FF)
    default: throw failure("no such escape", at: place)
    }
  }

  private func loneSurrogate(_ unit: UInt32, _ place: JSONPosition) -> JSONFailure {
    failure("\\u\(JSONText.hex(unit, digits: 4)) is half of a surrogate pair", at: place)
  }

  private mutating func hexUnit(_ place: JSONPosition) throws(JSONFailure) -> UInt32 {
    guard try ensure(4) else { throw failure("\\u needs four hexadecimal digits", at: place) }
    var unit: UInt32 = 0
    for index in 0..<4 {
      let byte = next[index]
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: throw failure("\\u needs four hexadecimal digits", at: place)
      }
      unit = unit << 4 | UInt32(digit)
    }
    next += 4
    return unit
  }

  /// Appends a scalar that is no surrogate.
  private mutating func gather(scalar: UInt32) {
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

  /// The first byte at or behind `place` that is not plain: a quote, a backslash, a control
  /// character or, if asked for, not ASCII. Eight bytes at a time: the tests are the classic ones for
  /// «has a byte equal to» and «has a byte less than», whose lowest hit is exact.
  @inline(__always)
  static func plainRun(
    _ place: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, asciiOnly: Bool = true
  ) -> UnsafePointer<UInt8> {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    var place = place
    while end - place >= 8 {
      let word = UInt64(
        littleEndian: UnsafeRawPointer(place).loadUnaligned(as: UInt64.self))
      let quote = word ^ (ones &* 0x22)
      let backslash = word ^ (ones &* 0x5C)
      let hits =
        (quote &- ones) & ~quote | (backslash &- ones) & ~backslash
        | (word &- ones &* 0x20) & ~word | (asciiOnly ? word : 0)
      let found = hits & highs
      if found != 0 { return place + found.trailingZeroBitCount >> 3 }
      place += 8
    }
    while place < end {
      let byte = place.pointee
      if byte < 0x20 || byte == 0x22 || byte == 0x5C || asciiOnly && byte >= 0x80 { return place }
      place += 1
    }
    return place
  }
}

/// One UTF-8 sequence by the table of the Unicode standard (well-formed byte sequences, table 3-7).
enum UTF8Sequence {
  /// The bytes of the sequence of two to four bytes at `place`, or 0 where there is none.
  @inline(__always)
  static func length(_ place: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    let available = end - place
    guard available >= 2 else { return 0 }
    let second = place[1]
    switch place[0] {
    case 0xC2...0xDF:
      return second & 0xC0 == 0x80 ? 2 : 0
    case let lead where lead & 0xF0 == 0xE0:
      guard available >= 3, second & 0xC0 == 0x80, place[2] & 0xC0 == 0x80 else { return 0 }
      if lead == 0xE0 && second < 0xA0 || lead == 0xED && second > 0x9F { return 0 }
      return 3
    case let lead where lead >= 0xF0 && lead <= 0xF4:
      guard available >= 4, second & 0xC0 == 0x80, place[2] & 0xC0 == 0x80,
        place[3] & 0xC0 == 0x80
      else { return 0 }
      if lead == 0xF0 && second < 0x90 || lead == 0xF4 && second > 0x8F { return 0 }
      return 4
    default: return 0
    }
  }
}

/// Small pieces of text.
enum JSONText {
  static func hex(_ value: UInt32, digits: Int) -> String {
    let text = String(value, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
  }
}
