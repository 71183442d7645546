import DendroRules
import DendroTestSupport

/// Makes expressions by the grammar, rules of them, data and requests. Most expressions are well-typed.
struct RuleGenerator {
  var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  static let keys = ["a", "b", "c", "1", "é"]

  mutating func pick<T>(_ choices: [T]) -> T { choices[generator.below(choices.count)] }

  // MARK: Rules

  mutating func rules() -> String { "{\"rules\": \(node(3, bound: []))}" }

  private mutating func node(_ depth: Int, bound: [String]) -> String {
    var members: [String] = []
    for kind in RuleKind.allCases where generator.oneIn(2) {
      let expression = rule(kind, bound: bound)
      members.append(
        "\"\(kind.rawValue)\": \(generator.oneIn(6) ? "true" : quotedJSON(expression))")
    }
    guard depth > 0 else { return "{\(members.joined(separator: ", "))}" }
    for key in Self.keys where generator.oneIn(3) {
      members.append("\"\(key)\": \(node(depth - 1, bound: bound))")
    }
    if generator.oneIn(2) {
      let name = "$n\(depth)"
      members.append("\"\(name)\": \(node(depth - 1, bound: bound + [name]))")
    }
    return "{\(members.joined(separator: ", "))}"
  }

  private mutating func rule(_ kind: RuleKind, bound: [String]) -> String {
    var expression = ExpressionGenerator(
      generator: generator, names: bound, isWriting: kind != .read || generator.oneIn(100))
    defer { generator = expression.generator }
    return expression.boolean(3)
  }

  // MARK: Data

  mutating func data(_ depth: Int = 3) -> String {
    if depth == 0 || generator.oneIn(4) { return leaf() }
    let children = Self.keys.filter { _ in generator.oneIn(2) }.map { key in
      "\"\(key)\":\(data(depth - 1))"
    }
    let priority = generator.oneIn(6) ? ["\".priority\":\(pick(["1", "\"x\""]))"] : []
    return "{\((children + priority).joined(separator: ","))}"
  }

  private mutating func leaf() -> String {
    let value = pick([
      "null", "true", "false", "0", "1", "2", "1.5", "\"a\"", "\"b\"", "\"ab1\"", "\"\"", "\"é😀\"",
      "9007199254740993", "{\".sv\":\"timestamp\"}",
    ])
    if value.first == "{" || value == "null" || !generator.oneIn(6) { return value }
    return "{\".value\":\(value),\".priority\":\(pick(["1", "\"x\"", "7"]))}"
  }

  mutating func path(_ lengthMax: Int = 4) -> String {
    (0..<generator.below(lengthMax + 1)).map { _ in pick(Self.keys) }.joined(separator: "/")
  }

  // MARK: Requests

  mutating func auth() -> RuleAuth? {
    switch generator.below(3) {
    case 0: nil
    case 1: RuleAuth(userID: pick(Self.keys))
    default:
      RuleAuth(
        claims: JSONObject([
          ("sub", "a"), ("a", ["b": 1]), ("list", ["x", 2]),
          ("firebase", ["sign_in_provider": "custom"]),
        ]))
    }
  }

  mutating func query() -> RuleQuery {
    if generator.oneIn(2) { return RuleQuery() }
    return RuleQuery(
      order: pick([nil, .key, .value, .priority, .child("a/b")]), startAt: pick([nil, 1, "a"]),
      equalTo: pick([nil, true, "b"]), limitToFirst: pick([nil, 1, 10]))
  }

  mutating func write() -> RandomWrite {
    switch generator.below(4) {
    case 0: return .priority(path(3), pick(["null", "1", "\"x\""]))
    case 1:
      let children = Self.keys.filter { _ in generator.oneIn(2) }.map { key in
        generator.oneIn(5) ? key + "/.priority" : generator.oneIn(3) ? key + "/b" : key
      }
      return .update(path(2), children.map { ($0, $0.hasSuffix("y") ? "1" : data(1)) })
    default: return .set(path(), data(2))
    }
  }
}

/// A write that can be applied to any tree.
enum RandomWrite {
  case set(String, String)
  case update(String, [(key: String, value: String)])
  case priority(String, String)

  func applied(to tree: JSONTree, now: Int64) throws -> JSONTree {
    switch self {
    case .set(let path, let value): try tree.setting(path, to: value, now: now)
    case .priority(let path, let value): try tree.settingPriority(path, to: value, now: now)
    case .update(let path, let entries):
      try tree.updating(
        path, with: "{\(entries.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ","))}",
        now: now)
    }
  }

  func request(auth: RuleAuth?, now: Int64) throws -> RuleRequest {
    switch self {
    case .set(let path, _): try RuleRequest(setting: path, auth: auth, now: now)
    case .priority(let path, _): try RuleRequest(settingPriority: path, auth: auth, now: now)
    case .update(let path, let entries):
      try RuleRequest(updating: path, children: entries.map(\.key), auth: auth, now: now)
    }
  }
}
