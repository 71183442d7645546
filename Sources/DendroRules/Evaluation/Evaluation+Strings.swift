import DendroTree

extension Evaluation {
  mutating func operateOnString(_ instruction: Instruction) throws(Failure) {
    switch instruction {
    case .length: try length()
    case .contains: try search { $0.contains($1) }
    case .beginsWith: try search { $0.begins(with: $1) }
    case .endsWith: try search { $0.ends(with: $1) }
    case .replace: try replaceText()
    case .lowercase: try change { $0.lowercased() }
    case .uppercase: try change { $0.uppercased() }
    case .matches(let pattern): try matches(program.patterns[Int(pattern)])
    default: preconditionFailure("each instruction is executed")
    }
  }

  /// Takes steps for the length of a string.
  mutating func work(on text: Text, bytesPerStep: Int) throws(Failure) {
    let count = text.count
    guard count >= bytesPerStep else { return }
    stepsLeft &-= count / bytesPerStep
    guard stepsLeft >= 0 else { throw .steps }
  }

  /// Takes steps for a comparison, which is fast.
  mutating func work(onBoth a: Value, _ b: Value) throws(Failure) {
    guard case .string(let a) = a, case .string(let b) = b else { return }
    try work(on: a.count < b.count ? a : b, bytesPerStep: 1024)
  }

  private func receiver() throws(Failure) -> Text {
    guard case .string(let text) = top else { throw .receiver }
    return text
  }

  /// UTF-16 code units, as in Java and JavaScript.
  mutating func length() throws(Failure) {
    let text = try receiver()
    try work(on: text, bytesPerStep: 1024)
    replace(.integer(Int64(text.utf16Count)))
  }

  private mutating func search(_ body: (Text, Text) -> Bool) throws(Failure) {
    let argument = try text()
    let text = try receiver()
    try work(on: text, bytesPerStep: 256)
    try work(on: argument, bytesPerStep: 256)
    replace(.bool(body(text, argument)))
  }

  private mutating func change(_ body: (String) -> String) throws(Failure) {
    let text = try receiver()
    try work(on: text, bytesPerStep: 64)
    replace(.string(texts.text(keeping: body(text.string))))
  }

  private mutating func replaceText() throws(Failure) {
    let new = try text()
    let old = try text()
    let text = try receiver()
    for part in [text, old, new] { try work(on: part, bytesPerStep: 256) }
    guard
      let result = text.replacing(
        old, with: new, byteCountMax: RuleLimits.stringBytes, in: &texts)
    else { throw .longString }
    try work(on: result, bytesPerStep: 256)
    replace(.string(result))
  }

  private mutating func matches(_ pattern: Pattern) throws(Failure) {
    let text = try receiver()
    // Sixteen looks at a state take about as long as an instruction.
    let before = stepsLeft &* 16
    var work = before
    let result = pattern.matches(text, work: &work)
    stepsLeft &-= (before &- work) / 16
    guard let result, stepsLeft >= 0 else {
      stepsLeft = -1
      throw .steps
    }
    replace(.bool(result))
  }

  mutating func hasChildren(_ count: Int) throws(Failure) {
    let first = stack.count - count
    let paths = (0..<count).map { stack[first + $0] }
    stack.truncate(to: first)
    let place = try snapshot()
    var hasAll = true
    for path in paths {
      // All have to be strings, also after one that is not there.
      guard case .string(let path) = path else { throw .argument }
      guard hasAll else { continue }
      hasAll = exists(try child(place, atPath: path))
    }
    replace(.bool(hasAll))
  }

  mutating func hasChildren(from first: Int, _ count: Int) throws(Failure) {
    let place = try snapshot()
    var hasAll = true
    for path in first..<first &+ count where hasAll {
      hasAll = exists(try child(place, at: path))
    }
    replace(.bool(hasAll))
  }

  // MARK: Adding

  mutating func add() throws(Failure) {
    let right = stack.removeLast()
    if let sum = Value.sum(top, right) { return replace(sum) }
    guard top.isText || right.isText, let a = addend(top), let b = addend(right) else {
      throw .addition
    }
    guard a.count + b.count <= RuleLimits.stringBytes else { throw .longString }
    try work(on: a, bytesPerStep: 256)
    try work(on: b, bytesPerStep: 256)
    replace(.string(texts.joined(a, b)))
  }

  /// What is appended to a string: the string, or the spelling of a number.
  private mutating func addend(_ value: Value) -> Text? {
    switch value {
    case .string(let text): text
    case .integer(let value): texts.text(keeping: String(value))
    case .double(let value): texts.text(keeping: Value.spelling(of: value))
    default: nil
    }
  }
}

extension Value {
  /// As JavaScript spells a number.
  static func spelling(of number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    return JSONWriter.string(Node(.double(number)))
  }
}
