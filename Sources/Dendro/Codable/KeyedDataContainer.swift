import DendroTree

/// Values by key: of a branch, of a dictionary, or of an array, whose keys are 0, 1, 2, …
struct KeyedDataContainer<K: CodingKey>: KeyedDecodingContainerProtocol {
  typealias Key = K

  private let decoder: ValueDecoder
  private let values: KeyedData
  /// The name in the data of each converted name; nil if none is converted.
  private let names: [String: String]?

  init(_ decoder: ValueDecoder) throws {
    self.decoder = decoder
    switch decoder.value {
    case .null:
      try decoder.checkNothing([String: Any].self)
      values = .nothing
    case .branch(let node): values = .branch(node)
    case .dictionary(let dictionary): values = .dictionary(dictionary)
    case .array(let elements): values = .array(elements)
    case .scalar, .unsigned, .decimal, .foreign:
      throw decoder.mismatch([String: Any].self, decoder.value, nil)
    }
    names = Self.convertedNames(values, decoder)
  }

  private static func convertedNames(
    _ values: KeyedData, _ decoder: ValueDecoder
  ) -> [String: String]? {
    if decoder.keysAreData || !decoder.run.convertsKeys { return nil }
    let convert: (String) -> String
    switch decoder.run.options.keys {
    case .useDefaultKeys: return nil
    case .convertFromSnakeCase: convert = SnakeCase.decode
    case .custom(let strategy):
      convert = { strategy(decoder.path(AnyCodingKey.name($0))).stringValue }
    }
    // The priority is no child.
    return Dictionary(
      (values.names + [".priority"]).map { (convert($0), $0) },
      uniquingKeysWith: { first, _ in first })
  }

  var codingPath: [any CodingKey] { decoder.codingPath }

  var allKeys: [K] {
    (names.map { names in names.filter { $1 != ".priority" }.map(\.key) } ?? values.names)
      .compactMap { K(stringValue: $0) }
  }

  func contains(_ key: K) -> Bool { value(key) != nil }

  /// What is at a key, which may be null; nil if there is none.
  private func value(_ key: K) -> DecodedValue? {
    guard let names else { return values.value(key.stringValue) }
    if let name = names[key.stringValue] { return values.value(name) }
    // `myURL` is encoded as `my_url`, of which the way back makes `myUrl`.
    guard case .convertFromSnakeCase = decoder.run.options.keys else { return nil }
    return values.value(SnakeCase.encode(key.stringValue))
  }

  func decodeNil(forKey key: K) throws -> Bool { value(key)?.isNull ?? true }

  func decode<T: Decodable>(_ type: T.Type, forKey key: K) throws -> T {
    try decoder.decoded(type, value(key) ?? .null, key)
  }

  // Of optional properties, with one look-up each; those of other types decode as the last one.

  func decodeIfPresent(_ type: String.Type, forKey key: K) throws -> String? {
    try present(type, key)
  }

  func decodeIfPresent(_ type: Int.Type, forKey key: K) throws -> Int? { try present(type, key) }

  func decodeIfPresent(_ type: Double.Type, forKey key: K) throws -> Double? {
    try present(type, key)
  }

  func decodeIfPresent(_ type: Bool.Type, forKey key: K) throws -> Bool? { try present(type, key) }

  func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: K) throws -> T? {
    try present(type, key)
  }

  @inline(__always)
  private func present<T: Decodable>(_ type: T.Type, _ key: K) throws -> T? {
    guard let value = value(key), !value.isNull else { return nil }
    return try decoder.decoded(type, value, key)
  }

  func nestedContainer<N: CodingKey>(
    keyedBy type: N.Type, forKey key: K
  ) throws -> KeyedDecodingContainer<N> {
    let value = value(key) ?? .null
    // A case of an enum, of whose values nothing is left.
    if case .scalar(.bool(true)) = value {
      return try decoder.below(.null, key).container(keyedBy: type)
    }
    return try decoder.below(value, key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: K) throws -> any UnkeyedDecodingContainer {
    try decoder.below(value(key) ?? .null, key).unkeyedContainer()
  }

  func superDecoder() throws -> any Swift.Decoder {
    let name = names?[AnyCodingKey.super.stringValue] ?? AnyCodingKey.super.stringValue
    return try decoder.below(values.value(name) ?? .null, AnyCodingKey.super)
  }

  func superDecoder(forKey key: K) throws -> any Swift.Decoder {
    try decoder.below(value(key) ?? .null, key)
  }
}

/// What a keyed container is read from.
private enum KeyedData {
  case nothing
  case branch(Node)
  case dictionary([String: Any])
  case array([Any])

  func value(_ name: String) -> DecodedValue? {
    switch self {
    case .nothing: return nil
    case .branch(let node):
      if name == ".priority" { return node.priority.map { .scalar($0) } }
      guard let key = try? DendroTree.Key(name) else { return nil }
      let child = node.child(key)
      return child.isEmpty ? nil : DecodedValue(child)
    case .dictionary(let dictionary): return dictionary[name].map { DecodedValue($0) }
    case .array(let elements):
      guard let index = Int(name), elements.indices.contains(index), String(index) == name else {
        return nil
      }
      // A hole of the array form is a key that is not there.
      let value = DecodedValue(elements[index])
      return value.isNull ? nil : value
    }
  }

  var names: [String] {
    switch self {
    case .nothing: []
    case .branch(let node): node.children.map(\.key.string)
    case .dictionary(let dictionary): dictionary.keys.sorted()
    case .array(let elements):
      elements.indices.filter { !DecodedValue(elements[$0]).isNull }.map { String($0) }
    }
  }
}
