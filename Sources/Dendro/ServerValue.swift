import DendroTree
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

  /// What is there now plus `delta`; `delta` if there is no number. Atomic: increments from many
  /// writers never lose one another.
  ///
  /// Integers add as 64-bit integers, and as doubles if that overflows or one of them is a double.
  public class func increment(_ delta: NSNumber) -> [AnyHashable: Any] {
    [".sv": ["increment": delta] as [AnyHashable: Any]]
  }

  /// `increment(_:)` by an integer.
  public class func increment(_ delta: Int) -> [AnyHashable: Any] {
    SmallIncrements.value(delta) ?? [".sv": ["increment": delta] as [AnyHashable: Any]]
  }

  /// `increment(_:)` by a double, which must be finite.
  public class func increment(_ delta: Double) -> [AnyHashable: Any] {
    [".sv": ["increment": delta] as [AnyHashable: Any]]
  }
}

extension ServerValue {
  private nonisolated(unsafe) static let serverValueKey = AnyHashable(".sv")
  private nonisolated(unsafe) static let incrementKey = AnyHashable("increment")

  /// The number by which a server value of the form that `increment(_:)` makes adds; nil for anything else, which
  /// `ValueReader` reads.
  static func delta(of value: Any) -> Number? {
    guard type(of: value) == [AnyHashable: Any].self,
      case let dictionary = value as! [AnyHashable: Any], dictionary.count == 1
    else { return nil }
    if let small = SmallIncrements.delta(of: dictionary) { return .integer(Int64(small)) }
    guard let (key, content) = dictionary.first, type(of: content) == [AnyHashable: Any].self,
      key == serverValueKey, case let operation = content as! [AnyHashable: Any],
      operation.count == 1, let (name, operand) = operation.first, name == incrementKey
    else { return nil }
    let type = type(of: operand)
    if type == Int.self { return .integer(Int64(operand as! Int)) }
    if type == Double.self {
      let number = operand as! Double
      return number.isFinite ? .double(number) : nil
    }
    return nil
  }
}

/// The server values that add a small integer, made once: most count by one. Such a dictionary is known again by its
/// storage, without looking into it.
///
/// It relies on this: a native dictionary is one pointer to its storage, which is not shared by another value as long as
/// it lives, and these live for ever. What is not known again is read as any other dictionary is.
private enum SmallIncrements {
  private static let deltas = -16...16
  /// Never changed; they hold strings and integers alone.
  private nonisolated(unsafe) static let values: [[AnyHashable: Any]] = deltas.map {
    [".sv": ["increment": $0] as [AnyHashable: Any]]
  }
  private static let one = storage(of: values[1 - deltas.lowerBound])
  private static let byStorage: [UInt: Int] = Dictionary(
    zip(values.map(storage), deltas), uniquingKeysWith: { first, _ in first })

  static func value(_ delta: Int) -> [AnyHashable: Any]? {
    deltas.contains(delta) ? values[delta - deltas.lowerBound] : nil
  }

  static func delta(of value: [AnyHashable: Any]) -> Int? {
    let storage = storage(of: value)
    return storage == one ? 1 : byStorage[storage]
  }

  private static func storage(of value: [AnyHashable: Any]) -> UInt {
    unsafeBitCast(value, to: UInt.self)
  }
}
