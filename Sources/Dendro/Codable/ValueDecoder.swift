import DendroTree
import Foundation

/// What the decoders of one call share.
final class DecodingRun {
  let options: DecodingOptions
  let hasPassthroughTypes: Bool
  let convertsKeys: Bool

  init(_ options: DecodingOptions) {
    self.options = options
    hasPassthroughTypes = options.passthroughTypes != NoPassthroughTypes.self
    convertsKeys = if case .useDefaultKeys = options.keys { false } else { true }
  }
}

extension DecodingRun {
  func decode<T: Decodable>(_ type: T.Type, from node: Node) throws -> T {
    try decode(type, from: DecodedValue(node))
  }

  func decode<T: Decodable>(_ type: T.Type, from value: DecodedValue) throws -> T {
    try ValueDecoder(self, .null).decoded(type, value, nil)
  }
}

/// Decodes one value: what `init(from:)` is given.
///
/// Below the outermost value, nothing counts as an empty container: an empty one that was set is
/// nothing in the tree.
final class ValueDecoder: Swift.Decoder {
  let run: DecodingRun
  let value: DecodedValue
  private let parent: ValueDecoder?
  /// Where the value is in the parent's; nil if a single value stands in a single value.
  private let key: (any CodingKey)?
  private let depth: Int
  /// Whether the keys of this value's container are data, which no strategy converts.
  let keysAreData: Bool

  init(
    _ run: DecodingRun, _ value: DecodedValue, parent: ValueDecoder? = nil,
    _ key: (any CodingKey)? = nil, keysAreData: Bool = false
  ) {
    self.run = run
    self.value = value
    self.parent = parent
    self.key = key
    self.keysAreData = keysAreData
    depth = parent.map { $0.depth + 1 } ?? 0
  }

  var codingPath: [any CodingKey] {
    var path = parent?.codingPath ?? []
    if let key { path.append(key) }
    return path
  }

  var userInfo: [CodingUserInfoKey: Any] { run.options.userInfo }

  func path(_ key: (any CodingKey)?) -> [any CodingKey] {
    key.map { codingPath + [$0] } ?? codingPath
  }

  /// Of a value at a key of this one.
  func below(
    _ value: DecodedValue, _ key: (any CodingKey)?, keysAreData: Bool = false
  ) throws -> ValueDecoder {
    guard depth < CodingDepth.max else {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: path(key),
          debugDescription: "values nest deeper than \(CodingDepth.max) levels"))
    }
    return ValueDecoder(run, value, parent: self, key, keysAreData: keysAreData)
  }

  // MARK: Containers

  func container<K: CodingKey>(keyedBy type: K.Type) throws -> KeyedDecodingContainer<K> {
    KeyedDecodingContainer(try KeyedDataContainer<K>(self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try UnkeyedDataContainer(self)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

  /// Refuses nothing if this is the outermost value.
  func checkNothing(_ type: Any.Type) throws {
    if codingPath.isEmpty { throw missing(type, nil) }
  }

  // MARK: Errors

  func missing(_ type: Any.Type, _ key: (any CodingKey)?) -> DecodingError {
    .valueNotFound(
      type,
      .init(
        codingPath: path(key), debugDescription: "expected a value of type \(type), found nothing"))
  }

  func mismatch(
    _ type: Any.Type, _ value: DecodedValue, _ key: (any CodingKey)?, detail: String = ""
  ) -> DecodingError {
    if value.isNull { return missing(type, key) }
    return .typeMismatch(
      type,
      .init(
        codingPath: path(key),
        debugDescription: "expected a value of type \(type), found \(value.shown)\(detail)"))
  }

  func corrupt(_ message: String, _ key: (any CodingKey)?) -> DecodingError {
    .dataCorrupted(.init(codingPath: path(key), debugDescription: message))
  }
}

// MARK: - One value

extension ValueDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value.isNull }

  func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoded(type, value, nil) }
}
