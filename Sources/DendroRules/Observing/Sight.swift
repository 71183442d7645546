/// What was seen at a location.
enum Sight: UInt8 {
  case exists
  case doesNotExist
  case hasChildren
  case hasNoChildren
  case isNothing
  case isBoolean
  case isNumber
  case isString
  case isObject
  /// The value of a leaf.
  case value
  case priority
  /// All children.
  case keys

  init(_ kind: DataKind) {
    switch kind {
    case .nothing: self = .isNothing
    case .boolean: self = .isBoolean
    case .number: self = .isNumber
    case .string: self = .isString
    case .object: self = .isObject
    }
  }
}
