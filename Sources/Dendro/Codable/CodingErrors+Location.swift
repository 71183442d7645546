import DendroTree

// The errors of coders have paths from the value on; those of a database lead from its root on.

extension DecodingError {
  /// The same error of a value at a location.
  func located(at location: Path) -> DecodingError {
    func located(_ context: Context) -> Context {
      Context(
        codingPath: location.codingPath + context.codingPath,
        debugDescription: context.debugDescription, underlyingError: context.underlyingError)
    }
    switch self {
    case .typeMismatch(let type, let context): return .typeMismatch(type, located(context))
    case .valueNotFound(let type, let context): return .valueNotFound(type, located(context))
    case .keyNotFound(let key, let context): return .keyNotFound(key, located(context))
    case .dataCorrupted(let context): return .dataCorrupted(located(context))
    @unknown default: return self
    }
  }
}

extension EncodingError {
  /// The same error of a value at a location.
  func located(at location: Path) -> EncodingError {
    switch self {
    case .invalidValue(let value, let context):
      return .invalidValue(
        value,
        Context(
          codingPath: location.codingPath + context.codingPath,
          debugDescription: context.debugDescription, underlyingError: context.underlyingError))
    @unknown default: return self
    }
  }
}

extension Path {
  fileprivate var codingPath: [any CodingKey] { keys.map { AnyCodingKey.name($0.string) } }
}

extension Database.Decoder {
  /// Decodes a value at a location, which its errors name.
  func decode<T: Decodable>(
    _ type: T.Type, from node: Node, at location: @autoclosure () -> Path
  ) throws -> T {
    do {
      return try decode(type, from: node)
    } catch let error as DecodingError {
      throw error.located(at: location())
    }
  }
}

extension Database.Encoder {
  /// Encodes a value for a location, which its errors name.
  func encoded<T: Encodable>(_ value: T, at location: @autoclosure () -> Path) throws
    -> EncodedValue
  {
    do {
      return try encoded(value)
    } catch let error as EncodingError {
      throw error.located(at: location())
    }
  }
}
