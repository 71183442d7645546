import Foundation

/// Values as texts, to compare them: JSON with sorted keys.
///
/// A program that is linked with a static Foundation finds no two dictionaries with arrays within equal.
enum ComparableText {
  /// - Parameter value: as a snapshot or `JSONSerialization` gives it; nil is as null.
  /// - Throws: if the value is no JSON.
  static func make(_ value: Any?) throws -> Data {
    try JSONSerialization.data(
      withJSONObject: value ?? NSNull(), options: [.sortedKeys, .fragmentsAllowed])
  }
}
