/// A recursive descent parser of one document. `levels` has the container that is being read and all
/// containers around it.
///
/// The values are read in `JSONReader+Values.swift`, containers that are too large for one piece are
/// split in `JSONReader+Pieces.swift`.
struct JSONReader: ~Copyable {
  struct Level {
    let isArray: Bool
    /// The offset of the opening bracket.
    let start: Int
    /// The children so far, until the level is split.
    var builder = NodeBuilder()
    /// The path of the container once it is split: its children are yielded one by one from then on.
    var path: Path?
    /// The keys of the yielded children.
    var yieldedKeys = YieldedKeys()
  }

  var scanner: JSONScanner
  let depth: Int
  let pieceBytes: Int
  let yield: (JSONPiece) throws -> Void
  var levels = [Level]()
  /// The keys from the document to the value that is being read.
  var keys = [Key]()
  /// Whether the document may have server values.
  let acceptsServerValues: Bool
  /// Whether characters that keys may not have are escaped, and not refused.
  let escapesKeys: Bool
  /// The server values so far; in the document each has a stand-in.
  var deferred = [Draft.Deferred]()

  init(
    _ scanner: consuming JSONScanner, depth: Int, pieceBytes: Int,
    acceptsServerValues: Bool = false, escapesKeys: Bool = false,
    yield: @escaping (JSONPiece) throws -> Void
  ) {
    self.scanner = scanner
    self.depth = depth
    self.pieceBytes = pieceBytes
    self.acceptsServerValues = acceptsServerValues
    self.escapesKeys = escapesKeys
    self.yield = yield
  }

  /// The number of bytes read so far.
  var byteCount: Int { scanner.offset }

  /// Reads the document; returns nil if it was yielded in pieces.
  mutating func document() throws(JSONFailure) -> Node? {
    do throws(JSONFailure) {
      let node = try value()
      if try scanner.peek() != nil { throw scanner.failure("nothing may follow the document") }
      return node
    } catch {
      throw addingPath(to: error)
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
      /// The index of the entry for each key as it is spelled in the text.
      var indices: [LiteralText: Int] = [:]
      if try scanner.peek() == UInt8(ascii: "}") {
        scanner.advance()
      } else {
        repeat {
          let (name, entry) = try self.entry()
          if let index = indices.updateValue(entries.count, forKey: LiteralText(name)) {
            indices[LiteralText(name)] = index
            entries[index] = entry
          } else {
            entries.append(entry)
          }
        } while try hasNext(before: UInt8(ascii: "}"))
      }
      if try scanner.peek() != nil { throw scanner.failure("nothing may follow the object") }
      return entries
    } catch {
      throw addingPath(to: error)
    }
  }

  private func addingPath(to failure: JSONFailure) -> JSONFailure {
    guard case .text(var error) = failure else { return failure }
    error.path = Path(keys: keys).description
    return .text(error)
  }

  private mutating func entry() throws(JSONFailure) -> (name: String, Write.Entry) {
    guard try scanner.peek() == UInt8(ascii: "\"") else {
      throw scanner.failure("expected a path in quotes")
    }
    let position = scanner.position
    let name = try scanner.string(limit: Limits.stringBytes, "the path") {
      String(decoding: $0, as: UTF8.self)
    }
    // `/` is the location itself. An empty text is a key that was forgotten, and must not replace all that is there.
    if name.isEmpty {
      throw scanner.failure(
        "The path of an update must not be empty.", kind: .data(.invalidKey), at: position)
    }
    let pathOfPriority = name.pathOfPriority
    let path: Path
    do {
      path = try Path(parsing: pathOfPriority ?? name)
    } catch { throw scanner.failure(error.message, kind: .data(error.kind), at: position) }
    try colon()
    let action: Write.Entry.Action
    if pathOfPriority != nil {
      for key in path.keys { try push(key, at: position) }
      action = .setPriority(try priority())
      keys.removeLast(path.count)
    } else {
      for key in path.keys { try push(key, at: position) }
      let node = try value() ?? .empty
      keys.removeLast(path.count)
      action = node.isEmpty ? .remove : .set(node)
    }
    return (name, Write.Entry(path: path, action: action))
  }
}
