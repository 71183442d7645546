import DendroTree
import Foundation

/// What a value is decoded from: part of a tree, or one of Foundation's objects.
enum DecodedValue {
  case null
  case scalar(Scalar)
  /// Above `Int64.max`.
  case unsigned(UInt64)
  case decimal(Decimal)
  case branch(Node)
  case dictionary([String: Any])
  case array([Any])
  case foreign(Any)

  init(_ node: Node) {
    if let scalar = node.scalar {
      self = .scalar(scalar)
    } else {
      self = node.isEmpty ? .null : .branch(node)
    }
  }

  init(_ value: Any) {
    if type(of: value) == String.self {
      self = .scalar(.string(value as! String))
    } else if let optional = value as? any OptionalValue {
      self = optional.wrapped.map { DecodedValue($0) } ?? .null
    } else if type(of: value) is AnyClass {
      self.init(object: value as AnyObject)
    } else {
      self.init(native: value)
    }
  }

  private init(object: AnyObject) {
    switch object {
    case is NSNull: self = .null
    case let text as NSString: self = .scalar(.string(text as AnyObject as! String))
    case let number as NSDecimalNumber: self = .decimal(number.decimalValue)
    case let number as NSNumber:
      self = DecodedValue(exactly: number) ?? .scalar(Scalar(number))
    case let dictionary as NSDictionary:
      self = DecodedValue(pairs: dictionary.map { ($0.key, $0.value) }) ?? .foreign(object)
    case let array as NSArray: self = .array(array.map { $0 })
    default: self = .foreign(object)
    }
  }

  private init(native value: Any) {
    switch value {
    case let text as String: self = .scalar(.string(text))
    case let value as UInt64: self = DecodedValue(exactly: value)
    case let value as UInt: self = DecodedValue(exactly: UInt64(value))
    case let value as Decimal: self = .decimal(value)
    case let value as Database.Value: self = DecodedValue(value)
    case let text as Substring: self = .scalar(.string(String(text)))
    case let dictionary as [String: Any]: self = .dictionary(dictionary)
    case let dictionary as [AnyHashable: Any]:
      self =
        DecodedValue(pairs: dictionary.map { ($0.key.base, $0.value) }) ?? .foreign(dictionary)
    case let array as [Any]: self = .array(array)
    default: self = Scalar(native: value).map(DecodedValue.scalar) ?? .foreign(value)
    }
  }

  private init(exactly value: UInt64) {
    self = Int64(exactly: value).map { .scalar(.integer($0)) } ?? .unsigned(value)
  }

  private init?(exactly number: NSNumber) {
    guard number.objCType[0] == Int8(bitPattern: UInt8(ascii: "Q")) else { return nil }
    self.init(exactly: number.uint64Value)
  }

  /// Nil if a key is neither a string nor an integer.
  private init?(pairs: [(Any, Any)]) {
    var dictionary = [String: Any](minimumCapacity: pairs.count)
    for (key, value) in pairs {
      if let key = key as? String {
        dictionary[key] = value
      } else if let index = key as? Int {
        dictionary[String(index)] = value
      } else {
        return nil
      }
    }
    self = .dictionary(dictionary)
  }

  var isNull: Bool { if case .null = self { true } else { false } }

  /// For error messages.
  var shown: String {
    switch self {
    case .null: "nothing"
    case .scalar(.bool): "a boolean"
    case .scalar(.integer), .scalar(.double), .unsigned, .decimal: "a number"
    case .scalar(.string): "a string"
    case .scalar(.bytes): "bytes"
    case .branch, .dictionary: "a dictionary"
    case .array: "an array"
    case .foreign(let value): "a value of type \(type(of: value))"
    }
  }
}

extension DecodedValue {
  /// For the passthrough resolver.
  var foundationValue: Any {
    switch self {
    case .null: NSNull()
    case .scalar(let scalar): scalar.foundationValue
    case .unsigned(let value): NSNumber(value: value)
    case .decimal(let value): NSDecimalNumber(decimal: value)
    case .branch(let node): node.foundationValue
    case .dictionary(let dictionary): dictionary
    case .array(let array): array
    case .foreign(let value): value
    }
  }
}
