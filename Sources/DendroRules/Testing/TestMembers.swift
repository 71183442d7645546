import DendroTree

/// The members of an object of tests, each read as what it should be.
struct TestMembers {
  let values: [String: TextValue]
  /// Where the object begins.
  let start: Int

  init(_ value: TextValue, known: Set<String>) throws(TextFailure) {
    start = value.range.lowerBound
    guard case .object(let members) = value.kind else {
      throw TextFailure("Expected '{'.", at: start)
    }
    var values: [String: TextValue] = [:]
    for member in members {
      let name = member.name.text
      guard known.contains(name) else {
        throw TextFailure("Unknown member '\(name)'.", at: member.name.start - 1)
      }
      values[name] = member.value
    }
    self.values = values
  }

  private func failure(_ message: String, _ name: String) -> TextFailure {
    TextFailure(message, at: values[name]?.range.lowerBound ?? start)
  }

  func string(_ name: String) throws(TextFailure) -> String? {
    guard let value = values[name] else { return nil }
    guard case .string(let text) = value.kind else {
      throw failure("Expected a string as '\(name)'.", name)
    }
    return text.text
  }

  func integer(_ name: String) throws(TextFailure) -> Int64? {
    guard let value = values[name] else { return nil }
    guard case .number(let spelling) = value.kind, let integer = Int64(spelling) else {
      throw failure("Expected a whole number as '\(name)'.", name)
    }
    return integer
  }

  func path(_ text: String) throws(TextFailure) -> Path {
    do {
      return try Path(parsing: text)
    } catch {
      throw failure(error.message, "path")
    }
  }

  func operation() throws(TextFailure) -> RuleTests.Operation {
    guard let name = try string("operation"), let operation = RuleTests.Operation(rawValue: name)
    else {
      throw failure(
        "Expected 'operation': read, set, update, remove or setPriority.", "operation")
    }
    return operation
  }

  func expectation() throws(TextFailure) -> Bool {
    switch try string("expect") {
    case "allow": true
    case "deny": false
    default: throw failure("Expected 'expect': allow or deny.", "expect")
    }
  }

  func auth() throws(TextFailure) -> RuleAuth? {
    guard let value = values["as"] else { return nil }
    guard let auth = RuleAuth.said(by: try JSONValue(value)) else {
      throw failure("Expected null or an object as 'as'.", "as")
    }
    return auth
  }

  // MARK: Queries

  private static let queryMembers: Set = [
    "orderBy", "startAt", "endAt", "equalTo", "limitToFirst", "limitToLast",
  ]

  func query() throws(TextFailure) -> RuleQuery {
    guard let value = values["query"] else { return RuleQuery() }
    if case .null = value.kind { return RuleQuery() }
    let members = try TestMembers(value, known: Self.queryMembers)
    return RuleQuery(
      order: try members.order(), startAt: try members.scalar("startAt"),
      endAt: try members.scalar("endAt"), equalTo: try members.scalar("equalTo"),
      limitToFirst: try members.limit("limitToFirst"),
      limitToLast: try members.limit("limitToLast"))
  }

  private func order() throws(TextFailure) -> RuleQuery.Order? {
    switch try string("orderBy") {
    case nil: nil
    case "$key": .key
    case "$value": .value
    case "$priority": .priority
    case let path?: .child(path)
    }
  }

  private func limit(_ name: String) throws(TextFailure) -> Int? {
    try integer(name).map { Int($0) }
  }

  private func scalar(_ name: String) throws(TextFailure) -> RuleScalar? {
    guard let value = values[name] else { return nil }
    switch try JSONValue(value) {
    case .null: return nil
    case .scalar(let scalar): return scalar
    default: throw failure("Expected a string, a number, a boolean or null as '\(name)'.", name)
    }
  }
}
