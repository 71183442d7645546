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
        if try bool() { stack.removeLast() } else { next = Int(target) }
      case .jumpIfTrue(let target):
        if try bool() { next = Int(target) } else { stack.removeLast() }
      case .takeJumpIfFalse(let target):
        if try !bool() { next = Int(target) }
        stack.removeLast()
      case let instruction:
        try execute(instruction, level)
      }
      if recorder != nil { record(range, executed: current, next: next) }
    }
    return try bool()
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
    case .authProperty(let name): pushPropertyOfAuth(program.names[Int(name)])
    case .now:
      uses.insert(.now)
      stack.append(.integer(request.now))
    case .root: stack.append(.snapshot(0))
    case .data: stack.append(.snapshot(Int32(truncatingIfNeeded: 2 &* level)))
    case .newData: stack.append(.snapshot(Int32(truncatingIfNeeded: 2 &* level &+ 1)))
    case .binding(let slot): stack.append(.string(name(ofBinding: Int(slot), level)))
    case .unusable: stack.append(.unusable)
    case .makeUnusable: replace(.unusable)
    case .query(let property):
      uses.insert(.query)
      replace((request.query ?? RuleQuery()).value(of: property))

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
  mutating func text() throws(Failure) -> String {
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
    stack.append(request.auth.map { .json(.object($0.variable)) } ?? .null)
  }

  private mutating func pushPropertyOfAuth(_ name: String) {
    uses.insert(.auth)
    stack.append(request.auth.map { Value($0.variable[name]) } ?? .null)
  }

  private mutating func pushUserID() {
    uses.insert(.auth)
    stack.append(request.auth.map { Value($0.userID) } ?? .null)
  }

  private mutating func property(_ name: String) {
    guard case .json(let json) = top else { return replace(.null) }
    if case .array(let elements) = json {
      let index = Int(name) ?? -1
      return replace(elements.indices.contains(index) ? Value(elements[index]) : .null)
    }
    replace(Value(json[name]))
  }

  private mutating func index() throws(Failure) {
    let index = stack.removeLast()
    let name: String
    switch index {
    case .string(let text): name = text
    case .integer(let value): name = String(value)
    case .double(let value) where value == value.rounded(): name = Self.spelling(of: value)
    default: throw .index
    }
    property(name)
  }

  private mutating func lengthOfAny() throws(Failure) {
    guard case .json = top else { return try length() }
    property("length")
  }
}
