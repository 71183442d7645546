import DendroTree

/// Collects the instructions of all rules, and what they refer to.
struct CodeBuilder {
  private(set) var code: [Instruction] = []
  /// Nil for null.
  private(set) var constants: [RuleScalar?] = []
  private(set) var paths: [ConstantPath] = []
  private(set) var pathKeys: [Key] = []
  private(set) var names: [String] = []
  private(set) var patterns: [Pattern] = []
  private(set) var spans: [Span] = []
  private var patternWords = 0

  var next: Int { code.count }

  /// The bytes of all keys and texts.
  var byteCount: Int {
    var count = 0
    for case .string(let text)? in constants { count += text.utf8.count }
    for key in pathKeys { count += key.orderedByteCount }
    for name in names { count += name.utf8.count }
    return count
  }

  mutating func emit(_ instruction: Instruction) { code.append(instruction) }

  mutating func emit(constant value: RuleScalar?) { emit(.constant(index(constant: value))) }

  mutating func index(constant value: RuleScalar?) -> Int32 {
    constants.append(value)
    return Int32(constants.count - 1)
  }

  mutating func index(path: String) -> Int32 {
    let parsed = try? Path(parsing: path)
    paths.append(
      ConstantPath(first: Int32(pathKeys.count), count: parsed.map { Int32($0.count) } ?? -1))
    if let parsed { pathKeys += parsed.keys }
    return Int32(paths.count - 1)
  }

  mutating func index(name: String) -> Int32 {
    names.append(name)
    return Int32(names.count - 1)
  }

  /// - Returns: nil if the patterns of these rules are too large together.
  mutating func index(pattern: Pattern) -> Int32? {
    patternWords += pattern.wordCount
    guard patternWords <= Self.patternWordCountMax else { return nil }
    patterns.append(pattern)
    return Int32(patterns.count - 1)
  }

  /// 8 MB.
  private static let patternWordCountMax = 1 << 20

  /// Takes back the constant that was emitted last.
  mutating func takeConstant() -> Int32? {
    guard case .constant(let index)? = code.last else { return nil }
    code.removeLast()
    return index
  }

  /// Makes the jump at an index lead to the next instruction.
  mutating func land(_ jump: Int) {
    let target = Int32(next)
    switch code[jump] {
    case .jump: code[jump] = .jump(target)
    case .jumpIfFalse: code[jump] = .jumpIfFalse(target)
    case .jumpIfTrue: code[jump] = .jumpIfTrue(target)
    case .takeJumpIfFalse: code[jump] = .takeJumpIfFalse(target)
    default: preconditionFailure("only jumps have a target")
    }
  }

  mutating func mark(_ source: Range<Int>, from start: Int) {
    spans.append(Span(source: source, code: start..<next))
  }
}

/// A part of an expression whose value a trace shows.
struct Span {
  /// The bytes of the expression's source.
  let source: Range<Int>
  /// The instructions that compute it; after the last one, its value is on top of the stack.
  let code: Range<Int>
}
