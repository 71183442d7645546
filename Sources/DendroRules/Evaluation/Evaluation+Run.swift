import DendroTree

extension Evaluation {
  /// Runs the instructions of a rule.
  mutating func run(_ range: Range<Int>, at level: Int) throws(Failure) -> Bool {
    stack.removeAll(keepingCapacity: true)
    let program = program
    var next = range.lowerBound
    while next < range.upperBound {
      stepsLeft &-= 1
      guard stepsLeft >= 0 else { throw .steps }
      let current = next
      next &+= 1
      switch program.code[current] {
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
    guard case .bool(let value)? = stack.last else { throw .boolean }
    return value
  }

  private mutating func execute(_ instruction: Instruction, _ level: Int) throws(Failure) {
    switch instruction {
    case .constant(let index): stack.append(program.constants[Int(index)])
    case .auth: pushAuth()
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

    case .childAt(let path): try move { (e, p) throws(Failure) in
      try e.child(p, at: e.program.paths[Int(path)])
    }
    case .child:
      let path = try text()
      try move { (e, p) throws(Failure) in try e.child(p, atPath: path) }
    case .parent: try move { (e, p) throws(Failure) in try e.parent(p) }
    case .value: replace(value(try snapshot()))
    case .priority: replace(priority(try snapshot()))
    case .exists: replace(.bool(exists(try snapshot())))
    case .hasAnyChild: replace(.bool(hasAnyChild(try snapshot())))
    case .isNumber: replace(.bool(kind(try snapshot()) == .number))
    case .isString: replace(.bool(kind(try snapshot()) == .string))
    case .isBoolean: replace(.bool(kind(try snapshot()) == .boolean))
    case .hasChildAt(let path):
      let place = try child(snapshot(), at: program.paths[Int(path)])
      replace(.bool(exists(place)))
    case .hasChild:
      let path = try text()
      let place = try child(snapshot(), atPath: path)
      replace(.bool(exists(place)))
    case .hasChildren(let count): try hasChildren(Int(count))
    default: try operate(instruction)
    }
  }

  private mutating func operate(_ instruction: Instruction) throws(Failure) {
    switch instruction {
    case .equal: try compare { a, b in Value.isEqual(a, b) }
    case .notEqual: try compare { a, b in !Value.isEqual(a, b) }
    case .equalTo(let index): try compare(to: Int(index), isEqual: true)
    case .notEqualTo(let index): try compare(to: Int(index), isEqual: false)
    case .less: try compare { a, b throws(Failure) in try Value.isLess(a, b, orEqual: false) }
    case .lessOrEqual: try compare { a, b throws(Failure) in try Value.isLess(a, b, orEqual: true) }
    case .greater: try compare { a, b throws(Failure) in try Value.isLess(b, a, orEqual: false) }
    case .greaterOrEqual:
      try compare { a, b throws(Failure) in try Value.isLess(b, a, orEqual: true) }
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

  /// The compiler pushes what each instruction takes.
  var top: Value { stack[stack.count &- 1] }

  @inline(__always)
  mutating func replace(_ value: Value) { stack[stack.count &- 1] = value }

  @inline(__always)
  func snapshot() throws(Failure) -> Int {
    guard case .snapshot(let place) = top else { throw .receiver }
    return Int(place)
  }

  /// Takes an argument that has to be a string.
  mutating func text() throws(Failure) -> String {
    guard case .string(let text)? = stack.popLast() else { throw .argument }
    return text
  }

  private mutating func move(
    _ body: (inout Evaluation, Int) throws(Failure) -> Int
  ) throws(Failure) {
    let place = try snapshot()
    replace(.snapshot(Int32(truncatingIfNeeded: try body(&self, place))))
  }

  // MARK: Operators

  private mutating func compare(_ body: (Value, Value) throws(Failure) -> Bool) throws(Failure) {
    let right = stack.removeLast()
    try work(onBoth: top, right)
    replace(.bool(try body(top, right)))
  }

  private mutating func compare(to constant: Int, isEqual: Bool) throws(Failure) {
    // A long string equals no shorter one, which takes no time to find out.
    replace(.bool(Value.isEqual(top, program.constants[constant]) == isEqual))
  }

  private mutating func calculate(
    _ body: (Value, Value) throws(Failure) -> Value
  ) throws(Failure) {
    let right = stack.removeLast()
    replace(try body(top, right))
  }

  // MARK: Variables

  private mutating func pushAuth() {
    uses.insert(.auth)
    stack.append(request.auth.map { .json(.object($0.variable)) } ?? .null)
  }

  /// The key that the `$` name with a number is bound to.
  private mutating func name(ofBinding slot: Int, _ level: Int) -> String {
    var current = level
    // The name of the innermost level that has this number.
    while current > 0 {
      let node = program.nodes[levels[current].node]
      if node.isWildcard, node.bindingCount == slot { break }
      current -= 1
    }
    if let name = levels[current].name { return name }
    let name = places[2 * current].key?.string ?? ""
    levels[current].name = name
    return name
  }

  private mutating func property(_ name: String) {
    guard case .json(let json) = top else { return replace(.null) }
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
    if case .json(.array(let elements)) = top {
      let place = Int(name) ?? -1
      return replace(elements.indices.contains(place) ? Value(elements[place]) : .null)
    }
    property(name)
  }

  private mutating func lengthOfAny() throws(Failure) {
    guard case .json = top else { return try length() }
    property("length")
  }
}
