/// Formats JSON into a buffer, and passes the buffer to a sink when it is full.
///
/// Unsafe memory: the value owns `buffer`, whose first `count` bytes are written. Each method calls
/// `reserve` or flushes before it writes.
struct JSONOutput: ~Copyable {
  private static let capacity = 1 << 16

  let style: JSONStyle
  private let sink: (UnsafeRawBufferPointer) throws -> Void
  private let buffer: UnsafeMutablePointer<UInt8>
  private var count = 0
  private var level = 0

  init(style: JSONStyle, sink: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.style = style
    self.sink = sink
    buffer = .allocate(capacity: Self.capacity)
  }

  deinit { buffer.deallocate() }

  mutating func flush() throws {
    guard count > 0 else { return }
    let bytes = UnsafeRawBufferPointer(start: buffer, count: count)
    count = 0
    try sink(bytes)
  }

  // MARK: Punctuation

  mutating func open(_ bracket: StaticString) throws {
    try put(bracket)
    level += 1
    try line()
  }

  mutating func separate() throws {
    try put(",")
    try line()
  }

  mutating func close(_ bracket: StaticString) throws {
    level -= 1
    try line()
    try put(bracket)
  }

  /// Starts a new line, if the style is pretty.
  private mutating func line() throws {
    guard style.isPretty else { return }
    try reserve(1 + 2 * level)
    buffer[count] = UInt8(ascii: "\n")
    (buffer + count + 1).initialize(repeating: UInt8(ascii: " "), count: 2 * level)
    count += 1 + 2 * level
  }

  mutating func name(_ name: StaticString) throws {
    try put("\"")
    try put(name)
    try put("\"")
    try colon()
  }

  private mutating func colon() throws {
    try put(":")
    if style.isPretty { try put(" ") }
  }

  // MARK: Scalars and keys

  mutating func scalar(_ scalar: Scalar) throws {
    switch scalar {
    case .bool(true): try put("true")
    case .bool(false): try put("false")
    case .integer(let value):
      try reserve(JSONNumber.byteCountMax)
      count += JSONNumber.write(value, to: buffer + count)
    case .double(let value):
      try reserve(JSONNumber.byteCountMax)
      count += JSONNumber.write(value, to: buffer + count)
    case .string(let text):
      try put("\"")
      try escaped(text)
      try put("\"")
    case .bytes(let bytes):
      try put("\"")
      try escaped(hexadecimal(bytes))
      try put("\"")
    }
  }

  /// Writes a key, which is given by its ordered bytes.
  mutating func key(_ ordered: UnsafeRawBufferPointer) throws {
    try put("\"")
    if let start = ordered.baseAddress, KeyCoding.isPlainASCII(ordered) {
      try escaped(
        UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: ordered.count))
    } else {
      try escaped(KeyCoding.string(orderedBytes: ordered))
    }
    try put("\"")
    try colon()
  }

  private mutating func escaped(_ text: consuming String) throws {
    let failure = text.withUTF8 { bytes -> (any Error)? in
      do {
        try escaped(bytes)
        return nil
      } catch { return error }
    }
    if let failure { throw failure }
  }

  /// Writes UTF-8 with the escapes that RFC 8259 requires and no others.
  mutating func escaped(_ bytes: UnsafeBufferPointer<UInt8>) throws {
    guard var run = bytes.baseAddress else { return }
    let end = run + bytes.count
    var cursor = run
    while true {
      cursor = JSONScanner.endOfPlainRun(cursor, end, asciiOnly: false)
      try put(UnsafeBufferPointer(start: run, count: cursor - run))
      guard cursor < end else { return }
      switch cursor.pointee {
      case UInt8(ascii: "\""): try put("\\\"")
      case UInt8(ascii: "\\"): try put("\\\\")
      case 0x08: try put("\\b")
      case 0x09: try put("\\t")
      case 0x0A: try put("\\n")
      case 0x0C: try put("\\f")
      case 0x0D: try put("\\r")
      case let byte:
        try put(byte < 0x10 ? "\\u000" : "\\u001")
        let digit = byte & 0x0F
        try reserve(1)
        buffer[count] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
        count += 1
      }
      cursor += 1
      run = cursor
    }
  }

  // MARK: Bytes

  /// Makes room for `byteCount` bytes, at most `capacity`.
  @inline(__always)
  private mutating func reserve(_ byteCount: Int) throws {
    if Self.capacity - count < byteCount { try flush() }
  }

  @inline(__always)
  mutating func put(_ text: StaticString) throws {
    let length = text.utf8CodeUnitCount
    try reserve(length)
    (buffer + count).update(from: text.utf8Start, count: length)
    count += length
  }

  @inline(__always)
  mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) throws {
    var rest = bytes
    while rest.count > Self.capacity - count {
      let part = Self.capacity - count
      (buffer + count).update(from: rest.baseAddress.unsafelyUnwrapped, count: part)
      count += part
      rest = UnsafeBufferPointer(rebasing: rest[part...])
      try flush()
    }
    if let base = rest.baseAddress {
      (buffer + count).update(from: base, count: rest.count)
      count += rest.count
    }
  }
}

extension KeyCoding {
  /// Whether ordered bytes are the key's own text: it is ASCII, and the key is no integer key.
  @inline(__always)
  fileprivate static func isPlainASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let first = bytes.first, first >= 0x20 else { return false }
    var index = 0
    while index &+ 8 <= bytes.count {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      if word & 0x8080_8080_8080_8080 != 0 { return false }
      index &+= 8
    }
    while index < bytes.count {
      if bytes[index] >= 0x80 { return false }
      index &+= 1
    }
    return true
  }
}
