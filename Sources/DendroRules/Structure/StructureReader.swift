import DendroTree

/// Makes nodes and rules of a parsed text.
struct StructureReader {
  private(set) var nodes: [RuleNode] = []
  private(set) var rules: [Rule] = []
  private(set) var code = CodeBuilder()
  private(set) var hints: [(message: String, offset: Int)] = []
  let positions: PositionTable
  /// The `$` names above the node that is read.
  private var bindings: [String: Int] = [:]

  init(_ bytes: [UInt8]) { positions = PositionTable(bytes) }

  mutating func read(_ document: TextValue) throws(TextFailure) {
    guard case .object(let members) = document.kind else {
      throw TextFailure("Expected '{'.", at: document.range.lowerBound)
    }
    guard let rules = last(members).last, members.allSatisfy({ $0.name.text == "rules" }) else {
      throw TextFailure("Expected 'rules' property.", at: document.range.lowerBound)
    }
    nodes.append(RuleNode(name: "", parent: nil, offset: rules.name.start - 1, bindingCount: 0))
    try node(0, rules.value)
  }

  // MARK: Nodes

  private mutating func node(_ index: Int, _ value: TextValue) throws(TextFailure) {
    let members = try object(value)
    for member in last(members) {
      let name = member.name.text
      if let kind = RuleKind(rawValue: name) {
        try rule(kind, of: index, member.value)
      } else if name == ".indexOn" {
        nodes[index].indexes = try indexes(member.value)
      } else if name.utf8.first == UInt8(ascii: "$") {
        try wildcard(name, of: index, member)
      } else {
        try child(name, of: index, member)
      }
    }
    nodes[index].children.sort { $0.key < $1.key }
    nodes[index].validatesBelow = below(index).contains { nodes[$0].validates }
  }

  private func below(_ index: Int) -> [Int] {
    let literals = nodes[index].children.map { Int($0.node) }
    return nodes[index].wildcard < 0 ? literals : literals + [Int(nodes[index].wildcard)]
  }

  private func object(_ value: TextValue) throws(TextFailure) -> [TextMember] {
    guard case .object(let members) = value.kind else {
      throw TextFailure("Expected '{'.", at: value.range.lowerBound)
    }
    return members
  }

  /// The members; of those with one name the last one.
  private mutating func last(_ members: [TextMember]) -> [TextMember] {
    var places: [[UInt8]: Int] = [:]
    for (index, member) in members.enumerated() {
      if let earlier = places.updateValue(index, forKey: member.name.bytes) {
        hints.append(
          (
            "'\(member.name.text)' is there twice. The last one counts.",
            members[earlier].name.start - 1
          ))
      }
    }
    guard places.count < members.count else { return members }
    return members.enumerated().filter { places[$1.name.bytes] == $0 }.map(\.element)
  }

  private mutating func child(
    _ name: String, of parent: Int, _ member: TextMember
  ) throws(TextFailure) {
    _ = try object(member.value)
    guard let key = try? Key(name) else { throw Self.illegalName(member) }
    let index = append(name, to: parent, member)
    nodes[parent].children.append(RuleNode.Child(key: key, node: Int32(index)))
    try node(index, member.value)
  }

  private mutating func wildcard(
    _ name: String, of parent: Int, _ member: TextMember
  ) throws(TextFailure) {
    _ = try object(member.value)
    guard (try? Key(String(name.dropFirst()))) != nil else { throw Self.illegalName(member) }
    if nodes[parent].wildcard >= 0 {
      let other = nodes[Int(nodes[parent].wildcard)].name
      throw TextFailure(
        "Cannot have multiple default rules ('\(other)' and '\(name)').",
        at: member.name.start - 1)
    }
    guard bindings[name] == nil else {
      throw TextFailure(
        "'\(name)' is already bound by a node above.", at: member.name.start - 1)
    }
    let index = append(name, to: parent, member)
    nodes[parent].wildcard = Int32(index)
    bindings[name] = nodes[index].bindingCount
    try node(index, member.value)
    bindings[name] = nil
  }

  private mutating func append(_ name: String, to parent: Int, _ member: TextMember) -> Int {
    let above = nodes[parent]
    nodes.append(
      RuleNode(
        name: name, parent: parent, offset: member.name.start - 1,
        bindingCount: above.bindingCount + (above.isWildcard ? 1 : 0)))
    return nodes.count - 1
  }

  private static func illegalName(_ member: TextMember) -> TextFailure {
    TextFailure(
      "String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\"", at: member.name.start - 1
    )
  }

  // MARK: Rules

  private mutating func rule(
    _ kind: RuleKind, of node: Int, _ value: TextValue
  ) throws(TextFailure) {
    switch value.kind {
    case .boolean(let allows):
      let start = value.range.lowerBound
      let literal = Expression(kind: .boolean(allows), range: 0..<value.range.count)
      let source = Array((allows ? "true" : "false").utf8)
      try compile(literal, kind, node, source) { start + $0 }
    case .string(let text):
      do throws(TextFailure) {
        let expression = try ExpressionParser.parse(text.bytes)
        try compile(expression, kind, node, text.bytes) { text.offset(of: $0) }
      } catch {
        throw TextFailure(error.message, at: text.offset(of: error.offset))
      }
    default:
      throw TextFailure(
        "Invalid rule expression.  Expected 'true', 'false', or an expression string.",
        at: value.range.lowerBound)
    }
  }

  private mutating func compile(
    _ expression: Expression, _ kind: RuleKind, _ node: Int, _ source: [UInt8],
    _ offset: @escaping @Sendable (Int) -> Int
  ) throws(TextFailure) {
    let (codeStart, spanStart) = (code.next, code.spans.count)
    var compiler = ExpressionCompiler(kind, bindings: bindings, code: code)
    code = CodeBuilder()  // Or the compiler would copy what it appends to.
    try compiler.rule(expression)
    code = compiler.code
    hints += compiler.hints.map { ($0.message, offset($0.offset)) }
    nodes[node][kind] = Int32(rules.count)
    rules.append(
      Rule(
        kind: kind, node: node, source: source, position: positions.position(of: offset(0)),
        offset: offset, code: codeStart..<code.next, spans: spanStart..<code.spans.count,
        constant: expression.literal))
  }

  private func indexes(_ value: TextValue) throws(TextFailure) -> [String] {
    let failure = TextFailure(
      "Invalid indexOn expression. Must be either a string or an array of strings",
      at: value.range.lowerBound)
    switch value.kind {
    case .string(let text): return [Self.index(text.text)]
    case .array(let elements):
      return try elements.map { (element) throws(TextFailure) in
        guard case .string(let text) = element.kind else { throw failure }
        return Self.index(text.text)
      }
    default: throw failure
    }
  }

  /// As queries name it: slashes at the ends, and one behind another, mean nothing.
  private static func index(_ text: String) -> String {
    text.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
      .joined(separator: "/")
  }
}

extension RuleNode {
  /// Whether it or a node below has a `.validate`.
  var validates: Bool { validate >= 0 || validatesBelow }
}
