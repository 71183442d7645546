/// Reads JSON straight into nodes: RFC 8259, strictly, with the data model's own rules.
///
/// - Objects and arrays are branches; `null`, `{}`, `[]` are nothing. An array's elements get the keys
///   0, 1, 2, …; those that are nothing leave a gap.
/// - The export form is understood everywhere: `{".value": v, ".priority": p}` is a leaf with a
///   priority, `.priority` beside other keys is a branch's. `.value` beside other keys is refused, and so is
///   `.sv`: a file holds data, not requests.
/// - A whole number without point and exponent that fits Int64 is an integer, any other a double.
/// - Where an object has a key twice, the last one counts.
/// - Keys, priorities, string lengths and depth are those of ``Limits``; pseudo keys do not count as
///   depth.
///
/// What is refused is told with its place (``JSONError``). Nesting is refused beyond the depth that the
/// tree allows, so no text makes the parser recurse without bound.
package enum JSONParser {
  /// Reads a whole text from memory.
  ///
  /// - `depth`: how many keys lead to where the node will stand; 0 for the root.
  /// - Throws: ``JSONError``.
  /// - Complexity: O(n); memory: the node and the longest string.
  package static func parse(_ bytes: UnsafeRawBufferPointer, depth: Int = 0) throws(JSONError)
    -> Node
  {
    var reader = JSONReader(
      JSONScanner(bytes: bytes), depth: depth, pieceBytes: Int.max, yield: { _ in })
    do {
      return try reader.document() ?? .empty
    } catch {
      guard case .text(let error) = error else { fatalError("memory alone is read from") }
      throw error
    }
  }

  /// Reads a whole text from memory; see ``parse(_:depth:)-(UnsafeRawBufferPointer,_)``.
  package static func parse(_ text: String, depth: Int = 0) throws(JSONError) -> Node {
    var text = text
    text.makeContiguousUTF8()
    let result = text.utf8.withContiguousStorageIfAvailable { bytes in
      Result { () throws(JSONError) in
        try parse(UnsafeRawBufferPointer(bytes), depth: depth)
      }
    }
    guard let result else { fatalError("a contiguous string has storage") }
    return try result.get()
  }

  /// Reads the object of an update: its keys are paths, each with what is to stand there, null for
  /// nothing. A path may end in `.priority`; its value is a priority then.
  ///
  /// - `depth`: how many keys lead to where the update goes.
  /// - Returns: the entries in the order of the text; of equal keys the last one.
  /// - Throws: ``JSONError``. Whether the paths conflict is for ``Write/validate()``.
  package static func parseEntries(_ bytes: UnsafeRawBufferPointer, depth: Int = 0)
    throws(JSONError) -> [Write.Entry]
  {
    var reader = JSONReader(
      JSONScanner(bytes: bytes), depth: depth, pieceBytes: Int.max, yield: { _ in })
    do {
      return try reader.entries()
    } catch {
      guard case .text(let error) = error else { fatalError("memory alone is read from") }
      throw error
    }
  }

  /// Reads a text of any length and hands it on in pieces, in memory that does not grow with it.
  ///
  /// Put one after the other on an empty place, the pieces make the same node as `parse(_:depth:)`
  /// gives. An object or array is handed on whole while it is small; a larger one child by child, its
  /// priority after them. Where a key comes twice, the later piece replaces the earlier one: an
  /// empty node says that the place is to be emptied first.
  ///
  /// - Parameters:
  ///   - depth: how many keys lead to where the document will stand.
  ///   - pieceBytes: an object or array of more text than this is handed on in parts.
  ///   - bufferBytes: how much is asked of the source at once.
  ///   - source: fills a part of the buffer from the front, returns how much; 0 ends the text.
  ///   - yield: takes the pieces.
  /// - Throws: ``JSONError``, and whatever `source` and `yield` throw. Pieces that came before the
  ///   error were good.
  package static func parse(
    depth: Int = 0, pieceBytes: Int = 1 << 16, bufferBytes: Int = 1 << 20,
    source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int,
    yield: @escaping (JSONPiece) throws -> Void
  ) throws {
    var reader = JSONReader(
      JSONScanner(bufferBytes: bufferBytes, source: source), depth: depth, pieceBytes: pieceBytes,
      yield: yield)
    do {
      if let node = try reader.document() {
        try yield(JSONPiece(path: .root, content: .node(node), byteCount: reader.byteCount))
      }
    } catch JSONFailure.text(let error) {
      throw error
    } catch JSONFailure.outside(let error) {
      throw error
    }
  }
}

