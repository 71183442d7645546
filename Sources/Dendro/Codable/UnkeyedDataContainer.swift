import DendroTree

/// Values in a row: of an array, or of a branch or dictionary whose keys are indices. Places without a
/// key are nothing.
struct UnkeyedDataContainer: UnkeyedDecodingContainer {
  private let decoder: ValueDecoder
  private var elements: Elements
  private let length: Int
  private(set) var currentIndex = 0

  private enum Elements {
    case array([Any])
    /// The next child that there is, and those after it.
    case children((index: Int, node: Node)?, Node.Children.Iterator)
    /// By index, ascending; the first is at `next`.
    case sparse([(index: Int, value: Any)], next: Int)
  }

  /// Places without a key may be as many as those with one, or this many: a single high key must not
  /// make an array that fills the memory.
  static let missingMax = 1024

  init(_ decoder: ValueDecoder) throws {
    self.decoder = decoder
    switch decoder.value {
    case .null:
      try decoder.checkNothing([Any].self)
      (elements, length) = (.array([]), 0)
    case .array(let array): (elements, length) = (.array(array), array.count)
    case .branch(let node):
      var last = -1
      for (key, _) in node.children {
        // Indices come first and ascend in the order of keys.
        guard let index = key.arrayIndex else { throw Self.noIndex(key.string, decoder) }
        last = index
      }
      length = try Self.length(last, count: node.childCount, decoder)
      var children = node.children.makeIterator()
      let first = children.nextElement()
      elements = .children(first, children)
    case .dictionary(let dictionary):
      let sorted = try dictionary.map { name, value in
        guard let index = Int(name), index >= 0, String(index) == name else {
          throw Self.noIndex(name, decoder)
        }
        return (index: index, value: value)
      }.sorted { $0.index < $1.index }
      length = try Self.length(sorted.last?.index ?? -1, count: sorted.count, decoder)
      elements = .sparse(sorted, next: 0)
    case .scalar, .unsigned, .decimal, .foreign:
      throw decoder.mismatch([Any].self, decoder.value, nil)
    }
  }

  private static func noIndex(_ name: String, _ decoder: ValueDecoder) -> DecodingError {
    decoder.mismatch([Any].self, decoder.value, nil, detail: " with the key \"\(name.prefix(64))\"")
  }

  private static func length(_ last: Int, count: Int, _ decoder: ValueDecoder) throws -> Int {
    // Compared without adding to `last`, which may be `Int.max`.
    guard last - count < max(count, missingMax) else {
      throw decoder.corrupt(
        "an array whose last index is \(last) has only \(count) elements; as many places may be missing as there are elements, or \(missingMax)",
        nil)
    }
    return last + 1
  }

  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { length }
  var isAtEnd: Bool { currentIndex >= length }

  private var key: AnyCodingKey { .index(currentIndex) }

  private func next(_ type: Any.Type) throws -> DecodedValue {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type,
        .init(
          codingPath: decoder.path(key),
          debugDescription: "the array ends after \(length) elements"))
    }
    switch elements {
    case .array(let array): return DecodedValue(array[currentIndex])
    case .children(let child, _):
      guard let child, child.index == currentIndex else { return .null }
      return DecodedValue(child.node)
    case .sparse(let values, let next):
      guard values[next].index == currentIndex else { return .null }
      return DecodedValue(values[next].value)
    }
  }

  private mutating func advance() {
    switch elements {
    case .array: break
    case .children(let child, var rest):
      if child?.index == currentIndex {
        let next = rest.nextElement()
        elements = .children(next, rest)
      }
    case .sparse(let values, let next):
      if values[next].index == currentIndex { elements = .sparse(values, next: next + 1) }
    }
    currentIndex += 1
  }

  mutating func decodeNil() throws -> Bool {
    guard try next(Any?.self).isNull else { return false }
    advance()
    return true
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let value = try decoder.decoded(type, next(type), key)
    advance()
    return value
  }

  mutating func nestedContainer<N: CodingKey>(
    keyedBy type: N.Type
  ) throws -> KeyedDecodingContainer<N> {
    let container = try decoder.below(next([String: Any].self), key).container(keyedBy: type)
    advance()
    return container
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let container = try decoder.below(next([Any].self), key).unkeyedContainer()
    advance()
    return container
  }

  mutating func superDecoder() throws -> any Swift.Decoder {
    let below = try decoder.below(next((any Swift.Decoder).self), key)
    advance()
    return below
  }
}

extension Node.Children.Iterator {
  /// The next child of a branch whose keys are all indices.
  fileprivate mutating func nextElement() -> (index: Int, node: Node)? {
    guard let (key, node) = next(), let index = key.arrayIndex else { return nil }
    return (index, node)
  }
}
