/// What the compiler knows about the value of an expression.
enum ExpressionType: Equatable {
  case boolean
  case number
  case string
  case null
  case regex
  case snapshot
  /// A method that is not called.
  case method
  case query
  /// What is stored: of any primitive type.
  case value
  /// `auth` and all below it.
  case any
  /// A property of a query that may be null.
  case queryValue
  /// A conditional whose branches are of different types.
  case mixed(hasStringMembers: Bool)

  /// The type of a conditional.
  init(_ a: ExpressionType, or b: ExpressionType) {
    self = a == b ? a : .mixed(hasStringMembers: a.isPartlyString || b.isPartlyString)
  }

  private var isPartlyString: Bool {
    switch self {
    case .string, .value: true
    case .mixed(let hasStringMembers): hasStringMembers
    default: false
    }
  }

  /// Whether strings' methods and `length` are known members.
  var hasStringMembers: Bool { isPartlyString }

  /// Whether it may be an argument that has to be a string.
  var isText: Bool {
    switch self {
    case .string, .value, .any, .mixed: true
    default: false
    }
  }

  /// Whether `-`, `*`, `/` and `%` take it.
  var isNumeric: Bool {
    switch self {
    case .number, .value, .any, .queryValue, .mixed: true
    default: false
    }
  }

  /// Whether `<` and `+` take it.
  var isOrdered: Bool { isNumeric || self == .string }

  /// Whether `==` takes it.
  var isEquatable: Bool { isOrdered || self == .boolean || self == .null }

  /// Whether it is one type for which no other value is equal.
  var isPrimitive: Bool {
    switch self {
    case .boolean, .number, .string, .null: true
    default: false
    }
  }
}

/// A method of a snapshot. The raw value is its name in rules.
enum SnapshotMethod: String {
  case val, child, parent, hasChild, hasChildren, exists, getPriority
  case isNumber, isString, isBoolean
}

/// A method of a string. The raw value is its name in rules.
enum StringMethod: String {
  case contains, beginsWith, endsWith, replace, toLowerCase, toUpperCase, matches
}