/// A part of a document, small enough to be one write among others.
package struct JSONPiece: Sendable {
  package enum Content: Sendable {
    /// What is at the path now; the empty node if nothing is.
    case node(Node)
    /// The priority of the branch whose children came before.
    case priority(Scalar)
  }

  /// Relative to the document.
  package var path: Path
  package var content: Content
  /// The text that the piece was, about.
  package var byteCount: Int
}

/// The recursion over one document. `levels` has the container that is being read and all around it.
struct JSONReader: ~Copyable {
  private struct Level {
    let isArray: Bool
    /// Where its text begins.
    let start: Int
    /// The children so far, until the level is split.
    var builder = NodeBuilder()
    /// Set once children are handed on one by one.
    var path: Path?
    /// Of what was handed on.
    var handedOn = HandedOnKeys()
  }

  /// Whether a key was handed on before, in memory that does not grow with the number of keys: the
  /// first ones are known, and of those that came in order the last is enough.
  private struct HandedOnKeys {
    private static let limit = 1024
    private var first = Set<Key>()
    private var largest: Key?

    mutating func insert(_ key: Key) {
      if first.count < Self.limit { first.insert(key) }
      if let largest, key < largest { return }
      largest = key
    }

    /// False only if it surely does not.
    func mayContain(_ key: Key) -> Bool {
      guard let largest, key <= largest else { return false }
      return first.count == Self.limit || first.contains(key)
    }
  }

  private var scanner: JSONScanner
  private let depth: Int
  private let pieceBytes: Int
  private let yield: (JSONPiece) throws -> Void
  private var levels = [Level]()
  /// The keys from the document to what is being read.
  private var keys = [Key]()

  init(
    _ scanner: consuming JSONScanner, depth: Int, pieceBytes: Int,
    yield: @escaping (JSONPiece) throws -> Void
  ) {
    self.scanner = scanner
    self.depth = depth
    self.pieceBytes = pieceBytes
    self.yield = yield
    levels.reserveCapacity(Limits.depth)
    keys.reserveCapacity(Limits.depth)
  }

  var byteCount: Int { scanner.offset }

  /// Reads the document; nil if it was handed on in pieces.
  mutating func document() throws(JSONFailure) -> Node? {
    do throws(JSONFailure) {
      let node = try value()
      if try scanner.peek() != nil { throw scanner.failure("nothing may follow the document") }
      return node
    } catch {
      throw located(error)
    }
  }

  /// Reads the object of an update.
  mutating func entries() throws(JSONFailure) -> [Write.Entry] {
    do throws(JSONFailure) {
      guard try scanner.peek() == UInt8(ascii: "{") else {
        throw scanner.failure("an update is an object", kind: .data(.invalidData))
      }
      scanner.advance()
      var entries = [Write.Entry]()
      /// The texts of the keys so far: the same text twice means its last value, as everywhere.
      var places = [String: Int]()
      if try scanner.peek() == UInt8(ascii: "}") {
        scanner.advance()
      } else {
        members: while true {
          let (name, entry) = try self.entry()
          if let place = places[name] {
            entries[place] = entry
          } else {
            places[name] = entries.count
            entries.append(entry)
          }
          switch try scanner.peek() {
          case UInt8(ascii: ","): scanner.advance()
          case UInt8(ascii: "}"):
            scanner.advance()
            break members
          default: throw scanner.failure("expected ',' or '}'")
          }
        }
      }
      if try scanner.peek() != nil { throw scanner.failure("nothing may follow the object") }
      return entries
    } catch {
      throw located(error)
    }
  }

  private func located(_ failure: JSONFailure) -> JSONFailure {
    guard case .text(var error) = failure else { return failure }
    error.path = Path(keys: keys).description
    return .text(error)
  }

  private mutating func entry() throws(JSONFailure) -> (name: String, Write.Entry) {
    guard try scanner.peek() == UInt8(ascii: "\"") else {
      throw scanner.failure("expected a path in quotes")
    }
    let place = scanner.position
    let name = try scanner.string(limit: Limits.stringBytes, "the path") {
      String(decoding: $0, as: UTF8.self)
    }
    let suffix = ".priority"
    let isPriority = name == suffix || name.hasSuffix("/" + suffix)
    let path: Path
    do {
      path = try Path(parsing: String(name.dropLast(isPriority ? suffix.utf8.count : 0)))
    } catch { throw scanner.failure(error.message, kind: .data(error.kind), at: place) }
    try colon()
    let action: Write.Entry.Action
    if isPriority {
      action = .setPriority(try priority())
    } else {
      for key in path.keys { try push(key, at: place) }
      let node = try value() ?? .empty
      keys.removeLast(path.count)
      action = node.isEmpty ? .remove : .set(node)
    }
    return (name, Write.Entry(path: path, action: action))
  }

