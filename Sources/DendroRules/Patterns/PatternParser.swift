/// What a regular expression is made of.
indirect enum PatternNode {
  case empty
  case characters(CharacterSet)
  case sequence([PatternNode])
  case choice([PatternNode])
  /// So many times; without a greatest number if `max` is nil.
  case repeated(PatternNode, min: Int, max: Int?)
}

/// Why a regular expression was refused.
struct PatternError: Error {
  let reason: String
}

/// Parses the regular expressions of rules, which are fewer than those of other languages: no references back,
/// no looking around, no choice of how much a repetition takes.
struct PatternParser {
  private let scalars: [Unicode.Scalar]
  private let ignoresCase: Bool
  private var next = 0
  private var depth = 0
  /// After it no group can be closed.
  private let lastClosing: Int

  private(set) var beginsAtStart = false
  private(set) var endsAtEnd = false

  init(_ text: String, ignoresCase: Bool) {
    scalars = Array(text.unicodeScalars)
    self.ignoresCase = ignoresCase
    lastClosing = Self.lastClosing(scalars)
  }

  private static func lastClosing(_ scalars: [Unicode.Scalar]) -> Int {
    var last = -1
    var isInClass = false
    var index = 0
    while index < scalars.count {
      switch scalars[index] {
      case "\\": index += 1
      case "[": isInClass = true
      case "]": isInClass = false
      case ")" where !isInClass: last = index
      default: break
      }
      index += 1
    }
    return last
  }

  /// The alternatives. As everywhere, `^` belongs to the first of them alone, and `$` to the last.
  mutating func parse() throws(PatternError) -> [PatternNode] {
    beginsAtStart = take("^")
    if next == scalars.count { return [.empty] }
    let nodes = try choices()
    guard next == scalars.count else { throw PatternError(reason: "')' without '('.") }
    return nodes
  }

  // MARK: Structure

  private mutating func choices() throws(PatternError) -> [PatternNode] {
    var choices = [try sequence(isFirst: true)]
    while take("|") { choices.append(try sequence(isFirst: false)) }
    return choices
  }

  private mutating func sequence(isFirst: Bool) throws(PatternError) -> PatternNode {
    var nodes: [PatternNode] = []
    if isFirst, !beginsAtStart || depth > 0, let scalar = peek, isLiteralAtBeginning(scalar) {
      next += 1
      nodes.append(try repetition(of: literal(scalar)))
    }
    while let scalar = peek, scalar != "|", scalar != ")" {
      if scalar == "$" {
        guard depth == 0, next == scalars.count - 1 else {
          throw PatternError(reason: "'$' is not at the end.")
        }
        next += 1
        endsAtEnd = true
        return .sequence(nodes)
      }
      nodes.append(try repetition(of: atom(scalar)))
    }
    guard !nodes.isEmpty else { throw PatternError(reason: "an alternative is empty.") }
    return .sequence(nodes)
  }

  /// What would be an operator stands for itself where nothing precedes it.
  private func isLiteralAtBeginning(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "|", ")", "?", "+", "}", "{", "*": true
    case "(": next > lastClosing
    default: false
    }
  }

  private mutating func atom(_ scalar: Unicode.Scalar) throws(PatternError) -> PatternNode {
    next += 1
    switch scalar {
    case "(": return try group()
    case "[": return .characters(try characterClass())
    case ".": return .characters(.any)
    case "\\": return .characters(try escape())
    case "*", "+", "?", "{": throw PatternError(reason: "nothing to repeat before '\(scalar)'.")
    case "^": throw PatternError(reason: "'^' is not at the beginning.")
    default: return literal(scalar)
    }
  }

  private mutating func group() throws(PatternError) -> PatternNode {
    guard depth < RuleLimits.nesting else {
      throw PatternError(reason: "groups are nested more than \(RuleLimits.nesting) levels deep.")
    }
    depth += 1
    let choices = try choices()
    depth -= 1
    guard take(")") else { throw PatternError(reason: "'(' without ')'.") }
    return choices.count == 1 ? choices[0] : .choice(choices)
  }

  private func literal(_ scalar: Unicode.Scalar) -> PatternNode {
    var set = CharacterSet(ignoresCase: ignoresCase)
    set.insert(scalar.value)
    return .characters(set)
  }

  // MARK: Repetitions

  private mutating func repetition(of node: PatternNode) throws(PatternError) -> PatternNode {
    guard let scalar = peek else { return node }
    let result: PatternNode
    switch scalar {
    case "*": result = .repeated(node, min: 0, max: nil)
    case "+": result = .repeated(node, min: 1, max: nil)
    case "?": result = .repeated(node, min: 0, max: 1)
    case "{":
      next += 1
      return try counted(node)
    default: return node
    }
    next += 1
    return result
  }

  private mutating func counted(_ node: PatternNode) throws(PatternError) -> PatternNode {
    let min = try count()
    var max: Int? = min
    if take(",") { max = peek == "}" ? nil : try count() }
    guard take("}") else { throw PatternError(reason: "'{' without '}'.") }
    if let max, max < min { throw PatternError(reason: "{\(min),\(max)} is out of order.") }
    return .repeated(node, min: min, max: max)
  }

  private mutating func count() throws(PatternError) -> Int {
    var value: Int?
    while let scalar = peek, let digit = Int(String(scalar)), scalar.isASCII {
      value = (value ?? 0) * 10 + digit
      next += 1
      if value ?? 0 > RuleLimits.patternPositions {
        throw PatternError(reason: "it repeats more than \(RuleLimits.patternPositions) times.")
      }
    }
    guard let value else { throw PatternError(reason: "a number was expected after '{' or ','.") }
    return value
  }

  // MARK: Characters

  private mutating func escape() throws(PatternError) -> CharacterSet {
    guard let scalar = peek else { throw PatternError(reason: "'\\' at the end.") }
    next += 1
    if scalar.isASCII, let set = CharacterSet.escaped(UInt8(scalar.value)) { return set }
    var set = CharacterSet(ignoresCase: ignoresCase)
    set.insert(scalar.value)
    return set
  }

  private mutating func characterClass() throws(PatternError) -> CharacterSet {
    var set = CharacterSet(isNegated: take("^"), ignoresCase: ignoresCase)
    guard peek != "]" else { throw PatternError(reason: "the class is empty.") }
    while let first = peek, first != "]" {
      guard let low = try classMember(&set) else { continue }
      guard peek == "-", next + 1 < scalars.count, scalars[next + 1] != "]" else {
        set.insert(low)
        continue
      }
      next += 1
      guard let high = try classMember(&set), high >= low else {
        throw PatternError(reason: "a range is out of order.")
      }
      set.insert(low...high)
    }
    guard take("]") else { throw PatternError(reason: "'[' without ']'.") }
    return set
  }

  /// One character; nil if it was a class, which is inserted.
  private mutating func classMember(_ set: inout CharacterSet) throws(PatternError) -> UInt32? {
    guard let scalar = peek else { throw PatternError(reason: "'[' without ']'.") }
    next += 1
    guard scalar == "\\" else { return scalar.value }
    guard let escaped = peek else { throw PatternError(reason: "'\\' at the end.") }
    next += 1
    guard escaped.isASCII, let named = CharacterSet.escaped(UInt8(escaped.value)) else {
      return escaped.value
    }
    set.insert(named)
    return nil
  }

  private var peek: Unicode.Scalar? { next < scalars.count ? scalars[next] : nil }

  private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
    guard peek == scalar else { return false }
    next += 1
    return true
  }
}
