import DendroTree
import Foundation

/// Reads values of type `Any` into a write, in one pass.
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
struct ValueReader: ~Copyable {
  let builder = WriteBuilder()
  var place: ValuePlace
  /// Whether the outermost dictionary had a `.priority` of its own.
  var hasOwnPriority = false

  /// - Parameter location: of the value, or of the update that it is for.
  init(at location: Path) { place = ValuePlace(at: location) }

  // MARK: Values

  /// Appends a value, unless it is empty.
  mutating func read(_ value: Any) throws(ValidationError) {
    if let scalar = plain(value) { return append(scalar) }
    let type = type(of: value)
    if type == String.self { return try place.checkLength(value as! String) }
    if type == Double.self { _ = try place.double(value as! Double) }
    if type == [String: Any].self { return try dictionary(value as! [String: Any]) }
    if type == [AnyHashable: Any].self {
      if let delta = ServerValue.delta(of: value) { return builder.append(.increment(delta)) }
      return try dictionary(value as! [AnyHashable: Any])
    }
    if type == [Any].self { return try array(value as! [Any]) }
    if type == [String: String].self { return try scalars(value as! [String: String]) }
    if type == [String: Int].self { return try scalars(value as! [String: Int]) }
    if type == [String: Double].self { return try scalars(value as! [String: Double]) }
    if type == [String: Bool].self { return try scalars(value as! [String: Bool]) }
    try readRare(value)
  }

  /// The scalar of a value of one of the four usual types, if it is valid; else nil.
  @inline(__always)
  func plain(_ value: Any) -> Scalar? {
    let type = type(of: value)
    if type == String.self {
      let text = value as! String
      return text.utf8.count <= Limits.stringBytes ? .string(text) : nil
    }
    if type == Int.self { return .integer(Int64(value as! Int)) }
    if type == Double.self {
      let number = value as! Double
      return number.isFinite ? .double(number) : nil
    }
    if type == Bool.self { return .bool(value as! Bool) }
    return nil
  }

  @inline(__always)
  func append(_ scalar: Scalar) {
    switch scalar {
    case .string(let text): builder.append(text)
    case .integer(let number): builder.append(number)
    case .double(let number): builder.append(number)
    case .bool(let bool): builder.append(bool)
    case .bytes: preconditionFailure("the data have no bytes")
    }
  }

  private mutating func readRare(_ value: Any) throws(ValidationError) {
    if let optional = value as? any OptionalValue {
      if let wrapped = optional.wrapped { try read(wrapped) }
      return
    }
    if type(of: value) is AnyClass { return try read(object: value as AnyObject) }
    if let scalar = try place.number(value) { return builder.append(scalar) }
    if let value = value as? Database.Value {
      guard let encoded = EncodedValue(value) else { throw place.tooDeep() }
      return try read(encoded)
    }
    if let text = value as? Substring { return builder.append(try place.string(String(text))) }
    if let strings = value as? [String: Any] { return try dictionary(strings) }
    if let anything = value as? [AnyHashable: Any] { return try dictionary(anything) }
    if let elements = value as? [Any] { return try array(elements) }
    throw place.refused(value)
  }

  private mutating func read(object: AnyObject) throws(ValidationError) {
    switch object {
    case let text as NSString: builder.append(try place.string(text as AnyObject as! String))
    case let number as NSNumber: builder.append(try place.checked(Scalar(number)))
    case is NSNull: break
    case let dictionary as NSDictionary: try self.dictionary(dictionary)
    case let array as NSArray: try self.array(array)
    default: throw place.refused(object)
    }
  }
}
