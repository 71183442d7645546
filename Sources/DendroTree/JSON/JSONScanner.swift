/// Reads the tokens of a JSON text from memory, or from a source through a buffer of fixed size.
///
/// A token may cross the end of the buffer. Short tokens (literals, numbers, escapes, one UTF-8
/// sequence) are moved to the front of the buffer before more is read; strings are collected in
/// `scratch`. So the buffer and the longest allowed string bound the memory.
///
/// Unsafe memory: `next` lies between `start` and `end`. Both point into the caller's bytes (which
/// outlive the scanner, see ``init(bytes:)``) or into `buffer`, which the scanner owns until it is
/// destroyed. Only this file and `JSONScanner+Strings.swift` change these pointers.
struct JSONScanner: ~Copyable {
  typealias Source = (UnsafeMutableRawBufferPointer) throws -> Int

  /// The limit of one number's digits, sign, point and exponent together. A double written with all
  /// its digits has at most 1,077 characters, so the limit refuses no number that occurs in practice.
  static let numberBytes = 4096

  var start: UnsafePointer<UInt8>
  var next: UnsafePointer<UInt8>
  var end: UnsafePointer<UInt8>
  /// The offset of `start` in the text.
  private var startOffset = 0
  private var line = 1
  /// The offset of the line's first byte, plus the number of UTF-8 continuation bytes in the line so
  /// far. An offset minus this is a column, counted from 0.
  var columnBase = 0

  private let buffer: UnsafeMutableBufferPointer<UInt8>?
  private let source: Source?
  private(set) var sourceEnded: Bool
  /// The contents of a string that has escapes or crosses the end of the buffer.
  var scratch = [UInt8]()
  /// The packed form of a short string: its tag, then its bytes.
  let packed = UnsafeMutablePointer<UInt8>.allocate(
    capacity: 8 + PackedScalar.shortStringByteCountMax)

  /// Reads from memory, which must not change while the scanner lives.
  init(bytes: UnsafeRawBufferPointer) {
    // An empty buffer may have no address; for zero bytes any address will do.
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

  /// Reads from `source`, which writes bytes to the front of the buffer that it is given and returns
  /// their number; 0 ends the text.
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

  // MARK: Position

  /// The number of bytes read so far.
  var offset: Int { startOffset + (next - start) }

  var position: JSONPosition { position(of: next) }

  func position(of cursor: UnsafePointer<UInt8>) -> JSONPosition {
    let offset = startOffset + (cursor - start)
    return JSONPosition(offset: offset, line: line, column: offset - columnBase + 1)
  }

  func failure(
    _ message: String, kind: JSONError.Kind = .syntax, at position: JSONPosition? = nil
  ) -> JSONFailure {
    .text(JSONError(kind, message, at: position ?? self.position))
  }

  // MARK: Bytes

  /// Moves the unread bytes to the front of the buffer and reads more behind them.
  ///
  /// - Returns: false at the end of the text, or if the buffer is full.
  mutating func refill() throws(JSONFailure) -> Bool {
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
    do { count = try source(free) } catch { throw .closure(error) }
    guard count > 0 else {
      sourceEnded = true
      return false
    }
    precondition(count <= free.count, "a source returned more than it was asked for")
    end += count
    return true
  }

  /// Makes at least `count` bytes available at `next`; returns false if the text ends before.
  @inline(__always)
  mutating func ensure(_ count: Int) throws(JSONFailure) -> Bool {
    while end - next < count {
      guard try refill() else { return false }
    }
    return true
  }

  /// Skips white space. Returns the byte after it without consuming it, or nil at the end of the text.
  @inline(__always)
  mutating func peek() throws(JSONFailure) -> UInt8? {
    if next < end, next.pointee > UInt8(ascii: " ") { return next.pointee }
    return try peekSlowly()
  }

  @inline(never)
  private mutating func peekSlowly() throws(JSONFailure) -> UInt8? {
    repeat {
      var cursor = next
      while cursor < end {
        switch cursor.pointee {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): cursor += 1
        case UInt8(ascii: "\n"):
          cursor += 1
          line += 1
          columnBase = startOffset + (cursor - start)
        default:
          next = cursor
          return cursor.pointee
        }
      }
      next = cursor
    } while try refill()
    return nil
  }

  /// Consumes the byte that ``peek()`` returned.
  @inline(__always)
  mutating func advance() { next += 1 }

  // MARK: Literals and numbers

  /// Consumes `literal`, whose first byte is the next one.
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

  /// Consumes a number. The next byte is its first one, a digit or a minus sign.
  mutating func number() throws(JSONFailure) -> Number {
    // Unless the number ends where the buffer does, one pass finds its length.
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
}
