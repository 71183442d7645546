import DendroTree

/// A value that an expression has while it is evaluated: plain bytes.
enum Value {
  case null
  case bool(Bool)
  case integer(Int64)
  case double(Double)
  case string(Text)
  /// A location: the index of its place in the evaluation.
  case snapshot(Int32)
  /// An object or array below `auth`: its index in the evaluation.
  case json(Int32)
  /// What equals nothing and no operation takes, as the value of a location that has children.
  case unusable
}

extension Value {
  var isNull: Bool { if case .null = self { true } else { false } }

  var isText: Bool { if case .string = self { true } else { false } }

  /// - Parameters:
  ///   - scalar: nil for null. It is kept longer than the texts.
  ///   - texts: where its string is put, if it is in no memory that stays.
  init(_ scalar: RuleScalar?, _ texts: inout TextMemory) {
    switch scalar {
    case nil: self = .null
    case .boolean(let value): self = .bool(value)
    case .integer(let value): self = .integer(value)
    case .double(let value): self = .double(value)
    case .string(let value): self = .string(texts.text(of: value))
    }
  }

  init(_ scalar: Scalar?, keptIn texts: inout TextMemory) {
    switch scalar {
    case nil: self = .null
    case .bool(let value): self = .bool(value)
    case .integer(let value): self = .integer(value)
    case .double(let value): self = .double(value)
    case .string(let value): self = .string(texts.text(keeping: value))
    case .bytes: self = .unusable
    }
  }
}

/// Why a rule does not count as true although it did not become false.
enum Failure: Error {
  case comparison
  case addition
  case arithmetic
  case negation
  case receiver
  case argument
  case index
  case parentOfRoot
  case boolean
  case longString
  case deepLocation
  case steps

  /// One sentence.
  var reason: String {
    switch self {
    case .comparison: "Only two numbers or two strings can be compared."
    case .addition: "Only numbers and strings can be added."
    case .arithmetic: "Only numbers can be subtracted, multiplied and divided."
    case .negation: "Only a number can be negated."
    case .receiver: "Only a string has a length and the methods of strings."
    case .argument: "The argument of the method is not a string."
    case .index: "Only a string or a number can be an index."
    case .parentOfRoot: "The root has no parent."
    case .boolean: "A boolean was expected."
    case .longString: "The string is longer than \(RuleLimits.stringBytes) bytes."
    case .deepLocation: "The location is deeper than \(RuleLimits.depth) keys."
    case .steps: "The verdict took more steps than it may."
    }
  }
}
