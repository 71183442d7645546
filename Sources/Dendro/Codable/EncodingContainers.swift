/// Values by key.
struct KeyedValuesContainer<K: CodingKey>: KeyedEncodingContainerProtocol {
  typealias Key = K

  private let encoder: ValueEncoder
  private let values: KeyedValues

  init(_ encoder: ValueEncoder, _ values: KeyedValues) {
    self.encoder = encoder
    self.values = values
  }

  var codingPath: [any CodingKey] { encoder.codingPath }

  func encodeNil(forKey key: K) throws { append(.null, key) }

  func encode<T: Encodable>(_ value: T, forKey key: K) throws {
    append(try encoder.encoded(value, key), key)
  }

  /// Of an optional, as a property is.
  func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: K) throws {
    guard let value else { return }
    let encoded = try encoder.encoded(value, key)
    append(encoded.isEmpty ? .emptied(encoded, .optional) : encoded, key)
  }

  @inline(__always)
  private func append(_ value: EncodedValue, _ key: some CodingKey) {
    let name = encoder.name(of: key)
    if value.isEmpty, !values.hasAnyNames { values.hasAnyNames = Self.hasAnyNames(name) }
    values.append(name, value)
    if values.hasMetadata { noteMisplaced(name) }
  }

  /// Whether keys are data, as those of dictionaries: a key without a value is lost then. A type's own keys are few, and
  /// none of these.
  private static func hasAnyNames(_ name: String) -> Bool {
    ["\u{10FFFD}", name + "\u{10FFFD}", "1097"].contains { K(stringValue: $0) != nil }
  }

  /// Notes a name that no decoder reads back: what has any keys finds no `.priority` among them.
  @inline(never)
  private func noteMisplaced(_ name: String) {
    if name == ".priority", Self.hasAnyNames(name) { values.misplacedName = name }
  }

  func nestedContainer<N: CodingKey>(
    keyedBy type: N.Type, forKey key: K
  ) -> KeyedEncodingContainer<N> {
    let name = encoder.name(of: key)
    let below = encoder.nested(key)
    // Asked for a second time, it is the one that is there.
    if case .keyed(let nested) = values.value(name) {
      return KeyedEncodingContainer(KeyedValuesContainer<N>(below, nested))
    }
    // The names of a case's values are its own, not any.
    let nested = KeyedValues(isNested: N(stringValue: "\u{10FFFD}") == nil)
    if !encoder.isTooDeep { append(.keyed(nested), key) }
    return KeyedEncodingContainer(KeyedValuesContainer<N>(below, nested))
  }

  func nestedUnkeyedContainer(forKey key: K) -> any UnkeyedEncodingContainer {
    let name = encoder.name(of: key)
    let below = encoder.nested(key)
    if case .unkeyed(let nested) = values.value(name) {
      return UnkeyedValuesContainer(below, nested)
    }
    let nested = UnkeyedValues()
    if !encoder.isTooDeep { append(.unkeyed(nested), key) }
    return UnkeyedValuesContainer(below, nested)
  }

  func superEncoder() -> any Swift.Encoder { superEncoder(at: AnyCodingKey.super) }

  func superEncoder(forKey key: K) -> any Swift.Encoder { superEncoder(at: key) }

  private func superEncoder(at key: some CodingKey) -> any Swift.Encoder {
    let below = encoder.detached(key)
    if !encoder.isTooDeep { append(.encoder(below), key) }
    return below
  }
}

/// Values in a row.
struct UnkeyedValuesContainer: UnkeyedEncodingContainer {
  private let encoder: ValueEncoder
  private let values: UnkeyedValues

  init(_ encoder: ValueEncoder, _ values: UnkeyedValues) {
    self.encoder = encoder
    self.values = values
  }

  var codingPath: [any CodingKey] { encoder.codingPath }
  var count: Int { values.elements.count }

  private var key: AnyCodingKey { .index(count) }

  func encodeNil() throws { values.elements.append(.null) }

  func encode<T: Encodable>(_ value: T) throws {
    values.elements.append(try encoder.encoded(value, key))
  }

  func nestedContainer<N: CodingKey>(keyedBy type: N.Type) -> KeyedEncodingContainer<N> {
    let below = encoder.nested(key)
    let nested = KeyedValues()
    if !encoder.isTooDeep { values.elements.append(.keyed(nested)) }
    return KeyedEncodingContainer(KeyedValuesContainer<N>(below, nested))
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    let below = encoder.nested(key)
    let nested = UnkeyedValues()
    if !encoder.isTooDeep { values.elements.append(.unkeyed(nested)) }
    return UnkeyedValuesContainer(below, nested)
  }

  func superEncoder() -> any Swift.Encoder {
    let below = encoder.detached(key)
    if !encoder.isTooDeep { values.elements.append(.encoder(below)) }
    return below
  }
}
