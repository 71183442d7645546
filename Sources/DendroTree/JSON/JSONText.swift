/// The text of a node as JSON, made in parts, as `JSONWriter` writes it in one go.
///
/// For answers that are sent while they are made: between two parts nothing but the path to the next child, and to
/// the rest of a long string, is kept. A value; one thread at a time.
package struct JSONText: Sendable {
  private let style: JSONStyle
  private var root: Node?
  private var levels: [Level] = []
  private var output: [UInt8] = []
  /// A string that is written in parts. Its text comes after `ahead` and before `output`.
  private var long: LongString?
  private var ahead: [UInt8] = []

  /// Unchecked: see `Page`.
  private struct LongString: @unchecked Sendable {
    /// The box of the leaf.
    let box: Page
    let byteCount: Int
    var offset = 0
    /// Strings up to this size are written at once.
    static let byteCountMin = 16 << 10
  }

  private struct Level: Sendable {
    var children: Node.Children.Iterator
    let isArray: Bool
    let priority: Scalar?
    var isFirst = true
    /// The index of the array's next element.
    var nextIndex = 0
    /// A child that comes after gaps of the array, which were not all written yet.
    var waiting: (key: Key, node: Node)?
  }

  package init(_ node: Node, style: JSONStyle = JSONStyle()) {
    root = node
    self.style = style
  }

  /// Whether all of the text was returned.
  package var isAtEnd: Bool { root == nil && levels.isEmpty && output.isEmpty }

  /// The bytes of a long string that are still to be written. It is kept in memory until then.
  package var keptByteCount: Int { long.map { $0.byteCount - $0.offset } ?? 0 }

  /// Returns the next part: about `byteCount` bytes, or some more; empty at the end.
  package mutating func next(byteCount: Int = 1 << 16) -> [UInt8] {
    if let root {
      self.root = nil
      begin(root)
    }
    while output.count < byteCount, !levels.isEmpty, long == nil { step() }
    var part: [UInt8] = []
    guard long != nil else {
      swap(&part, &output)
      return part
    }
    swap(&part, &ahead)
    continueString(byteCount - part.count, to: &part)
    return part
  }

  // MARK: Long strings

  /// Begins a leaf whose string is long.
  ///
  /// - Returns: false for other nodes.
  private mutating func beginString(_ node: Node) -> Bool {
    guard case .page(let box) = node.content, box.kind == .box,
      let count = box.withBoxedString(\.count), count >= LongString.byteCountMin
    else { return false }
    let priority = style.form.hasPriorities ? node.priority : nil
    if priority != nil {
      put("{")
      line(below: 1)
      name(".value")
    }
    put("\"")
    swap(&ahead, &output)
    long = LongString(box: box, byteCount: count)
    put("\"")
    if let priority { end(leafWith: priority) }
    return true
  }

  private mutating func continueString(_ byteCount: Int, to part: inout [UInt8]) {
    guard let string = long else { return }
    let end = string.box.withBoxedString { bytes -> Int? in
      let end = min(bytes.count, string.offset + max(1, byteCount))
      JSONText.append(
        escaping: UnsafeRawBufferPointer(rebasing: bytes[string.offset..<end]), to: &part)
      return end < bytes.count ? end : nil
    }
    if let end = end.flatMap({ $0 }) { long?.offset = end } else { long = nil }
  }

  /// Writes a leaf or opens a branch.
  private mutating func begin(_ node: Node) {
    guard let page = node.branch else {
      if beginString(node) { return }
      guard let scalar = node.scalar else { return put("null") }
      return leaf(scalar, style.form.hasPriorities ? node.priority : nil)
    }
    let priority = style.form.hasPriorities ? node.priority : nil
    let isArray = priority == nil && style.form.hasArrays && page.access.arrayCount != nil
    put(isArray ? "[" : "{")
    levels.append(
      Level(children: node.children.makeIterator(), isArray: isArray, priority: priority))
    line()
  }

  private mutating func step() {
    let top = levels.count - 1
    let child = levels[top].waiting ?? levels[top].children.next()
    levels[top].waiting = nil
    guard let child else { return end() }
    if levels[top].isFirst { levels[top].isFirst = false } else { separate() }
    if levels[top].isArray {
      let index = levels[top].nextIndex
      levels[top].nextIndex += 1
      if let own = child.key.arrayIndex, own > index {
        levels[top].waiting = child
        return put("null")
      }
    } else {
      name(child.key.string)
    }
    begin(child.node)
  }

  private mutating func end() {
    guard let level = levels.last else { return }
    if let priority = level.priority {
      separate()
      name(".priority")
      scalar(priority)
    }
    levels.removeLast()
    line()
    put(level.isArray ? "]" : "}")
  }

  private mutating func leaf(_ value: Scalar, _ priority: Scalar?) {
    guard let priority else { return scalar(value) }
    put("{")
    line(below: 1)
    name(".value")
    scalar(value)
    end(leafWith: priority)
  }

  private mutating func end(leafWith priority: Scalar) {
    put(",")
    line(below: 1)
    name(".priority")
    scalar(priority)
    line()
    put("}")
  }

  // MARK: Tokens

  private mutating func put(_ text: StaticString) {
    output.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func separate() {
    put(",")
    line()
  }

  private mutating func line(below: Int = 0) {
    guard style.isPretty else { return }
    output.append(UInt8(ascii: "\n"))
    output.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * (levels.count + below)))
  }

  private mutating func name(_ name: String) {
    JSONText.append(string: name, to: &output)
    put(style.isPretty ? ": " : ":")
  }

  private mutating func scalar(_ scalar: Scalar) { JSONText.append(scalar, to: &output) }

  // MARK: Scalars

  /// Appends a scalar as JSON.
  package static func append(_ scalar: Scalar, to output: inout [UInt8]) {
    switch scalar {
    case .bool(let value): output.append(contentsOf: (value ? "true" : "false").utf8)
    case .integer(let value): number(&output) { JSONNumber.write(value, to: $0) }
    case .double(let value): number(&output) { JSONNumber.write(value, to: $0) }
    case .string(let text): append(string: text, to: &output)
    case .bytes(let bytes): append(string: hexadecimal(bytes), to: &output)
    }
  }

  private static func number(
    _ output: inout [UInt8], _ write: (UnsafeMutablePointer<UInt8>) -> Int
  ) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: JSONNumber.byteCountMax) { digits in
      let start = digits.baseAddress.unsafelyUnwrapped
      output.append(contentsOf: UnsafeBufferPointer(start: start, count: write(start)))
    }
  }

  /// Appends a string with its quotation marks, with the escapes that RFC 8259 requires and no others.
  package static func append(string text: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    var text = text
    text.withUTF8 { append(escaping: UnsafeRawBufferPointer($0), to: &output) }
    output.append(UInt8(ascii: "\""))
  }

  /// Appends UTF-8, or a part of it, with the escapes of strings.
  private static func append(escaping bytes: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    bytes.withMemoryRebound(to: UInt8.self) { bytes in
      guard var run = bytes.baseAddress else { return }
      let end = run + bytes.count
      while true {
        let stop = JSONScanner.endOfPlainRun(run, end, asciiOnly: false)
        output.append(contentsOf: UnsafeBufferPointer(start: run, count: stop - run))
        guard stop < end else { return }
        escape(stop.pointee, to: &output)
        run = stop + 1
      }
    }
  }

  private static func escape(_ byte: UInt8, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): output.append(byte)
    case 0x08: output.append(UInt8(ascii: "b"))
    case 0x09: output.append(UInt8(ascii: "t"))
    case 0x0A: output.append(UInt8(ascii: "n"))
    case 0x0C: output.append(UInt8(ascii: "f"))
    case 0x0D: output.append(UInt8(ascii: "r"))
    default:
      output.append(contentsOf: (byte < 0x10 ? "u000" : "u001").utf8)
      let digit = byte & 0x0F
      output.append(
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}
