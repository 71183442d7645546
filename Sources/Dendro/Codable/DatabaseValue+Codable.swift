import DendroTree

extension Database.Value: Codable {
  /// Decodes whatever is there, with any decoder; arrays become children.
  ///
  /// - Throws: `DecodingError` below 128 levels; what the decoder throws.
  public init(from decoder: any Swift.Decoder) throws {
    let path = decoder.codingPath
    guard path.count <= CodingDepth.max else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: path, debugDescription: CodingDepth.excess))
    }
    if let values = try? decoder.container(keyedBy: AnyCodingKey.self) {
      self.init(
        Children(
          try values.allKeys.map {
            ($0.stringValue, try values.decode(Database.Value.self, forKey: $0))
          }))
      return
    }
    if var values = try? decoder.unkeyedContainer() {
      var elements: [Database.Value] = []
      while !values.isAtEnd { elements.append(try values.decode(Database.Value.self)) }
      self.init(elements)
      return
    }
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .double(value)
    } else {
      self = .string(try container.decode(String.self))
    }
  }

  /// Encodes children as a dictionary, with any encoder.
  ///
  /// - Throws: `EncodingError` below 128 levels; what the encoder throws.
  public func encode(to encoder: any Swift.Encoder) throws {
    if case .children(let children) = self {
      let path = encoder.codingPath
      guard path.count < CodingDepth.max else {
        throw EncodingError.invalidValue(
          self, .init(codingPath: path, debugDescription: CodingDepth.excess))
      }
      var container = encoder.container(keyedBy: AnyCodingKey.self)
      for (key, value) in children {
        try container.encode(value, forKey: AnyCodingKey(stringValue: key))
      }
      return
    }
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .children: break  // As above.
    }
  }
}

// MARK: - With this module's coders

extension EncodedValue {
  /// Nil if the value is deeper than `levels`.
  init?(_ value: Database.Value, levels: Int = CodingDepth.max) {
    switch value {
    case .null: self = .null
    case .bool(let value): self = .scalar(.bool(value))
    case .integer(let value): self = .scalar(.integer(value))
    // As a foreign value it is refused with its place if it is not finite.
    case .double(let value): self = value.isFinite ? .scalar(.double(value)) : .foreign(value)
    case .string(let value): self = .scalar(.string(value))
    // As for `Database.Value` itself, children that are none are nothing.
    case .children(let children) where children.isEmpty: self = .null
    case .children(let children):
      guard levels > 0 else { return nil }
      let values = KeyedValues()
      for (key, value) in children {
        guard let value = EncodedValue(value, levels: levels - 1) else { return nil }
        values.append(key, value)
      }
      self = .keyed(values)
    }
  }
}

extension DecodedValue {
  init(_ value: Database.Value) {
    switch value {
    case .null: self = .null
    case .bool(let value): self = .scalar(.bool(value))
    case .integer(let value): self = .scalar(.integer(value))
    case .double(let value): self = .scalar(.double(value))
    case .string(let value): self = .scalar(.string(value))
    case .children(let children):
      self = .dictionary(
        Dictionary(children.map { ($0.key, $0.value as Any) }, uniquingKeysWith: { $1 }))
    }
  }
}

extension Database.Value {
  /// What is decoded as a value, at a key of a decoder.
  init(_ value: DecodedValue, _ decoder: ValueDecoder, _ key: (any CodingKey)?) throws {
    switch value {
    case .null: self = .null
    case .scalar(let scalar): self.init(scalar)
    case .unsigned(let value): self = .double(Double(value))
    case .decimal(let value): self = .double(value.nearestDouble)
    case .branch(let node): self.init(node)
    case .dictionary(let dictionary):
      let below = try decoder.below(value, key)
      self.init(
        Children(
          try dictionary.map {
            ($0, try Database.Value(DecodedValue($1), below, AnyCodingKey.name($0)))
          }))
    case .array(let elements):
      let below = try decoder.below(value, key)
      self.init(
        try elements.enumerated().map {
          try Database.Value(DecodedValue($1), below, AnyCodingKey.index($0))
        })
    case .foreign: throw decoder.mismatch(Database.Value.self, value, key)
    }
  }
}
