/// What a verdict needs of a node of the rules: plain numbers, so that reading it counts no reference.
struct NodeCode {
  /// Indices of rules and of a node; -1 for none.
  let read: Int32
  let write: Int32
  let validate: Int32
  let wildcard: Int32
  /// The literal children: a range of the program's child keys.
  let firstChild: Int32
  let childCount: Int32
  /// The number of the `$` name that the node binds; -1 if it binds none.
  let slot: Int32
  /// Whether it or a node below has a `.validate`.
  let validates: Bool
  let validatesBelow: Bool

  init(_ node: RuleNode, firstChild: Int) {
    read = node.read
    write = node.write
    validate = node.validate
    wildcard = node.wildcard
    self.firstChild = Int32(firstChild)
    childCount = Int32(node.children.count)
    slot = node.isWildcard ? Int32(node.bindingCount) : -1
    validates = node.validates
    validatesBelow = node.validatesBelow
  }
}

/// What a verdict needs of a rule.
struct RuleCode {
  enum Literal: UInt8 {
    case none
    case isFalse
    case isTrue
  }

  let start: Int32
  let end: Int32
  /// The value, if the rule is nothing but that.
  let literal: Literal

  init(_ rule: Rule) {
    start = Int32(rule.code.lowerBound)
    end = Int32(rule.code.upperBound)
    literal = rule.constant.map { $0 ? .isTrue : .isFalse } ?? .none
  }
}

/// A path that a rule spells out: a range of the program's path keys.
struct ConstantPath {
  let first: Int32
  /// -1 if no location can have the path.
  let count: Int32
}
