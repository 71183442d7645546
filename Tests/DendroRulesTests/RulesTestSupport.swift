import DendroRules
import DendroTestSupport

/// Rules with one expression, at `/p`; below `$x` and `$y` if it is at `/p/$x/$y`.
func rulesText(_ expression: String, _ kind: RuleKind = .read, at names: [String] = ["p"]) -> String
{
  let rule = "{\(quotedJSON(kind.rawValue)): \(quotedJSON(expression))}"
  return "{\"rules\": \(names.reversed().reduce(rule) { "{\(quotedJSON($1)): \($0)}" })}"
}

/// The message with which a text is refused; nil if it is accepted.
func refusal(ofText text: String) -> String? {
  do throws(RuleTextError) {
    _ = try Rules(text)
    return nil
  } catch {
    return error.message
  }
}

/// The message with which an expression is refused, where `$x` is bound.
func refusal(of expression: String, _ kind: RuleKind = .write) -> String? {
  refusal(ofText: rulesText(expression, kind, at: ["p", "$x"]))
}

/// Whether `/p` may be read by an expression.
func allows(
  _ expression: String, _ data: String = "null", auth: RuleAuth? = nil,
  query: RuleQuery = RuleQuery(), now: Int64 = 0, at names: [String] = ["p"], path: String = "p"
) throws -> Bool {
  try decide(expression, data, auth: auth, query: query, now: now, at: names, path: path).isAllowed
}

func decide(
  _ expression: String, _ data: String = "null", auth: RuleAuth? = nil,
  query: RuleQuery = RuleQuery(), now: Int64 = 0, at names: [String] = ["p"], path: String = "p",
  details: RuleDetails = []
) throws -> RuleVerdict {
  let rules = try Rules(rulesText(expression, at: names))
  let tree = try JSONTree("{\"p\": \(data)}")
  let request = try RuleRequest(reading: path, query: query, auth: auth, now: now)
  return rules.decide(request, data: tree, details: details)
}

/// Why a rule did not become true or false; nil if it did.
func failure(_ expression: String, _ data: String = "null", auth: RuleAuth? = nil) throws -> String?
{
  let verdict = try decide(expression, data, auth: auth, details: .trace)
  if case .failed(let reason)? = verdict.trace?.evaluations.first?.outcome { return reason }
  return nil
}

/// Rules, the stored tree, and who asks: requests against them in one line.
struct Bench {
  let rules: Rules
  let data: JSONTree
  var auth: RuleAuth?
  var now: Int64 = 1_000

  init(_ rules: String, _ data: String = "null", auth: RuleAuth? = nil) throws {
    self.rules = try Rules("{\"rules\": \(rules)}")
    self.data = try JSONTree(data)
    self.auth = auth
  }

  func read(_ path: String, _ query: RuleQuery = RuleQuery()) throws -> Bool {
    let request = try RuleRequest(reading: path, query: query, auth: auth, now: now)
    return rules.decide(request, data: data).isAllowed
  }

  func set(_ path: String, _ value: String) throws -> Bool { try setting(path, value).isAllowed }

  func setting(_ path: String, _ value: String, _ details: RuleDetails = []) throws -> RuleVerdict {
    let request = try RuleRequest(setting: path, auth: auth, now: now)
    let newData = try data.setting(path, to: value, now: now)
    return rules.decide(request, data: data, newData: newData, details: details)
  }

  func update(_ path: String, _ children: [String], _ value: String) throws -> Bool {
    let request = try RuleRequest(updating: path, children: children, auth: auth, now: now)
    let newData = try data.updating(path, with: value, now: now)
    return rules.decide(request, data: data, newData: newData).isAllowed
  }

  func setPriority(_ path: String, _ value: String) throws -> Bool {
    let request = try RuleRequest(settingPriority: path, auth: auth, now: now)
    let newData = try data.settingPriority(path, to: value, now: now)
    return rules.decide(request, data: data, newData: newData).isAllowed
  }
}

extension RuleAuth {
  /// A user who signed in anonymously.
  static let anonymous = RuleAuth(
    claims: JSONObject([
      ("user_id", "anon"), ("firebase", ["sign_in_provider": "anonymous"]),
    ]))

  /// A user with further claims.
  static func user(_ id: String, _ claims: JSONValue...) -> RuleAuth {
    var members: [(String, JSONValue)] = [("sub", .scalar(.string(id)))]
    for case .object(let object) in claims {
      members += object.names.map { ($0, object[$0]) }
    }
    return RuleAuth(userID: id, claims: JSONObject(members))
  }
}
