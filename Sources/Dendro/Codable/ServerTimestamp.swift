public import Foundation

/// A date that the database fills in.
///
/// ```swift
/// struct Post: Codable {
///   var title: String
///   @ServerTimestamp var postedAt: Date?
/// }
/// ```
///
/// Nil is encoded as ``ServerValue/timestamp()``, so that ``DatabaseReference/setValue(from:encoder:completion:)``
/// stores the time of the write; a date as its milliseconds since 1970, an integer without fraction.
/// Milliseconds are decoded as the date, nothing as nil. The coders' strategies for dates do not matter.
@propertyWrapper
public struct ServerTimestamp: Codable, Hashable, Sendable {
  /// The date; nil if the database is to fill it in.
  public var wrappedValue: Date?

  /// Makes one.
  public init(wrappedValue: Date?) { self.wrappedValue = wrappedValue }

  /// Decodes milliseconds since 1970, or nothing.
  public init(from decoder: any Swift.Decoder) throws {
    let container = try decoder.singleValueContainer()
    wrappedValue =
      container.decodeNil()
      ? nil : Date(timeIntervalSince1970: TimeInterval(try container.decode(Int64.self)) / 1000)
  }

  /// Encodes milliseconds since 1970, or a server value.
  public func encode(to encoder: any Swift.Encoder) throws {
    var container = encoder.singleValueContainer()
    guard let wrappedValue else { return try container.encode([".sv": "timestamp"]) }
    let milliseconds = (wrappedValue.timeIntervalSince1970 * 1000).rounded(.towardZero)
    guard let milliseconds = Int64(exactly: milliseconds) else {
      // As its seconds: Foundation traps if it describes a date that is NaN.
      throw EncodingError.invalidValue(
        wrappedValue.timeIntervalSince1970,
        .init(
          codingPath: encoder.codingPath,
          debugDescription: "the date is out of the range of milliseconds in 64 bits"))
    }
    try container.encode(milliseconds)
  }
}
