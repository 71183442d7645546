public import Foundation

/// Values that the database fills in when it admits a write.
///
/// They may stand wherever a scalar may: as a whole value, nested in dictionaries and arrays, in the
/// entries of an update, and as a priority.
public final class ServerValue: Sendable {
  private init() {}

  /// The time of the write in milliseconds since 1970; the same at every place of one write, and never
  /// less than that of an earlier write.
  public class func timestamp() -> [AnyHashable: Any] { [".sv": "timestamp"] }

  /// What is there now plus `delta`; `delta` where there is no number. Atomic: increments from many
  /// writers never lose one another.
  ///
  /// Integers add as 64-bit integers, and as doubles where that overflows or one of them is a double.
  public class func increment(_ delta: NSNumber) -> [AnyHashable: Any] {
    [".sv": ["increment": delta] as [AnyHashable: Any]]
  }

  /// `increment(_:)` by an integer.
  public class func increment(_ delta: Int) -> [AnyHashable: Any] {
    [".sv": ["increment": delta] as [AnyHashable: Any]]
  }

  /// `increment(_:)` by a double, which must be finite.
  public class func increment(_ delta: Double) -> [AnyHashable: Any] {
    [".sv": ["increment": delta] as [AnyHashable: Any]]
  }
}
