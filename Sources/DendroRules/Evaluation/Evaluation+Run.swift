import DendroTree

extension Evaluation {
  /// Runs the instructions of a rule.
  mutating func run(_ range: Range<Int>, at level: Int) throws(Failure) -> Bool {
    stack.truncate(to: 0)
    let code = program.code
    var next = range.lowerBound
    while next < range.upperBound {
      stepsLeft &-= 1
      guard stepsLeft >= 0 else { throw .steps }
      let current = next
      next &+= 1
      switch code[current] {
      case .jump(let target): next = Int(target)
      case .jumpIfFalse(let target):
        if try bool() { take() } else { next = Int(target) }
      case .jumpIfTrue(let target):
        if try bool() { next = Int(target) } else { take() }
      case .takeJumpIfFalse(let target):
        if try !bool() { next = Int(target) }
        take()
      case let instruction:
        try execute(instruction, level)
      }
      if recorder != nil { record(range, executed: current, next: next) }
    }
    return try bool()
  }

  /// Takes the boolean on top of the stack. Where it was the only value, what led to it is needed no more.
  @inline(__always)
  private mutating func take() {
    stack.removeLast()
    if stack.count == 0 { forgetExpression() }
  }

  /// The boolean on top of the stack, which stays there.
  private func bool() throws(Failure) -> Bool {
    guard case .bool(let value) = stack.top else { throw .boolean }
    return value
  }

  @inline(__always)
  private mutating func execute(_ instruction: Instruction, _ level: Int) throws(Failure) {
    switch instruction {
    case .constant(let index): stack.append(program.constants[Int(index)])
    case .auth: pushAuth()
    case .authUserID: pushUserID()
    case .authProperty(let name): pushPropertyOfAuth(Int(name))
    case .now:
      uses.insert(.now)
      stack.append(.integer(request.pointee.now))
    case .root: stack.append(.snapshot(0))
    case .data: stack.append(.snapshot(Int32(truncatingIfNeeded: 2 &* level)))
    case .newData: stack.append(.snapshot(Int32(truncatingIfNeeded: 2 &* level &+ 1)))
    case .binding(let slot): stack.append(.string(text(ofBinding: Int(slot), level)))
    case .unusable: stack.append(.unusable)
    case .makeUnusable: replace(.unusable)
    case .query(let property):
      uses.insert(.query)
      let query = request.pointee.query ?? RuleQuery()
      replace(query.value(of: property, &texts))

    case .childAt(let path): move(try child(snapshot(), at: Int(path)))
    case .child:
      let path = try text()
      move(try child(snapshot(), atPath: path))
    case .parent: move(try parent(snapshot()))
    case .value: replace(value(try snapshot()))
    case .priority: replace(priority(try snapshot()))
    case .exists: replace(.bool(exists(try snapshot())))
    case .hasAnyChild: replace(.bool(hasAnyChild(try snapshot())))
    case .isNumber: replace(.bool(kind(try snapshot()) == .number))
    case .isString: replace(.bool(kind(try snapshot()) == .string))
    case .isBoolean: replace(.bool(kind(try snapshot()) == .boolean))
    case .hasChildAt(let path): replace(.bool(exists(try child(snapshot(), at: Int(path)))))
    case .hasChild:
      let path = try text()
      replace(.bool(exists(try child(snapshot(), atPath: path))))
    case .hasChildrenAt(let first, let count): try hasChildren(from: Int(first), Int(count))
    case .hasChildren(let count): try hasChildren(Int(count))
    default: try operate(instruction)
    }
  }

  private mutating func operate(_ instruction: Instruction) throws(Failure) {
    switch instruction {
    case .equal: try compare(isEqual: true)
    case .notEqual: try compare(isEqual: false)
    case .equalTo(let index): compare(to: Int(index), isEqual: true)
    case .notEqualTo(let index): compare(to: Int(index), isEqual: false)
    case .isNull: replace(.bool(stack.top.isNull))
    case .isNotNull: replace(.bool(!stack.top.isNull))
    case .less: try order(isReversed: false, orEqual: false)
    case .lessOrEqual: try order(isReversed: false, orEqual: true)
    case .greater: try order(isReversed: true, orEqual: false)
    case .greaterOrEqual: try order(isReversed: true, orEqual: true)
    case .not: replace(.bool(try !bool()))
    case .negate: replace(try Value.negated(top))
    case .add: try add()
    case .subtract: try calculate { a, b throws(Failure) in try Value.difference(a, b) }
    case .multiply: try calculate { a, b throws(Failure) in try Value.product(a, b) }
    case .divide: try calculate { a, b throws(Failure) in try Value.quotient(a, b) }
    case .remainder: try calculate { a, b throws(Failure) in try Value.remainder(a, b) }
    case .property(let name): property(program.names[Int(name)])
    case .index: try index()
    case .lengthOfAny: try lengthOfAny()
    default: try operateOnString(instruction)
    }
  }

