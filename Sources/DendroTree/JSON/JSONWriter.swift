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
/// them (`JSONNumber`). Reading an export gives an equal node; reading the value form, the same
/// without priorities.
package enum JSONWriter {
  /// Writes a node piece by piece; the text never stands in memory as a whole.
  ///
  /// - `sink`: gets the text in order, at most 64 KiB at once; the bytes are valid only
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
    guard let page = node.branch else {
      guard let scalar = node.scalar else { return try put("null") }
      return try leaf(scalar, priority: node.priority)
    }
    try branch(page.access, priority: node.priority)
    withExtendedLifetime(page) {}
  }

  private mutating func leaf(_ scalar: Scalar, priority: Scalar?) throws {
    guard style.form == .export, let priority else { return try self.scalar(scalar) }
    try open("{")
    try name(".value")
    try self.scalar(scalar)
    try separate()
    try name(".priority")
    try self.scalar(priority)
    try close("}")
  }

  /// The branch of a root page.
  private mutating func branch(_ page: PageAccess, priority: Scalar?) throws {
    let priority = style.form == .export ? priority : nil
    if priority == nil, page.arrayCount != nil {
      try open("[")
      var index = 0
      try elements(of: page, &index)
      try close("]")
      return
    }
    try open("{")
    var isFirst = true
    try members(of: page, &isFirst)
    if let priority {
      try separate()
      try name(".priority")
      try scalar(priority)
    }
    try close("}")
  }

  private mutating func members(of page: PageAccess, _ isFirst: inout Bool) throws {
    for index in 0..<page.count {
      if page.kind == .inner {
        try members(of: PageAccess(page.reference(index)), &isFirst)
        continue
      }
      if isFirst { isFirst = false } else { try separate() }
      let key = page.key(index)
      try self.key(UnsafeRawBufferPointer(start: key.start, count: key.count))
      try entry(index, of: page)
    }
  }

  private mutating func elements(of page: PageAccess, _ next: inout Int) throws {
    for index in 0..<page.count {
      if page.kind == .inner {
        try elements(of: PageAccess(page.reference(index)), &next)
        continue
      }
      let key = page.key(index)
      let place = KeyCoding.arrayIndex(UnsafeRawBufferPointer(start: key.start, count: key.count))
      while next < place ?? next {
        if next > 0 { try separate() }
        try put("null")
        next += 1
      }
      if next > 0 { try separate() }
      try entry(index, of: page)
      next += 1
    }
  }

  /// The value of an entry of a leaf page.
  private mutating func entry(_ index: Int, of page: PageAccess) throws {
    let address = page.valueStart(index)
    let tag = address.load(as: UInt8.self)
    // Most values are short strings: from the page into the text, without a value in between.
    if tag >= PackedScalar.stringTag, tag < PackedScalar.longStringTag {
      let count = Int(tag - PackedScalar.stringTag)
      let utf8 = (address + 1).assumingMemoryBound(to: UInt8.self)
      try put("\"")
      try escaped(UnsafeBufferPointer(start: utf8, count: count))
      return try put("\"")
    }
    if let child = page.branchReference(index), tag != PackedScalar.priorityTag {
      return try branch(PageAccess(child), priority: nil)
    }
    try node(page.node(index))
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

  /// A key from its ordered bytes.
  private mutating func key(_ ordered: UnsafeRawBufferPointer) throws {
    try put("\"")
    if let start = ordered.baseAddress, KeyCoding.isPlainASCII(ordered) {
      try escaped(
        UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: ordered.count))
    } else {
      var string = KeyCoding.string(orderedBytes: ordered)
      let failure = string.withUTF8 { bytes -> (any Error)? in
        do {
          try escaped(bytes)
          return nil
        } catch { return error }
      }
      if let failure { throw failure }
    }
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

extension PageAccess {
  /// The length of the array that the branch of this root page is in JSON, nil where it is an object:
  /// all keys are whole numbers without leading zeros, and the largest is less than twice their number.
  fileprivate var arrayCount: Int? {
    // Integer keys come first and in order, so the last one settles nearly every branch.
    var page = self
    while page.kind == .inner { page = PageAccess(page.reference(page.count - 1)) }
    guard let last = page.arrayIndex(page.count - 1), last < 2 * total, hasOnlyArrayIndices else {
      return nil
    }
    return last + 1
  }

  private var hasOnlyArrayIndices: Bool {
    for index in 0..<count {
      if kind == .inner {
        guard PageAccess(reference(index)).hasOnlyArrayIndices else { return false }
      } else if arrayIndex(index) == nil {
        return false
      }
    }
    return true
  }

  private func arrayIndex(_ index: Int) -> Int? {
    let key = key(index)
    return KeyCoding.arrayIndex(UnsafeRawBufferPointer(start: key.start, count: key.count))
  }
}

extension Key {
  /// The place in an array that this key names: a whole number of 0 or more within Int32, without
  /// sign and leading zeros.
  package var arrayIndex: Int? { withOrderedBytes { KeyCoding.arrayIndex($0) } }
}

extension KeyCoding {
  /// What ``Key/arrayIndex`` is, from ordered bytes.
  @inline(__always)
  static func arrayIndex(_ bytes: UnsafeRawBufferPointer) -> Int? {
    // The tag says how many bytes of a magnitude follow; a spelling that is not canonical has one
    // byte more.
    guard let tag = bytes.first, tag >= 0x10, tag <= 0x14, bytes.count == 1 + Int(tag - 0x10)
    else { return nil }
    var value = 0
    for byte in bytes.dropFirst() { value = value << 8 | Int(byte) }
    return value
  }

  /// Whether ordered bytes are the key's own text: no integer, and ASCII.
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
