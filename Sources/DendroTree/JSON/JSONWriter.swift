/// How a node becomes text.
package struct JSONStyle: Hashable, Sendable {
  package enum Form: Hashable, Sendable {
    /// What applications read: priorities left out.
    case value
    /// Everything: priorities as `.priority`, a leaf that has one as `{".value": v, ".priority": p}`.
    case export
  }

  package var form: Form
  /// One entry a line, two spaces for each level; otherwise no white space at all.
  package var isPretty: Bool

  package init(_ form: Form = .value, isPretty: Bool = false) {
    self.form = form
    self.isPretty = isPretty
  }
}

/// Writes nodes as JSON (RFC 8259), in the tree's own order of keys.
///
/// A branch whose keys are whole numbers from 0, dense enough, becomes an array, with null where a
/// number is missing (the rule of Firebase's `value`); in the export form a branch that has a
/// priority does not. Nothing is `null`. Integers are written in full, doubles as JavaScript writes
/// them (``JSONNumber``). Reading an export gives an equal node; reading the value form, the same
/// without priorities.
package enum JSONWriter {
  /// Writes a node piece by piece; the text never stands in memory as a whole.
  ///
  /// - Parameter sink: gets the text in order, at most 64 KiB at once; the bytes are valid only
  ///   during the call.
  /// - Throws: what `sink` throws.
  package static func write(
    _ node: Node, style: JSONStyle = JSONStyle(),
    to sink: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try withoutActuallyEscaping(sink) { sink in
      var output = JSONOutput(style: style, sink: sink)
      try output.node(node)
      try output.flush()
    }
  }

  /// A node as text in memory.
  package static func string(_ node: Node, style: JSONStyle = JSONStyle()) -> String {
    var bytes = [UInt8]()
    do {
      try write(node, style: style) { bytes.append(contentsOf: $0) }
    } catch { fatalError("an array took no bytes: \(error)") }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The text on its way out. Unsafe memory: `buffer` is this value's own, and `count` bytes of it are
/// written; each writer makes room before it writes.
private struct JSONOutput: ~Copyable {
  private static let capacity = 1 << 16

  private let style: JSONStyle
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

  // MARK: Nodes

  mutating func node(_ node: Node) throws {
    if let scalar = node.scalar {
      if style.form == .export, let priority = node.priority {
        try open("{")
        try name(".value")
        try self.scalar(scalar)
        try put(",")
        try line()
        try name(".priority")
        try self.scalar(priority)
        try close("}")
      } else {
        try self.scalar(scalar)
      }
      return
    }
    guard !node.isEmpty else { return try put("null") }
    let priority = style.form == .export ? node.priority : nil
    if priority == nil, let count = node.arrayCount {
      try array(node, count: count)
    } else {
      try object(node, priority: priority)
    }
  }

  private mutating func object(_ node: Node, priority: Scalar?) throws {
    try open("{")
    var isFirst = true
    for (key, child) in node.children {
      if isFirst { isFirst = false } else { try separate() }
      try self.key(key)
      try self.node(child)
    }
    if let priority {
      try separate()
      try name(".priority")
      try scalar(priority)
    }
    try close("}")
  }

  private mutating func array(_ node: Node, count: Int) throws {
    try open("[")
    var index = 0
    for (key, child) in node.children {
      let place = key.arrayIndex ?? index
      while index < place {
        if index > 0 { try separate() }
        try put("null")
        index += 1
      }
      if index > 0 { try separate() }
      try self.node(child)
      index += 1
    }
    try close("]")
  }

  // MARK: Punctuation

  private mutating func open(_ bracket: StaticString) throws {
    try put(bracket)
    level += 1
    try line()
  }

  private mutating func separate() throws {
    try put(",")
    try line()
  }

  private mutating func close(_ bracket: StaticString) throws {
    level -= 1
    try line()
    try put(bracket)
  }

  private mutating func line() throws {
    guard style.isPretty else { return }
    try reserve(1 + 2 * level)
    buffer[count] = UInt8(ascii: "\n")
    (buffer + count + 1).initialize(repeating: UInt8(ascii: " "), count: 2 * level)
    count += 1 + 2 * level
  }

  private mutating func name(_ name: StaticString) throws {
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

  private mutating func scalar(_ scalar: Scalar) throws {
    switch scalar {
    case .bool(true): try put("true")
    case .bool(false): try put("false")
    case .integer(let value):
      try reserve(JSONNumber.bytes)
      count += JSONNumber.write(value, to: buffer + count)
    case .double(let value):
      try reserve(JSONNumber.bytes)
      count += JSONNumber.write(value, to: buffer + count)
    case .string(var text):
      try put("\"")
      let failure = text.withUTF8 { bytes -> (any Error)? in
        do {
          try escaped(bytes)
          return nil
        } catch { return error }
      }
      if let failure { throw failure }
      try put("\"")
    }
  }

  private mutating func key(_ key: Key) throws {
    try put("\"")
    var string = key.string
    let failure = string.withUTF8 { bytes -> (any Error)? in
      do {
        try escaped(bytes)
        return nil
      } catch { return error }
    }
    if let failure { throw failure }
    try put("\"")
    try colon()
  }

  /// Writes UTF-8 with the escapes that RFC 8259 asks for and no others.
  private mutating func escaped(_ bytes: UnsafeBufferPointer<UInt8>) throws {
    guard var run = bytes.baseAddress else { return }
    let end = run + bytes.count
    var place = run
    while true {
      place = JSONScanner.plainRun(place, end, asciiOnly: false)
      try put(UnsafeBufferPointer(start: run, count: place - run))
      guard place < end else { return }
      switch place.pointee {
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
      place += 1
      run = place
    }
  }

  // MARK: Bytes

  /// Makes room for `bytes`, at most the buffer.
  @inline(__always)
  private mutating func reserve(_ bytes: Int) throws {
    if Self.capacity - count < bytes { try flush() }
  }

  @inline(__always)
  private mutating func put(_ text: StaticString) throws {
    let length = text.utf8CodeUnitCount
    try reserve(length)
    (buffer + count).update(from: text.utf8Start, count: length)
    count += length
  }

  @inline(__always)
  private mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) throws {
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

extension Node {
  /// The length of the array that this branch is in JSON, nil where it is an object: all keys are
  /// whole numbers without leading zeros, and the largest is less than twice their number.
  package var arrayCount: Int? {
    guard isBranch else { return nil }
    // Integer keys come first and in order, so the two ends settle nearly every branch.
    var backwards = reversedChildren.makeIterator()
    guard let last = backwards.next()?.key.arrayIndex, last < 2 * childCount else { return nil }
    for (key, _) in children where key.arrayIndex == nil { return nil }
    return last + 1
  }
}

extension Key {
  /// The place in an array that this key names: a whole number of 0 or more within Int32, without
  /// sign and leading zeros.
  package var arrayIndex: Int? {
    withOrderedBytes { bytes in
      // The tag says how many bytes of a magnitude follow; a spelling that is not canonical has
      // one byte more.
      guard let tag = bytes.first, tag >= 0x10, tag <= 0x14, bytes.count == 1 + Int(tag - 0x10)
      else { return nil }
      var value = 0
      for byte in bytes.dropFirst() { value = value << 8 | Int(byte) }
      return value
    }
  }
}
