extension ExpressionCompiler {
  /// Makes the instructions of a call whose receiver is on the stack.
  mutating func call(
    _ method: Method, _ arguments: [Expression], at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    switch method {
    case .snapshot(let method): try call(method, arguments, at: offset)
    case .string(let method): try call(method, arguments, at: offset)
    }
  }

  private mutating func call(
    _ method: SnapshotMethod, _ arguments: [Expression], at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    switch method {
    case .val: return try plain(method.rawValue, .value, arguments, .value, at: offset)
    case .getPriority: return try plain(method.rawValue, .priority, arguments, .value, at: offset)
    case .parent: return try plain(method.rawValue, .parent, arguments, .snapshot, at: offset)
    case .exists: return try plain(method.rawValue, .exists, arguments, .boolean, at: offset)
    case .isNumber: return try plain(method.rawValue, .isNumber, arguments, .boolean, at: offset)
    case .isString: return try plain(method.rawValue, .isString, arguments, .boolean, at: offset)
    case .isBoolean: return try plain(method.rawValue, .isBoolean, arguments, .boolean, at: offset)
    case .child:
      if let path = arguments.onlyString {
        code.emit(.childAt(code.index(path: path)))
        return .snapshot
      }
      return try textual(method.rawValue, .child, arguments, .snapshot, at: offset)
    case .hasChild:
      if let path = arguments.onlyString {
        code.emit(.hasChildAt(code.index(path: path)))
        return .boolean
      }
      return try textual(method.rawValue, .hasChild, arguments, .boolean, at: offset)
    case .hasChildren: return try hasChildren(arguments, at: offset)
    }
  }

  private mutating func call(
    _ method: StringMethod, _ arguments: [Expression], at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    switch method {
    case .contains: try textual(method.rawValue, .contains, arguments, .boolean, at: offset)
    case .beginsWith: try textual(method.rawValue, .beginsWith, arguments, .boolean, at: offset)
    case .endsWith: try textual(method.rawValue, .endsWith, arguments, .boolean, at: offset)
    case .toLowerCase: try plain(method.rawValue, .lowercase, arguments, .string, at: offset)
    case .toUpperCase: try plain(method.rawValue, .uppercase, arguments, .string, at: offset)
    case .replace: try replace(arguments, at: offset)
    case .matches: try matches(arguments, at: offset)
    }
  }

  /// A method without arguments.
  private mutating func plain(
    _ name: String, _ instruction: Instruction, _ arguments: [Expression],
    _ result: ExpressionType, at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    for argument in arguments { _ = try compile(argument) }
    guard arguments.isEmpty else {
      throw TextFailure("\(name)() expects no arguments.", at: offset)
    }
    code.emit(instruction)
    return result
  }

  /// A method with one string.
  private mutating func textual(
    _ name: String, _ instruction: Instruction, _ arguments: [Expression],
    _ result: ExpressionType, at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    let types = try compile(all: arguments)
    guard types.count == 1 else {
      throw TextFailure("\(name)() expects 1 argument.", at: offset)
    }
    guard types[0].isText else {
      throw TextFailure(
        "\(name)() expects a string argument.", at: arguments[0].range.lowerBound)
    }
    code.emit(instruction)
    return result
  }

  private mutating func replace(
    _ arguments: [Expression], at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    let types = try compile(all: arguments)
    guard types.count == 2 else {
      throw TextFailure("replace() expects two arguments.", at: offset)
    }
    for (index, type) in types.enumerated() where !type.isText {
      throw TextFailure(
        "Argument \(index + 1) of replace() must be a string.",
        at: arguments[index].range.lowerBound)
    }
    code.emit(.replace)
    return .string
  }

  private mutating func matches(
    _ arguments: [Expression], at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    if arguments.count == 1, case .pattern(let text, let flags) = arguments[0].kind {
      code.emit(.matches(try pattern(text, flags: flags, at: arguments[0].range.lowerBound)))
      return .boolean
    }
    _ = try compile(all: arguments)
    let article = arguments.count == 1 ? "a" : "1"
    throw TextFailure(
      "matches() expects \(article) regular expression literal argument.", at: offset)
  }

  private mutating func hasChildren(
    _ arguments: [Expression], at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    guard let list = arguments.first else {
      code.emit(.hasAnyChild)
      return .boolean
    }
    guard arguments.count == 1 else {
      throw TextFailure(
        "hasChildren() expects only a single argument (containing an array of child names).",
        at: offset)
    }
    guard case .array(let names) = list.kind else {
      _ = try compile(list)
      throw TextFailure(
        "hasChildren() expects an array of child names.", at: list.range.lowerBound)
    }
    if let paths = names.allStrings, let count = UInt16(exactly: paths.count) {
      let indices = paths.map { code.index(path: $0) }
      code.emit(.hasChildrenAt(first: indices.first ?? 0, count: count))
      return .boolean
    }
    let types = try compile(all: names)
    guard types.allSatisfy(\.isText) else {
      throw TextFailure("hasChildren() expects an array of strings.", at: list.range.lowerBound)
    }
    code.emit(.hasChildren(Int32(names.count)))
    return .boolean
  }

  private mutating func compile(
    all expressions: [Expression]
  ) throws(TextFailure) -> [ExpressionType] {
    var types: [ExpressionType] = []
    for expression in expressions { types.append(try compile(expression)) }
    return types
  }
}

extension [Expression] {
  /// The only element, if it is a literal string.
  fileprivate var onlyString: String? {
    if count == 1, case .string(let value) = self[0].kind { value } else { nil }
  }

  /// The elements, if all are literal strings.
  fileprivate var allStrings: [String]? {
    var strings: [String] = []
    for element in self {
      guard case .string(let value) = element.kind else { return nil }
      strings.append(value)
    }
    return strings
  }
}
