extension JSONReader {
  /// Reads a value; returns nil if it was yielded in pieces.
  mutating func value() throws(JSONFailure) -> Node? {
    guard let byte = try scanner.peek() else { throw scanner.failure("the text ends too early") }
    switch byte {
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    default: return try scalar(byte).map { Node($0) } ?? .empty
    }
  }

  /// Reads a scalar whose first byte is `byte`; returns nil for `null`.
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

  // MARK: Containers

  private mutating func array() throws(JSONFailure) -> Node? {
    levels.append(Level(isArray: true, start: scanner.offset))
    scanner.advance()
    var index = 0
    if try scanner.peek() == UInt8(ascii: "]") {
      scanner.advance()
    } else {
      repeat {
        let position = scanner.position
        try push(Key(index: index), at: position)
        try append(value(), from: position.offset)
        index += 1
      } while try hasNext(before: UInt8(ascii: "]"))
    }
    return try finish(priority: nil)
  }

  private mutating func object() throws(JSONFailure) -> Node? {
    levels.append(Level(isArray: false, start: scanner.offset))
    scanner.advance()
    /// Nil without `.value`; `.some(nil)` if `.value` is null.
    var leaf: Scalar?? = nil
    var priority: Scalar?
    var hasChildren = false
    if try scanner.peek() == UInt8(ascii: "}") {
      scanner.advance()
    } else {
      repeat {
        guard try scanner.peek() == UInt8(ascii: "\"") else {
          throw scanner.failure("expected a key in quotes")
        }
        let position = scanner.position
        switch try name(position) {
        case .key(let key):
          guard leaf == nil else { throw valueBesideChildren(position) }
          hasChildren = true
          try colon()
          try member(key, at: position)
        case .value:
          guard !hasChildren else { throw valueBesideChildren(position) }
          try colon()
          leaf = .some(try leafValue())
        case .priority:
          try colon()
          priority = try self.priority()
        case .serverValue:
          guard !hasChildren, leaf == nil else { throw valueBesideChildren(position) }
          try colon()
          leaf = .some(try serverValue(isPriority: false))
        }
      } while try hasNext(before: UInt8(ascii: "}"))
    }
    if let leaf {
      levels.removeLast()
      return leaf.map { Node($0, priority: priority) } ?? .empty
    }
    return try finish(priority: priority)
  }

  /// Passes over what follows an element: a comma, or `end`, which ends the container.
  ///
  /// - Returns: whether another element follows.
  @inline(__always)
  mutating func hasNext(before end: UInt8) throws(JSONFailure) -> Bool {
    let byte = try scanner.peek()
    guard byte == UInt8(ascii: ",") || byte == end else {
      throw scanner.failure("expected ',' or '\(Character(Unicode.Scalar(end)))'")
    }
    scanner.advance()
    return byte != end
  }

  private func valueBesideChildren(_ position: JSONPosition) -> JSONFailure {
    scanner.failure(
      "an object with .value has no other children", kind: .data(.invalidData), at: position)
  }

  /// Reads the value of a key and appends it to the innermost level.
  @inline(__always)
  private mutating func member(_ key: Key, at position: JSONPosition) throws(JSONFailure) {
    let level = levels.count - 1
    // Most values are short strings: their bytes are copied from the text into the page, without a
    // `Scalar` in between.
    if try scanner.peek() == UInt8(ascii: "\""), levels[level].path == nil,
      depth + keys.count < Limits.depth, let packed = scanner.shortString()
    {
      key.withOrderedBytes { levels[level].builder.append(orderedBytes: $0, .packed(packed)) }
      if scanner.offset - levels[level].start > pieceBytes { try split() }
      return
    }
    try push(key, at: position)
    try append(value(), from: position.offset)
  }

  // MARK: Pseudo keys

  /// Reads what follows `".value":`; returns nil for `null`.
  private mutating func leafValue() throws(JSONFailure) -> Scalar? {
    let message = "a .value is a string, a number, true, false or null"
    if try scanner.peek() == UInt8(ascii: "{"), acceptsServerValues {
      return try serverValueObject(
        isPriority: false, otherwise: .data(.invalidLeafValueType), message)
    }
    return try pseudoKeyValue(.invalidLeafValueType, message)
  }

  /// Reads what follows `".priority":`; returns nil for `null`.
  mutating func priority() throws(JSONFailure) -> Scalar? {
    let message = "a .priority is a number, a string or null"
    if try scanner.peek() == UInt8(ascii: "{"), acceptsServerValues {
      return try serverValueObject(isPriority: true, otherwise: .data(.invalidData), message)
    }
    let position = scanner.position
    let priority = try pseudoKeyValue(.invalidData, message)
    if case .bool = priority {
      throw scanner.failure(message, kind: .data(.invalidData), at: position)
    }
    return priority
  }

  /// Reads the value of a pseudo key, which is never an object or array.
  mutating func pseudoKeyValue(
    _ kind: ValidationError.Kind, _ message: String
  ) throws(JSONFailure) -> Scalar? {
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
    case serverValue
  }

  private mutating func name(_ position: JSONPosition) throws(JSONFailure) -> Name {
    let acceptsServerValues = acceptsServerValues
    let escapesKeys = escapesKeys
    // The limit is that of strings, not of keys, so that the error for a long key quotes the key.
    let result = try scanner.string(limit: Limits.stringBytes, "the key") {
      bytes -> Result<Name, ValidationError> in
      if bytes.first == UInt8(ascii: ".") {
        if bytes.elementsEqual(".value".utf8) { return .success(.value) }
        if bytes.elementsEqual(".priority".utf8) { return .success(.priority) }
        if bytes.elementsEqual(".sv".utf8) {
          if acceptsServerValues { return .success(.serverValue) }
          return .failure(
            ValidationError(.invalidData, "a file cannot hold server values (.sv)"))
        }
      }
      return Result { () throws(ValidationError) in
        if escapesKeys { return .key(try Key(escaping: bytes)) }
        return .key(try Key(trusted: UnsafeRawBufferPointer(bytes)))
      }
    }
    switch result {
    case .success(let name): return name
    case .failure(let error):
      throw scanner.failure(error.message, kind: .data(error.kind), at: position)
    }
  }

  mutating func colon() throws(JSONFailure) {
    guard try scanner.peek() == UInt8(ascii: ":") else { throw scanner.failure("expected ':'") }
    scanner.advance()
  }

  /// Appends to `keys` the key of the value that comes next.
  @inline(__always)
  mutating func push(_ key: Key, at position: JSONPosition) throws(JSONFailure) {
    guard depth + keys.count < Limits.depth else {
      throw scanner.failure(
        "the data is more than \(Limits.depth) levels deep"
          + (depth == 0 ? "" : ", including the \(depth) of the path that it is written to"),
        kind: .data(.invalidData), at: position)
    }
    keys.append(key)
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
