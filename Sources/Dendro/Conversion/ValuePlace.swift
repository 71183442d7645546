import DendroTree
import Foundation

/// Where in a value from outside a reader is, for messages and for the depth; and the scalars that may stand there.
struct ValuePlace {
  /// The location that the value is for.
  private let location: Path
  /// Segments of the path of the value's location, which may be below `location` in an update.
  var outerDepth: Int
  /// The keys on the way from there.
  var names: [String] = []

  init(at location: Path) {
    self.location = location
    outerDepth = location.count
  }

  var depth: Int { outerDepth + names.count }

  // MARK: Scalars

  /// A scalar of any accepted type; nil for empty ones, containers and everything else.
  func scalar(_ value: Any) throws(ValidationError) -> Scalar? {
    let type = type(of: value)
    if type == String.self { return try string(value as! String) }
    if type == Int.self { return .integer(Int64(value as! Int)) }
    if type == Double.self { return try double(value as! Double) }
    if type == Bool.self { return .bool(value as! Bool) }
    switch value {
    case let text as String: return try string(text)
    case let text as Substring: return try string(String(text))
    default:
      if type is AnyClass {
        guard let number = value as AnyObject as? NSNumber else { return nil }
        return try checked(Scalar(number))
      }
      return try number(value)
    }
  }

  /// The native number types; nil for anything else.
  func number(_ value: Any) throws(ValidationError) -> Scalar? {
    guard let scalar = Scalar(native: value) else { return nil }
    return try checked(scalar)
  }

  /// The scalar, if it can be stored: a string that is not too long, a finite double.
  func checked(_ scalar: Scalar) throws(ValidationError) -> Scalar {
    switch scalar {
    case .string(let text): try string(text)
    case .double(let value): try double(value)
    case .integer, .bool: scalar
    case .bytes: preconditionFailure("the data have no bytes")
    }
  }

  func string(_ text: String) throws(ValidationError) -> Scalar {
    try checkLength(text)
    return .string(text)
  }

  @inline(__always)
  func checkLength(_ text: String) throws(ValidationError) {
    guard text.utf8.count <= Limits.stringBytes else {
      throw invalid(
        "a string of \(text.utf8.count) bytes is over the limit of \(Limits.stringBytes)")
    }
  }

  func double(_ value: Double) throws(ValidationError) -> Scalar {
    guard value.isFinite else { throw invalid("\(value) is not a number that can be stored") }
    return .double(value)
  }

  /// Asks objects only: to ask a Swift container whether it is an object makes one of it and of all it
  /// holds, however deep.
  static func isNull(_ value: Any) -> Bool {
    type(of: value) is AnyClass && value is NSNull
  }

  // MARK: Errors

  func refused(_ value: Any) -> ValidationError {
    let advice =
      switch value {
      case is Date:
        ": setValue(from:) stores a date, and ServerValue.timestamp() the time of the write"
      case is any Encodable: ": setValue(from:) stores it"
      default: ""
      }
    return invalid("a value of type \(Self.shown(type(of: value))) cannot be stored\(advice)")
  }

  func tooDeep() -> ValidationError {
    invalid("the data is deeper than \(Limits.depth) levels")
  }

  func invalid(_ message: String) -> ValidationError {
    ValidationError(.invalidData, located(message))
  }

  func located(_ message: String) -> String {
    var place = location
    for name in names {
      // A key that was gone through is legal.
      if let key = try? Key(name) { place = place.appending(key) }
    }
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
