import DendroTree
public import Foundation
import Synchronization

extension Database {
  /// Makes data of values of any `Encodable` type: `JSONEncoder` with the tree instead of JSON.
  ///
  /// ``DatabaseReference/setValue(from:encoder:completion:)`` encodes straight into the tree;
  /// ``encode(_:)`` makes the dictionaries, arrays, numbers and strings that `setValue(_:)` takes. See
  /// <doc:TypedData> for what becomes of which type.
  ///
  /// Any thread may use it; each encoding works with the options as they are when it begins.
  public final class Encoder: Sendable {
    private let state = Mutex(EncodingOptions())

    /// Makes an encoder with the default options.
    public init() {}

    /// What dates become. `.deferredToDate` by default.
    public var dateEncodingStrategy: DateEncodingStrategy {
      get { options.dates }
      set { state.withLock { $0.dates = newValue } }
    }

    /// What `Data` becomes. `.base64` by default.
    public var dataEncodingStrategy: DataEncodingStrategy {
      get { options.data }
      set { state.withLock { $0.data = newValue } }
    }

    /// What NaN and the infinities become, which the database cannot hold. `.throw` by default.
    public var nonConformingFloatEncodingStrategy: NonConformingFloatEncodingStrategy {
      get { options.floats }
      set { state.withLock { $0.floats = newValue } }
    }

    /// What the names of keys become. `.useDefaultKeys` by default. The keys of a `[String: T]` are data
    /// and stay as they are.
    public var keyEncodingStrategy: KeyEncodingStrategy {
      get { options.keys }
      set { state.withLock { $0.keys = newValue } }
    }

    /// Which values go out as they are. None by default. The database refuses what it cannot hold.
    public var passthroughTypeResolver: any StructureCodingPassthroughTypeResolver.Type {
      get { options.passthroughTypes }
      set { state.withLock { $0.passthroughTypes = newValue } }
    }

    /// What `encode(to:)` methods find in their encoder's `userInfo`. Empty by default.
    @preconcurrency
    public var userInfo: [CodingUserInfoKey: any Sendable] {
      get { options.userInfo }
      set { state.withLock { $0.userInfo = newValue } }
    }

    private var options: EncodingOptions { state.withLock { $0 } }

    /// Encodes a value as Foundation's objects.
    ///
    /// - Parameter value: any value, a scalar or an optional too.
    /// - Returns: dictionaries with string keys, arrays, `NSNumber`, `String` and `NSNull`.
    /// - Throws: `EncodingError` with the path to what cannot be encoded; what the value itself throws.
    public func encode<T: Encodable>(_ value: T) throws -> Any {
      try encoded(value).foundationValue
    }

    /// Encodes a value without making any of Foundation's objects.
    func encoded<T: Encodable>(_ value: T) throws -> EncodedValue {
      let run = EncodingRun(options)
      let encoded = try ValueEncoder(run).encodedIfAny(value, nil)
      if let failure = run.failure { throw failure }
      guard let encoded else {
        throw EncodingError.invalidValue(
          value,
          .init(codingPath: [], debugDescription: "a value of type \(T.self) encoded nothing"))
      }
      return encoded
    }
  }
}

// MARK: - Options

extension Database.Encoder {
  /// What dates become.
  public enum DateEncodingStrategy: Sendable {
    /// Seconds since the beginning of 2001, as `Date` does by itself.
    case deferredToDate
    /// Seconds since the beginning of 1970, with a fraction.
    case secondsSince1970
    /// Milliseconds since the beginning of 1970, with a fraction.
    case millisecondsSince1970
    /// A string like `2033-05-18T03:33:20Z`; fractions of a second are lost. Dates outside the years 0 to
    /// 9999 are refused.
    case iso8601
    /// A string that the formatter makes; a date of which it makes an empty one is refused.
    case formatted(DateFormatter)
    /// What the closure encodes; an empty dictionary if it encodes nothing.
    @preconcurrency case custom(@Sendable (Date, any Swift.Encoder) throws -> Void)
  }

  /// What `Data` becomes.
  public enum DataEncodingStrategy: Sendable {
    /// An array of bytes, as `Data` does by itself.
    case deferredToData
    /// A string in Base64.
    case base64
    /// `Data` as it is, which the database refuses.
    case blob
    /// What the closure encodes; an empty dictionary if it encodes nothing.
    @preconcurrency case custom(@Sendable (Data, any Swift.Encoder) throws -> Void)
  }

  /// What NaN and the infinities become.
  public enum NonConformingFloatEncodingStrategy: Sendable {
    /// They are refused with an `EncodingError`.
    case `throw`
    /// These strings.
    case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
  }

  /// What the names of keys become.
  public enum KeyEncodingStrategy: Sendable {
    /// They stay as they are.
    case useDefaultKeys
    /// `oneTwoThree` becomes `one_two_three`.
    case convertToSnakeCase
    /// The closure is given the path to the key, which is last in it, and returns another key.
    @preconcurrency case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
  }
}

/// The options of one encoding.
struct EncodingOptions: Sendable {
  var dates = Database.Encoder.DateEncodingStrategy.deferredToDate
  var data = Database.Encoder.DataEncodingStrategy.base64
  var floats = Database.Encoder.NonConformingFloatEncodingStrategy.throw
  var keys = Database.Encoder.KeyEncodingStrategy.useDefaultKeys
  var passthroughTypes: any StructureCodingPassthroughTypeResolver.Type = NoPassthroughTypes.self
  var userInfo: [CodingUserInfoKey: any Sendable] = [:]
}
