// Server values for types of one's own, and for data without `Any`.

extension Database.Value {
  /// ``ServerValue/timestamp()``: the time of the write, in milliseconds since 1970, once it is written.
  ///
  /// In a type of your own ``ServerTimestamp`` is read back as a date.
  public static var serverTimestamp: Database.Value { [".sv": "timestamp"] }

  /// `ServerValue.increment(_:)` by an integer: the sum, once it is written.
  ///
  /// ```swift
  /// struct Counters: Codable {
  ///   var messages: Database.Value = .serverIncrement(1)
  /// }
  /// ```
  public static func serverIncrement(_ delta: Int) -> Database.Value {
    [".sv": ["increment": .integer(Int64(delta))]]
  }

  /// `ServerValue.increment(_:)` by a double, which must be finite.
  public static func serverIncrement(_ delta: Double) -> Database.Value {
    [".sv": ["increment": .double(delta)]]
  }
}