  // MARK: Values

  private mutating func value() throws(JSONFailure) -> Node? {
    guard let byte = try scanner.peek() else { throw scanner.failure("the text ends too early") }
    switch byte {
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    default: return try scalar(byte).map { Node($0) } ?? .empty
    }
  }

  /// Nil for `null`.
  private mutating func scalar(_ byte: UInt8) throws(JSONFailure) -> Scalar? {
    switch byte {
    case UInt8(ascii: "\""):
      return try scanner.string(limit: Limits.stringBytes, "the string") { bytes in
        .string(String(decoding: bytes, as: UTF8.self))
      }
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      switch try scanner.number() {
      case .integer(let value): return .integer(value)
      case .double(let value): return .double(value)
      }
    case UInt8(ascii: "t"):
      try scanner.literal("true")
      return .bool(true)
    case UInt8(ascii: "f"):
      try scanner.literal("false")
      return .bool(false)
    case UInt8(ascii: "n"):
      try scanner.literal("null")
      return nil
    case 0xEF where scanner.offset == 0:
      throw scanner.failure("a JSON text has no byte order mark")
    default:
      throw scanner.failure("expected a value")
    }
  }

  private mutating func array() throws(JSONFailure) -> Node? {
    levels.append(Level(isArray: true, start: scanner.offset))
    scanner.advance()
    var index = 0
    if try scanner.peek() == UInt8(ascii: "]") {
      scanner.advance()
    } else {
      elements: while true {
        let place = scanner.position
        try push(Key(index: index), at: place)
        try child(value(), from: place.offset)
        index += 1
        switch try scanner.peek() {
        case UInt8(ascii: ","): scanner.advance()
        case UInt8(ascii: "]"):
          scanner.advance()
          break elements
        default: throw scanner.failure("expected ',' or ']'")
        }
      }
    }
    return try finish(priority: nil)
  }

  private mutating func object() throws(JSONFailure) -> Node? {
    levels.append(Level(isArray: false, start: scanner.offset))
    scanner.advance()
    /// Of the innermost optional nil means null.
    var leaf: Scalar?? = nil
    var priority: Scalar?
    var hasChildren = false
    if try scanner.peek() == UInt8(ascii: "}") {
      scanner.advance()
    } else {
      members: while true {
        guard try scanner.peek() == UInt8(ascii: "\"") else {
          throw scanner.failure("expected a key in quotes")
        }
        let place = scanner.position
        switch try name(place) {
        case .key(let key):
          guard leaf == nil else { throw mixed(place) }
          hasChildren = true
          try colon()
          try member(key, at: place)
        case .value:
          guard !hasChildren else { throw mixed(place) }
          try colon()
          leaf = .some(
            try plain(
              .invalidLeafValueType, "a .value is a string, a number, true, false or null"))
        case .priority:
          try colon()
          priority = try self.priority()
        }
        switch try scanner.peek() {
        case UInt8(ascii: ","): scanner.advance()
        case UInt8(ascii: "}"):
          scanner.advance()
          break members
        default: throw scanner.failure("expected ',' or '}'")
        }
      }
    }
    if let leaf {
      levels.removeLast()
      return leaf.map { Node($0, priority: priority) } ?? .empty
    }
    return try finish(priority: priority)
  }

  private func mixed(_ place: JSONPosition) -> JSONFailure {
    scanner.failure(
      "an object with .value has no other children", kind: .data(.invalidData), at: place)
  }

  private mutating func priority() throws(JSONFailure) -> Scalar? {
    let message = "a .priority is a number, a string or null"
    _ = try scanner.peek()
    let place = scanner.position
    let priority = try plain(.invalidData, message)
    if case .bool = priority {
      throw scanner.failure(message, kind: .data(.invalidData), at: place)
    }
    return priority
  }

  /// The value of a pseudo key.
  private mutating func plain(_ kind: ValidationError.Kind, _ message: String) throws(JSONFailure)
    -> Scalar?
  {
    guard let byte = try scanner.peek() else { throw scanner.failure("the text ends too early") }
    guard byte != UInt8(ascii: "{"), byte != UInt8(ascii: "[") else {
      throw scanner.failure(message, kind: .data(kind))
    }
    return try scalar(byte)
  }

  // MARK: Keys

  private enum Name {
    case key(Key)
    case value
    case priority
  }

