import DendroTree
public import Foundation
import Synchronization

extension Database {
  /// Makes values of any `Decodable` type of data: `JSONDecoder` with the tree instead of JSON.
  ///
  /// ``DataSnapshot/data(as:decoder:)`` decodes straight from the tree; ``decode(_:from:)`` from what
  /// ``DataSnapshot/value`` gives. See <doc:TypedData> for what each type accepts.
  ///
  /// Any thread may use it; each decoding works with the options as they are when it begins.
  public final class Decoder: Sendable {
    private let state = Mutex(DecodingOptions())

    /// Makes a decoder with the default options.
    public init() {}

    /// What dates are read from. `.deferredToDate` by default.
    public var dateDecodingStrategy: DateDecodingStrategy {
      get { options.dates }
      set { state.withLock { $0.dates = newValue } }
    }

    /// What `Data` is read from. `.base64` by default.
    public var dataDecodingStrategy: DataDecodingStrategy {
      get { options.data }
      set { state.withLock { $0.data = newValue } }
    }

    /// Which strings stand for NaN and the infinities. `.throw` by default: none.
    public var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy {
      get { options.floats }
      set { state.withLock { $0.floats = newValue } }
    }

    /// How the keys of the data become those of the type. `.useDefaultKeys` by default. The keys of a
    /// `[String: T]` are data and stay as they are.
    public var keyDecodingStrategy: KeyDecodingStrategy {
      get { options.keys }
      set { state.withLock { $0.keys = newValue } }
    }

    /// Which values are handed over as they are. None by default.
    public var passthroughTypeResolver: any StructureCodingPassthroughTypeResolver.Type {
      get { options.passthroughTypes }
      set { state.withLock { $0.passthroughTypes = newValue } }
    }

    /// What `init(from:)` initialisers find in their decoder's `userInfo`. Empty by default.
    @preconcurrency
    public var userInfo: [CodingUserInfoKey: any Sendable] {
      get { options.userInfo }
      set { state.withLock { $0.userInfo = newValue } }
    }

    private var options: DecodingOptions { state.withLock { $0 } }

    /// Decodes a value from Foundation's objects.
    ///
    /// - Parameters:
    ///   - type: what to decode.
    ///   - data: dictionaries, arrays, numbers and strings, or `NSNull`.
    /// - Returns: the value.
    /// - Throws: `DecodingError` with the path to what does not fit; what the type itself throws.
    public func decode<T: Decodable>(_ type: T.Type, from data: Any) throws -> T {
      try decode(type, from: DecodedValue(data))
    }

    /// Decodes a value without making any of Foundation's objects.
    func decode<T: Decodable>(_ type: T.Type, from node: Node) throws -> T {
      try decode(type, from: DecodedValue(node))
    }

    private func decode<T: Decodable>(_ type: T.Type, from value: DecodedValue) throws -> T {
      try run().decode(type, from: value)
    }

    /// With the options of the moment, for one value or several.
    func run() -> DecodingRun { DecodingRun(options) }
  }
}

// MARK: - Options

extension Database.Decoder {
  /// What dates are read from.
  public enum DateDecodingStrategy: Sendable {
    /// Seconds since the beginning of 2001, as `Date` does by itself.
    case deferredToDate
    /// Seconds since the beginning of 1970.
    case secondsSince1970
    /// Milliseconds since the beginning of 1970.
    case millisecondsSince1970
    /// A string like `2033-05-18T03:33:20Z`.
    case iso8601
    /// A string that the formatter reads.
    case formatted(DateFormatter)
    /// What the closure decodes.
    @preconcurrency case custom(@Sendable (any Swift.Decoder) throws -> Date)
  }

  /// What `Data` is read from.
  public enum DataDecodingStrategy: Sendable {
    /// An array of bytes, as `Data` does by itself.
    case deferredToData
    /// A string in Base64.
    case base64
    /// `Data` as it is, which only ``Database/Decoder/decode(_:from:)`` can be given.
    case blob
    /// What the closure decodes.
    @preconcurrency case custom(@Sendable (any Swift.Decoder) throws -> Data)
  }

  /// Which strings stand for NaN and the infinities.
  public enum NonConformingFloatDecodingStrategy: Sendable {
    /// None: strings are no numbers.
    case `throw`
    /// These.
    case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
  }

  /// How the keys of the data become those of the type.
  public enum KeyDecodingStrategy: Sendable {
    /// They stay as they are.
    case useDefaultKeys
    /// `one_two_three` becomes `oneTwoThree`. A key like `myURL` is found in `my_url` too, which it was
    /// encoded as.
    case convertFromSnakeCase
    /// The closure is given the path to the key, which is last in it, and returns another key.
    @preconcurrency case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
  }
}

/// The options of one decoding.
struct DecodingOptions: Sendable {
  var dates = Database.Decoder.DateDecodingStrategy.deferredToDate
  var data = Database.Decoder.DataDecodingStrategy.base64
  var floats = Database.Decoder.NonConformingFloatDecodingStrategy.throw
  var keys = Database.Decoder.KeyDecodingStrategy.useDefaultKeys
  var passthroughTypes: any StructureCodingPassthroughTypeResolver.Type = NoPassthroughTypes.self
  var userInfo: [CodingUserInfoKey: any Sendable] = [:]
}