  // MARK: The stack

  /// What is on top of the stack. The compiler has pushed what each instruction takes.
  var top: Value { stack.top }

  @inline(__always)
  mutating func replace(_ value: Value) { stack.top = value }

  @inline(__always)
  func snapshot() throws(Failure) -> Int {
    guard case .snapshot(let place) = stack.top else { throw .receiver }
    return Int(place)
  }

  /// Takes an argument that has to be a string.
  mutating func text() throws(Failure) -> Text {
    guard case .string(let text) = stack.removeLast() else { throw .argument }
    return text
  }

  @inline(__always)
  private mutating func move(_ place: Int) {
    replace(.snapshot(Int32(truncatingIfNeeded: place)))
  }

  // MARK: Operators

  private mutating func compare(isEqual: Bool) throws(Failure) {
    let right = stack.removeLast()
    try work(onBoth: stack.top, right)
    replace(.bool(Value.isEqual(stack.top, right) == isEqual))
  }

  private mutating func compare(to constant: Int, isEqual: Bool) {
    // A long string equals no shorter one, which takes no time to find out.
    replace(.bool(Value.isEqual(stack.top, program.constants[constant]) == isEqual))
  }

  private mutating func order(isReversed: Bool, orEqual: Bool) throws(Failure) {
    let right = stack.removeLast()
    try work(onBoth: stack.top, right)
    let result =
      isReversed
      ? try Value.isLess(right, stack.top, orEqual: orEqual)
      : try Value.isLess(stack.top, right, orEqual: orEqual)
    replace(.bool(result))
  }

  private mutating func calculate(
    _ body: (Value, Value) throws(Failure) -> Value
  ) throws(Failure) {
    let right = stack.removeLast()
    replace(try body(stack.top, right))
  }

  // MARK: Variables

  private mutating func pushAuth() {
    uses.insert(.auth)
    guard let auth = request.pointee.auth else { return stack.append(.null) }
    stack.append(value(of: .object(auth.variable)))
  }

  private mutating func pushPropertyOfAuth(_ name: Int) {
    uses.insert(.auth)
    guard let auth = request.pointee.auth else { return stack.append(.null) }
    stack.append(value(of: auth.variable[utf8: program.names[name].bytes]))
  }

  private mutating func pushUserID() {
    uses.insert(.auth)
    if let userID { return stack.append(userID) }
    stack.append(makeUserID())
  }

  private mutating func makeUserID() -> Value {
    let value: Value
    switch request.pointee.auth?.userID {
    case nil: value = .null
    case .scalar(.string(let text)): value = .string(texts.text(ofLasting: text))
    // An object has an index that is forgotten with the expression.
    case .array(let elements): return self.value(of: .array(elements))
    case .object(let object): return self.value(of: .object(object))
    case .some(let other): value = self.value(of: other)
    }
    userID = value
    return value
  }

  /// A value below `auth`, which the request keeps.
  private mutating func value(of json: JSONValue) -> Value {
    switch json {
    case .null: return .null
    case .scalar(let scalar): return Value(scalar, &texts)
    case .array, .object:
      objects.append(json)
      return .json(Int32(truncatingIfNeeded: objects.count &- 1))
    }
  }

  private mutating func property(_ name: Text) {
    guard case .json(let index) = top else { return replace(.null) }
    switch objects[Int(index)] {
    case .array(let elements):
      let index = Int(name.string) ?? -1
      replace(elements.indices.contains(index) ? value(of: elements[index]) : .null)
    case .object(let object): replace(value(of: object[utf8: name.bytes]))
    case .null, .scalar: replace(.null)
    }
  }

  private mutating func index() throws(Failure) {
    switch stack.removeLast() {
    case .string(let text): property(text)
    case .integer(let value): property(texts.text(keeping: String(value)))
    case .double(let value) where value == value.rounded():
      property(texts.text(keeping: Value.spelling(of: value)))
    default: throw .index
    }
  }

  private mutating func lengthOfAny() throws(Failure) {
    guard case .json = top else { return try length() }
    "length".withBytes { property(Text($0)) }
  }
}
