import DendroTree
import Foundation

/// Converts values of type `Any` to nodes.
///
/// The common types are recognized by their exact dynamic type, which is one comparison each. Casts, which
/// bridge and cost ten times as much, come last. `NSNumber` is read by its `objCType` only: on Linux
/// `as? Bool` succeeds on any number that is 0 or 1.
///
/// | value | becomes |
/// | --- | --- |
/// | `nil`, `NSNull`, an optional without value | nothing |
/// | `String`, `NSString`, `Substring` | a string |
/// | `Bool`, `NSNumber` of a boolean | a boolean |
/// | integers, `NSNumber` of one | an integer; above `Int64.max` a double |
/// | `Double`, `Float`, `CGFloat`, `Decimal`, `NSNumber` of one | a double, finite |
/// | dictionaries with string keys | a branch; `.value`, `.priority` and `.sv` are read first |
/// | arrays | a branch with the keys 0, 1, … |
/// | `Database.Value` | what it stands for |
/// | anything else | refused |
struct ValueReader {
  /// The location that the value is for, relative to the write: where server values are noted.
  private let prefix: Path
  /// Levels above the value.
  let outerDepth: Int
  /// Where in the value the reader is.
  var keys: [Key] = []
  /// Server values met, by place. The node holds a stand-in there.
  var deferred: [Draft.Deferred] = []
  /// Whether the outermost dictionary had a `.priority` of its own.
  var hasOwnPriority = false

  /// - Parameters:
  ///   - outerDepth: segments of the whole path of the value's location.
  ///   - prefix: that location relative to the write.
  init(outerDepth: Int, prefix: Path = .root) {
    self.outerDepth = outerDepth
    self.prefix = prefix
  }

  /// What a server value is until admission resolves it: a leaf, so that it keeps its place and may
  /// have a priority.
  static let standIn = Scalar.integer(0)

  // MARK: Values

  mutating func node(_ value: Any) throws(ValidationError) -> Node {
    let type = type(of: value)
    if type == String.self { return try string(value as! String) }
    if type == Int.self { return Node(.integer(Int64(value as! Int))) }
    if type == Double.self { return Node(try double(value as! Double)) }
    if type == Bool.self { return Node(.bool(value as! Bool)) }
    if type == [String: Any].self { return try dictionary(value as! [String: Any]) }
    if type == [AnyHashable: Any].self { return try dictionary(value as! [AnyHashable: Any]) }
    if type == [Any].self { return try array(value as! [Any]) }
    if type == [String: String].self { return try scalars(value as! [String: String], validScalar) }
    if type == [String: Int].self {
      return try scalars(value as! [String: Int]) { .integer(Int64($0)) }
    }
    if type == [String: Double].self { return try scalars(value as! [String: Double], validScalar) }
    if type == [String: Bool].self { return try scalars(value as! [String: Bool]) { .bool($0) } }
    return try rare(value)
  }

  private mutating func rare(_ value: Any) throws(ValidationError) -> Node {
    if let optional = value as? any OptionalValue {
      guard let wrapped = optional.wrapped else { return .empty }
      return try node(wrapped)
    }
    if type(of: value) is AnyClass { return try object(value as AnyObject) }
    if let scalar = try number(value) { return Node(scalar) }
    if let value = value as? Database.Value {
      guard let encoded = EncodedValue(value) else { throw tooDeep() }
      return try node(encoded)
    }
    if let text = value as? Substring { return try string(String(text)) }
    if let strings = value as? [String: Any] { return try dictionary(strings) }
    if let anything = value as? [AnyHashable: Any] { return try dictionary(anything) }
    if let elements = value as? [Any] { return try array(elements) }
    throw refused(value)
  }

  private mutating func object(_ object: AnyObject) throws(ValidationError) -> Node {
    switch object {
    case let text as NSString: return try string(text as AnyObject as! String)
    case let number as NSNumber: return Node(try checked(Scalar(number)))
    case is NSNull: return .empty
    case let dictionary as NSDictionary: return try self.dictionary(dictionary)
    case let array as NSArray: return try self.array(array)
    default: throw refused(object)
    }
  }

  /// The scalar of a value of one of the four usual types, where it is valid; else nil.
  func plainScalar(_ value: Any) -> Scalar? {
    let type = type(of: value)
    if type == String.self { return validScalar(value as! String) }
    if type == Int.self { return .integer(Int64(value as! Int)) }
    if type == Double.self { return validScalar(value as! Double) }
    if type == Bool.self { return .bool(value as! Bool) }
    return nil
  }

  func validScalar(_ text: String) -> Scalar? {
    text.utf8.count <= Limits.stringBytes ? .string(text) : nil
  }

  func validScalar(_ value: Double) -> Scalar? { value.isFinite ? .double(value) : nil }

  func string(_ text: String) throws(ValidationError) -> Node {
    Node(try scalar(text))
  }

  // MARK: Scalars

  func scalar(_ text: String) throws(ValidationError) -> Scalar {
    guard text.utf8.count <= Limits.stringBytes else {
      throw invalid(
        "a string of \(text.utf8.count) bytes is over the limit of \(Limits.stringBytes)")
    }
    return .string(text)
  }

  func double(_ value: Double) throws(ValidationError) -> Scalar {
    guard value.isFinite else { throw invalid("\(value) is not a number that can be stored") }
    return .double(value)
  }

  /// The native number types; nil for anything else.
  private func number(_ value: Any) throws(ValidationError) -> Scalar? {
    guard let scalar = Scalar(native: value) else { return nil }
    return try checked(scalar)
  }

  /// The scalar, if it can be stored: a string that is not too long, a finite double.
  func checked(_ scalar: Scalar) throws(ValidationError) -> Scalar {
    switch scalar {
    case .string(let text): try self.scalar(text)
    case .double(let value): try double(value)
    case .integer, .bool: scalar
    }
  }

  /// A scalar of any accepted type; nil for empty ones, containers and everything else.
  func scalar(_ value: Any) throws(ValidationError) -> Scalar? {
    if let scalar = plainScalar(value) { return scalar }
    switch value {
    case let text as String: return try scalar(text)
    case let text as Substring: return try scalar(String(text))
    default:
      if type(of: value) is AnyClass {
        guard let number = value as AnyObject as? NSNumber else { return nil }
        return try checked(Scalar(number))
      }
      return try number(value)
    }
  }

  var place: Path {
    keys.isEmpty ? prefix : prefix.appending(Path(keys: keys))
  }

  // MARK: Errors

  func refused(_ value: Any) -> ValidationError {
    invalid("a value of type \(Self.shown(type(of: value))) cannot be stored")
  }

  func tooDeep() -> ValidationError {
    invalid("the data is deeper than \(Limits.depth) levels")
  }

  func invalid(_ message: String) -> ValidationError {
    ValidationError(.invalidData, located(message))
  }

  func located(_ message: String) -> String {
    let place = place
    return place.isRoot ? message : "at \(place): \(message)"
  }

  /// Describes a value for an error message, in bounded length. A container may be large or deep, so only
  /// its type is shown.
  static func shown(_ value: Any) -> String {
    let isContainer =
      value is [AnyHashable: Any] || value is [Any] || value is NSDictionary || value is NSArray
    let text = String(describing: isContainer ? type(of: value) : value)
    return text.count > 80 ? text.prefix(80) + "…" : text
  }
}