  private mutating func name(_ place: JSONPosition) throws(JSONFailure) -> Name {
    // Longer than any key, so that the error names the key and not only its length.
    let result = try scanner.string(limit: Limits.stringBytes, "the key") {
      bytes -> Result<Name, ValidationError> in
      if bytes.first == UInt8(ascii: ".") {
        if bytes.elementsEqual(".value".utf8) { return .success(.value) }
        if bytes.elementsEqual(".priority".utf8) { return .success(.priority) }
        if bytes.elementsEqual(".sv".utf8) {
          return .failure(
            ValidationError(.invalidData, "a file cannot hold server values (.sv)"))
        }
      }
      return Result { () throws(ValidationError) in
        .key(try Key(trusted: UnsafeRawBufferPointer(bytes)))
      }
    }
    switch result {
    case .success(let name): return name
    case .failure(let error):
      throw scanner.failure(error.message, kind: .data(error.kind), at: place)
    }
  }

  private mutating func colon() throws(JSONFailure) {
    guard try scanner.peek() == UInt8(ascii: ":") else { throw scanner.failure("expected ':'") }
    scanner.advance()
  }

  @inline(__always)
  private mutating func push(_ key: Key, at place: JSONPosition) throws(JSONFailure) {
    guard depth + keys.count < Limits.depth else {
      throw scanner.failure(
        "the data is more than \(Limits.depth) levels deep"
          + (depth == 0 ? "" : ", \(depth) of which are the path that it goes to"),
        kind: .data(.invalidData), at: place)
    }
    keys.append(key)
  }

  /// Reads the value of a key.
  @inline(__always)
  private mutating func member(_ key: Key, at place: JSONPosition) throws(JSONFailure) {
    let level = levels.count - 1
    // Most values are short strings: from the text into the page, without a value in between.
    if try scanner.peek() == UInt8(ascii: "\""), levels[level].path == nil,
      depth + keys.count < Limits.depth, let packed = scanner.shortString()
    {
      key.withOrderedBytes { levels[level].builder.append(orderedBytes: $0, .packed(packed)) }
      if scanner.offset - levels[level].start > pieceBytes { try split() }
      return
    }
    try push(key, at: place)
    try child(value(), from: place.offset)
  }

  // MARK: Pieces

  /// Takes in a child, the key of which is on `keys`; nil if it was handed on in pieces.
  private mutating func child(_ node: Node?, from start: Int) throws(JSONFailure) {
    let key = keys.removeLast()
    // A child in pieces has split this level too.
    guard let node else { return }
    let level = levels.count - 1
    // In an object nothing may stand for the removal of what an equal key brought before.
    if node.isEmpty, levels[level].isArray { return }
    if let path = levels[level].path {
      levels[level].handedOn.insert(key)
      try handOn(node, at: path.appending(key), byteCount: scanner.offset - start)
    } else {
      levels[level].builder.append(key, node)
      if scanner.offset - levels[level].start > pieceBytes { try split() }
    }
  }

  /// Turns all open levels, outermost first, from building into handing on. `keys` leads to the
  /// innermost.
  private mutating func split() throws(JSONFailure) {
    /// Whether an equal key may have brought something to the level before; it must not show through.
    var isCovered = false
    for level in levels.indices {
      if levels[level].path == nil {
        let path = Path(keys: keys[..<level])
        if isCovered { try handOn(.empty, at: path, byteCount: 0) }
        levels[level].path = path
        var builder = NodeBuilder()
        swap(&builder, &levels[level].builder)
        let gathered = builder.finish(priority: nil)
        let share = (scanner.offset - levels[level].start) / max(1, gathered.childCount)
        for (key, node) in gathered.children {
          levels[level].handedOn.insert(key)
          try handOn(node, at: path.appending(key), byteCount: share)
        }
      }
      guard level < keys.count else { continue }
      isCovered = !levels[level].isArray && levels[level].handedOn.mayContain(keys[level])
      levels[level].handedOn.insert(keys[level])
    }
  }

  private func handOn(_ node: Node, at path: Path, byteCount: Int) throws(JSONFailure) {
    do {
      try yield(JSONPiece(path: path, content: .node(node), byteCount: byteCount))
    } catch { throw .outside(error) }
  }

  /// Ends the innermost level: its node, or nil after handing on what is left of it.
  private mutating func finish(priority: Scalar?) throws(JSONFailure) -> Node? {
    guard let level = levels.popLast() else { fatalError("a level ends that did not begin") }
    guard let path = level.path else {
      return level.builder.finish(priority: priority)
    }
    if let priority {
      do {
        try yield(JSONPiece(path: path, content: .priority(priority), byteCount: 0))
      } catch { throw .outside(error) }
    }
    return nil
  }
}

extension Key {
  /// The key of an array's element.
  init(index: Int) {
    do {
      self = try Key(String(index))
    } catch { fatalError("a number is a key: \(error)") }
  }
}
