/// Something in rules that is allowed and probably not meant.
public struct RuleWarning: Hashable, Sendable, CustomStringConvertible {
  /// Its place in the text.
  public let position: TextPosition
  /// One sentence or two: what it is, and what follows from it.
  public let message: String

  /// The position and the message, as errors show them.
  public var description: String { "\(position): \(message)" }
}

extension RuleWarning {
  private static let countMax = 100

  /// All warnings about rules, in the order of the text.
  static func all(
    about program: RuleProgram, hints: [(message: String, offset: Int)]
  ) -> [RuleWarning] {
    let found = hints + program.rules.indices.compactMap { program.hint(about: $0) }
    return found.sorted { ($0.offset, $0.message) < ($1.offset, $1.message) }.prefix(countMax).map {
      RuleWarning(position: program.positions.position(of: $0.offset), message: $0.message)
    }
  }
}

extension RuleProgram {
  fileprivate func hint(about index: Int) -> (message: String, offset: Int)? {
    let rule = rules[index]
    return message(about: rule).map { ($0, rule.offset(0)) }
  }

  private func message(about rule: Rule) -> String? {
    switch rule.kind {
    case .validate:
      return isEverWritable(rule.node)
        ? nil : "No '.write' allows a write here, above or below: the rule is never evaluated."
    case .read, .write:
      if let above = grant(rule.kind, above: rule.node) {
        return
          "The rule has no effect: '\(rule.kind.rawValue)' of \(location(of: above)) is true already."
      }
      guard rule.node == 0, rule.constant == true else { return nil }
      return "Any client may \(rule.kind == .read ? "read" : "write") the whole database."
    }
  }

  /// The node above whose rule of this kind is the literal `true`.
  private func grant(_ kind: RuleKind, above node: Int) -> Int? {
    var current = nodes[node].parent
    while let above = current {
      let index = nodes[above][kind]
      if index >= 0, rules[Int(index)].constant == true { return above }
      current = nodes[above].parent
    }
    return nil
  }

  /// Whether any `.write` on the way to the node, or below it, may be true.
  private func isEverWritable(_ node: Int) -> Bool {
    var current: Int? = node
    while let above = current {
      if mayGrant(above) { return true }
      current = nodes[above].parent
    }
    return mayGrantBelow(node)
  }

  private func mayGrant(_ node: Int) -> Bool {
    let index = nodes[node].write
    return index >= 0 && rules[Int(index)].constant != false
  }

  private func mayGrantBelow(_ node: Int) -> Bool {
    let below = nodes[node].children.map { Int($0.node) } + [Int(nodes[node].wildcard)]
    return below.contains { $0 >= 0 && (mayGrant($0) || mayGrantBelow($0)) }
  }
}
