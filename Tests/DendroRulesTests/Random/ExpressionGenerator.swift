import DendroTestSupport

/// Makes expressions of a type, and now and then of a wrong one.
struct ExpressionGenerator {
  var generator: SeededGenerator
  let names: [String]
  /// Whether the new data is known.
  let isWriting: Bool

  private mutating func pick<T>(_ choices: [T]) -> T { choices[generator.below(choices.count)] }

  mutating func boolean(_ depth: Int) -> String {
    if generator.oneIn(500) { return string(0) }
    guard depth > 0 else {
      return pick(["true", "false", "\(snapshot(1)).exists()", "auth != null"])
    }
    let below = depth - 1
    switch generator.below(14) {
    case 0: return "\(boolean(below)) && \(boolean(below))"
    case 1: return "\(boolean(below)) || \(boolean(below))"
    case 2: return "!(\(boolean(below)))"
    case 3: return "\(value(below)) \(pick(["==", "!=", "===", "!=="])) \(value(below))"
    case 4: return "\(number(below)) \(pick(["<", "<=", ">", ">="])) \(number(below))"
    case 5: return "\(string(below)) \(pick(["<", ">"])) \(string(below))"
    case 6: return "(\(boolean(below)) ? \(boolean(below)) : \(boolean(below)))"
    case 7:
      return
        "\(snapshot(below)).\(pick(["exists", "isNumber", "isString", "isBoolean", "hasChildren"]))()"
    case 8: return "\(snapshot(below)).hasChild(\(string(below)))"
    case 9: return "\(snapshot(below)).hasChildren([\(string(below)), 'a'])"
    case 10:
      return "\(string(below)).\(pick(["contains", "beginsWith", "endsWith"]))(\(string(below)))"
    case 11:
      return "\(string(below)).matches(\(pick(["/a/", "/^[a-z]+$/i", "/(a|b)*1?$/", "/é./"])))"
    case 12:
      return "\(pick(["query.orderByKey", "query.limitToFirst == 10", "query.startAt == 'a'"]))"
    default: return "\(value(below)) == \(pick(["null", "1", "'a'", "true", "now"]))"
    }
  }

  private mutating func snapshot(_ depth: Int) -> String {
    guard depth > 0 else { return pick(["data", "root", isWriting ? "newData" : "data"]) }
    switch generator.below(4) {
    case 0: return "\(snapshot(depth - 1)).parent()"
    case 1: return "\(snapshot(depth - 1)).child(\(string(depth - 1)))"
    case 2: return "\(snapshot(depth - 1)).child('\(pick(["a", "b", "a/b", "é", ".", "1"]))')"
    default: return snapshot(0)
    }
  }

  private mutating func string(_ depth: Int) -> String {
    guard depth > 0 else {
      return pick(["'a'", "'b'", "''", "'ab1'", "auth.uid", "data.val()"] + names + names)
    }
    switch generator.below(6) {
    case 0: return "(\(string(depth - 1)) + \(pick(["'a'", "1", string(depth - 1)])))"
    case 1: return "\(string(depth - 1)).\(pick(["toUpperCase", "toLowerCase"]))()"
    case 2: return "\(string(depth - 1)).replace(\(string(0)), \(string(0)))"
    case 3: return "\(snapshot(depth - 1)).val()"
    case 4: return "(\(boolean(depth - 1)) ? \(string(depth - 1)) : \(value(0)))"
    default: return string(0)
    }
  }

  private mutating func number(_ depth: Int) -> String {
    guard depth > 0 else {
      return pick(["0", "1", "2.5", "now", "query.limitToFirst", "data.val()"])
    }
    switch generator.below(5) {
    case 0: return "(\(number(depth - 1)) \(pick(["+", "-", "*", "/", "%"])) \(number(depth - 1)))"
    case 1: return "-\(number(0))"
    case 2: return "\(string(depth - 1)).length"
    case 3: return "\(snapshot(depth - 1)).val()"
    default: return number(0)
    }
  }

  private mutating func value(_ depth: Int) -> String {
    switch generator.below(6) {
    case 0: return string(depth)
    case 1: return number(depth)
    case 2: return "\(snapshot(depth)).\(pick(["val", "getPriority"]))()"
    case 3:
      return pick(["auth", "auth.uid", "auth.token.a.b", "auth.token.list[1]", "auth['uid']"])
    case 4: return "(\(boolean(max(0, depth - 1))))"
    default: return pick(["null", "true", "1", "'a'"])
    }
  }
}
