import DendroTree
import Foundation

/// What the encoders of one call share.
final class EncodingRun {
  let options: EncodingOptions
  let hasPassthroughTypes: Bool
  let convertsKeys: Bool
  /// What went wrong where nothing could be thrown; thrown at the end.
  @exclusivity(unchecked) private(set) var failure: EncodingError?

  init(_ options: EncodingOptions) {
    self.options = options
    hasPassthroughTypes = options.passthroughTypes != NoPassthroughTypes.self
    convertsKeys = if case .useDefaultKeys = options.keys { false } else { true }
  }

  /// Notes a failure; the first one stays.
  func fail(
    _ value: @autoclosure () -> Any, _ path: @autoclosure () -> [any CodingKey], _ message: String
  ) {
    guard failure == nil else { return }
    failure = .invalidValue(value(), .init(codingPath: path(), debugDescription: message))
  }
}

/// Encodes one value: what `encode(to:)` is given.
final class ValueEncoder: Swift.Encoder {
  let run: EncodingRun
  private let parent: ValueEncoder?
  /// Where the value is in the parent's; nil if a single value stands in a single value.
  private let key: (any CodingKey)?
  /// The parent's path, if there is no parent.
  private let basePath: [any CodingKey]
  private let depth: Int
  /// Whether the keys of this value's container are data, which no strategy converts.
  private let keysAreData: Bool
  /// What was encoded; nil if that is nothing.
  @exclusivity(unchecked) private(set) var value: EncodedValue?

  /// For the outermost value.
  init(_ run: EncodingRun) {
    self.run = run
    parent = nil
    key = nil
    basePath = []
    depth = 0
    keysAreData = false
  }

  private init(
    _ run: EncodingRun, parent: ValueEncoder?, path: [any CodingKey], _ key: (any CodingKey)?,
    depth: Int, keysAreData: Bool = false
  ) {
    self.run = run
    self.parent = parent
    self.key = key
    basePath = path
    self.depth = depth
    self.keysAreData = keysAreData
  }

  var codingPath: [any CodingKey] {
    var path = parent?.codingPath ?? basePath
    if let key { path.append(key) }
    return path
  }

  var userInfo: [CodingUserInfoKey: Any] { run.options.userInfo }

  /// What was encoded, once that is all; an empty dictionary if that is nothing.
  var result: EncodedValue {
    value ?? .keyed(KeyedValues())
  }

  func path(_ key: (any CodingKey)?) -> [any CodingKey] {
    key.map { codingPath + [$0] } ?? codingPath
  }

  // MARK: Containers

  func container<K: CodingKey>(keyedBy type: K.Type) -> KeyedEncodingContainer<K> {
    KeyedEncodingContainer(KeyedValuesContainer<K>(self, keyedValues()))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    UnkeyedValuesContainer(self, unkeyedValues())
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  /// The value as a dictionary: the one that is there, so that a superclass may share its subclass's.
  private func keyedValues() -> KeyedValues {
    if case .keyed(let values) = value { return values }
    checkEmpty("a keyed container")
    let values = KeyedValues()
    value = .keyed(values)
    return values
  }

  private func unkeyedValues() -> UnkeyedValues {
    if case .unkeyed(let values) = value { return values }
    checkEmpty("an unkeyed container")
    let values = UnkeyedValues()
    value = .unkeyed(values)
    return values
  }

  private func checkEmpty(_ wanted: String) {
    guard let value else { return }
    run.fail(
      value.foundationValue, codingPath, "\(wanted) was asked for after another value was encoded")
  }

  /// The name under which a container of this encoder keeps a key.
  func name(of key: some CodingKey) -> String {
    guard run.convertsKeys else { return key.stringValue }
    return convertedName(of: key)
  }

  private func convertedName(of key: some CodingKey) -> String {
    switch run.options.keys {
    case .useDefaultKeys: key.stringValue
    case .convertToSnakeCase:
      keysAreData ? key.stringValue : SnakeCase.encode(key.stringValue)
    case .custom(let convert):
      keysAreData ? key.stringValue : convert(path(key)).stringValue
    }
  }

  // MARK: Encoders below

  /// Whether there may be no containers below this one.
  var isTooDeep: Bool { depth >= CodingDepth.max }

  /// Of a nested container, which belongs to no value of its own.
  func nested(_ key: any CodingKey) -> ValueEncoder {
    guard checkDepth(key) else { return self }
    return ValueEncoder(run, parent: self, path: [], key, depth: depth + 1)
  }

  /// Of a superclass. It holds no parent, whose values hold it.
  func detached(_ key: any CodingKey) -> ValueEncoder {
    guard checkDepth(key) else { return self }
    return ValueEncoder(run, parent: nil, path: codingPath, key, depth: depth + 1)
  }

  private func checkDepth(_ key: any CodingKey) -> Bool {
    if isTooDeep {
      run.fail(NSNull(), path(key), "containers nest deeper than \(CodingDepth.max) levels")
    }
    return !isTooDeep
  }

  /// Of a value at a key of this one.
  ///
  /// - Throws: if `value` is too deep, or something failed already.
  func below(
    _ key: (any CodingKey)?, _ value: @autoclosure () -> Any, keysAreData: Bool = false
  ) throws -> ValueEncoder {
    if let failure = run.failure { throw failure }
    guard !isTooDeep else {
      throw EncodingError.invalidValue(
        value(),
        .init(
          codingPath: path(key),
          debugDescription: "values nest deeper than \(CodingDepth.max) levels"))
    }
    return ValueEncoder(
      run, parent: self, path: [], key, depth: depth + 1, keysAreData: keysAreData)
  }
}

// MARK: - One value

extension ValueEncoder: SingleValueEncodingContainer {
  func encodeNil() throws { try set(NSNull()) { .null } }

  func encode<T: Encodable>(_ value: T) throws { try set(value) { try encoded(value, nil) } }

  private func set(
    _ new: @autoclosure () -> Any, _ encode: () throws -> EncodedValue
  ) throws {
    guard value == nil else {
      throw EncodingError.invalidValue(
        new(),
        .init(
          codingPath: codingPath,
          debugDescription: "a single value was encoded after another value"))
    }
    value = try encode()
  }
}
