extension ExpressionCompiler {
  enum Method {
    case snapshot(SnapshotMethod)
    case string(StringMethod)

    var name: String {
      switch self {
      case .snapshot(let method): method.rawValue
      case .string(let method): method.rawValue
      }
    }
  }

  mutating func suffixed(
    _ base: Expression, _ suffixes: [Expression.Suffix]
  ) throws(TextFailure) -> ExpressionType {
    let start = code.next
    let isBelowAuth = emitPropertyOfAuth(base, suffixes)
    var type = isBelowAuth ? .any : try compile(base)
    var method: Method?
    if isBelowAuth, suffixes.count > 1 {
      code.mark(base.range.lowerBound..<suffixes[0].range.upperBound, from: start)
    }
    for (index, suffix) in suffixes.enumerated().dropFirst(isBelowAuth ? 1 : 0) {
      let isCalled = suffixes.dropFirst(index + 1).first?.isCall ?? false
      switch suffix.kind {
      case .call(let arguments):
        guard let called = method else {
          throw TextFailure(
            "Type error: Function call on target that is not a function.",
            at: suffix.range.lowerBound)
        }
        type = try call(called, arguments, at: suffix.range.lowerBound)
        method = nil
      case .member(let name):
        (type, method) = try member(name, of: type, isCalled, at: suffix.range.lowerBound)
      case .index(let index):
        if case .string(let name) = index.kind {
          (type, method) = try member(name, of: type, isCalled, at: suffix.range.lowerBound)
        } else {
          type = try element(index, of: type, at: suffix.range.lowerBound)
        }
      }
      // The last one is the expression itself.
      if method == nil, type != .snapshot, index < suffixes.count - 1 {
        code.mark(base.range.lowerBound..<suffix.range.upperBound, from: start)
      }
    }
    if method != nil { code.emit(.makeUnusable) }
    return type
  }

  /// `auth.x` is one instruction, which does not push `auth`.
  ///
  /// - Returns: whether the expression begins like that, and the instruction was made.
  private mutating func emitPropertyOfAuth(
    _ base: Expression, _ suffixes: [Expression.Suffix]
  ) -> Bool {
    guard case .name("auth") = base.kind, case .member(let name) = suffixes[0].kind,
      suffixes.count == 1 || !suffixes[1].isCall, name != "length"
    else { return false }
    code.emit(name == "uid" ? .authUserID : .authProperty(code.index(name: name)))
    return true
  }

  private mutating func element(
    _ index: Expression, of type: ExpressionType, at offset: Int
  ) throws(TextFailure) -> ExpressionType {
    _ = try compile(index)
    guard type == .any else { throw TextFailure("Invalid property access.", at: offset) }
    code.emit(.index)
    return .any
  }

  private mutating func member(
    _ name: String, of type: ExpressionType, _ isCalled: Bool, at offset: Int
  ) throws(TextFailure) -> (ExpressionType, Method?) {
    switch type {
    case .snapshot:
      guard let method = SnapshotMethod(rawValue: name) else { throw noSuch(name, at: offset) }
      return (.method, .snapshot(method))
    case .query:
      guard let property = QueryProperty(rawValue: name) else { throw noSuch(name, at: offset) }
      code.emit(.query(property))
      return (property.isFlag ? .boolean : .queryValue, nil)
    case .any:
      if isCalled, let method = StringMethod(rawValue: name) { return (.method, .string(method)) }
      code.emit(name == "length" ? .lengthOfAny : .property(code.index(name: name)))
      return (.any, nil)
    case _ where type.hasStringMembers:
      if name == "length" {
        code.emit(.length)
        return (.number, nil)
      }
      guard let method = StringMethod(rawValue: name) else { throw noSuch(name, at: offset) }
      return (.method, .string(method))
    default:
      throw TextFailure("Invalid property access: target is not an object.", at: offset)
    }
  }

  private func noSuch(_ name: String, at offset: Int) -> TextFailure {
    TextFailure("No such method/property '\(name)'.", at: offset)
  }
}

extension Expression.Suffix {
  fileprivate var isCall: Bool { if case .call = kind { true } else { false } }
}
