/// The raw bytes of a chunk of pages, field by field; `PageImageWriter` describes them. For tools.
///
/// Unlike `ChunkPages` it shows as much of damaged bytes as it can decode, and connects nothing.
package struct AnnotatedPages: Sendable {
  package struct Field: Sendable {
    /// Among the raw bytes of the chunk.
    package var offset: Int
    package var bytes: [UInt8]
    package var name: String
    package var value: String
  }

  package struct PageFields: Sendable {
    package var offset: Int
    /// As "leaf page".
    package var kind = ""
    package var fields: [Field] = []
  }

  /// In the order of the chunk.
  package private(set) var pages: [PageFields] = []
  /// Why the bytes from the end of the last field on are no page; nil if all were read.
  package private(set) var problem: String?

  private struct Fault: Error {
    var expected: String
  }

  package init(_ bytes: UnsafeRawBufferPointer) {
    var offset = 0
    while offset < bytes.count, problem == nil {
      pages.append(PageFields(offset: offset))
      do throws(Fault) {
        try read(bytes, &offset)
      } catch {
        problem = "expected \(error.expected) at raw offset \(offset)"
      }
    }
  }

  // MARK: A page

  private mutating func read(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(Fault) {
    let head = bytes[offset]
    let hasReferences = head & PageImageWriter.referencesFlag != 0
    guard let kind = PageHeader.Kind(rawValue: head & ~PageImageWriter.referencesFlag),
      let name = kind.pageName
    else { throw Fault(expected: "the kind of a page") }
    pages[pages.count - 1].kind = name
    add(
      "kind", name + (hasReferences ? ", with pages below" : ""), at: offset..<offset + 1,
      of: bytes)
    offset += 1
    let count = kind == .box ? 1 : try number("entries", bytes, &offset)
    let keyByteCount = try number("bytes of keys", bytes, &offset)
    let valueByteCount = try number("bytes of values", bytes, &offset)
    guard keyByteCount <= bytes.count - offset,
      valueByteCount <= bytes.count - offset - keyByteCount
    else { throw Fault(expected: "\(keyByteCount) and \(valueByteCount) bytes") }
    let keysEnd = offset + keyByteCount
    let valuesEnd = keysEnd + valueByteCount
    for index in 0..<count { try readKey(index, of: kind, bytes, &offset, upTo: keysEnd) }
    guard offset == keysEnd else { throw Fault(expected: "the end of the keys") }
    var refers: [Bool] = []
    for index in 0..<count {
      refers.append(
        kind == .inner ? true : try readValue(index, bytes, &offset, upTo: valuesEnd))
    }
    guard offset == valuesEnd else { throw Fault(expected: "the end of the values") }
    guard hasReferences else { return }
    let others = try number("pages in other chunks", bytes, &offset)
    guard others > 0 else { return }
    for (index, refers) in refers.enumerated() where refers {
      try readReference(index, bytes, &offset)
    }
  }

  private mutating func readKey(
    _ index: Int, of kind: PageHeader.Kind, _ bytes: UnsafeRawBufferPointer, _ offset: inout Int,
    upTo end: Int
  ) throws(Fault) {
    guard let (count, prefix) = Varint.read(bytes, at: offset), count <= Limits.keyBytes,
      count <= end - offset - prefix
    else { throw Fault(expected: "a key") }
    let range = offset..<offset + prefix + count
    let ordered = UnsafeRawBufferPointer(rebasing: bytes[(offset + prefix)..<range.upperBound])
    let text: String
    if ordered.isEmpty {
      text = kind == .box ? "none, of a box" : "empty"
    } else if let key = Key(orderedBytes: ordered) {
      text = JSONWriter.string(Node(.string(key.string)))
    } else {
      text = kind == .inner ? "the beginning of a key" : "no legal key"
    }
    add(kind == .inner ? "bound \(index)" : "key \(index)", text, at: range, of: bytes)
    offset = range.upperBound
  }

  /// - Returns: whether the entry has a page below it.
  private mutating func readValue(
    _ index: Int, _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, upTo end: Int
  ) throws(Fault) -> Bool {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes[..<end])
    let start = offset
    var text = ""
    if offset < end, bytes[offset] == PackedScalar.priorityTag {
      var place = offset + 1
      guard let priority = PackedScalar.read(bytes, at: &place) else {
        throw Fault(expected: "a priority")
      }
      text = "priority \(JSONWriter.string(Node(priority))), "
      offset = place
    }
    let refers = offset < end && bytes[offset] == Pages.referenceTag
    if refers {
      text += "a page below"
      offset += 1
    } else {
      let scalar =
        PackedScalar.read(bytes, at: &offset) ?? PackedScalar.readBytes(bytes, at: &offset)
      guard let scalar else {
        throw Fault(expected: "a leaf")
      }
      text += JSONWriter.string(Node(scalar))
    }
    add("value \(index)", text, at: start..<offset, of: bytes)
    return refers
  }

  private mutating func readReference(
    _ index: Int, _ bytes: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(Fault) {
    let start = offset
    var numbers: [Int] = []
    func next() throws(Fault) -> Int {
      guard let (value, count) = Varint.read(bytes, at: offset) else {
        throw Fault(expected: "a reference")
      }
      offset += count
      return value
    }
    numbers.append(try next())
    if numbers[0] == 0 {
      return add("page below \(index)", "in this chunk", at: start..<offset, of: bytes)
    }
    for _ in 0..<4 { numbers.append(try next()) }
    guard let shape = PageShape(code: numbers[0], depth: min(numbers[4], Limits.depth)) else {
      throw Fault(expected: "the shape of a page")
    }
    let level = shape.kind == .inner ? " of level \(shape.level)" : ""
    add(
      "page below \(index)",
      "\(shape.kind.pageName ?? "page")\(level), page \(numbers[2]) of chunk \(numbers[1]), "
        + "\(numbers[3] >> 1) children\(numbers[3] & 1 == 1 ? " with priorities" : ""), "
        + "\(numbers[4]) levels", at: start..<offset, of: bytes)
  }

  // MARK: Fields

  private mutating func number(
    _ name: String, _ bytes: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(Fault) -> Int {
    guard let (value, count) = Varint.read(bytes, at: offset) else { throw Fault(expected: name) }
    add(name, "\(value)", at: offset..<offset + count, of: bytes)
    offset += count
    return value
  }

  private mutating func add(
    _ name: String, _ value: String, at range: Range<Int>, of bytes: UnsafeRawBufferPointer
  ) {
    pages[pages.count - 1].fields.append(
      Field(offset: range.lowerBound, bytes: Array(bytes[range]), name: name, value: value))
  }
}

extension PageHeader.Kind {
  fileprivate var pageName: String? {
    switch self {
    case .leaf: "leaf page"
    case .inner: "inner page"
    case .box: "box"
    case .stub: nil
    }
  }
}
