extension RuleTrace: CustomStringConvertible {
  /// The trace as text, for a terminal: each rule with its place, its result, and the values of its parts.
  ///
  /// ```
  /// /users/ann  .write at /users/$uid (4:19): false
  ///   auth.uid === $uid
  ///     auth.uid = "bob"
  ///     $uid = "ann"
  ///     auth.uid === $uid = false
  /// denied, 3 steps
  /// ```
  public var description: String {
    var lines: [String] = []
    for evaluation in evaluations { lines += evaluation.lines }
    if omittedCount > 0 { lines.append("and \(omittedCount) more evaluations") }
    if evaluations.isEmpty { lines.append("There is no rule on the way.") }
    lines.append("\(isAllowed ? "allowed" : "denied"), \(stepCount) steps")
    return lines.joined(separator: "\n") + "\n"
  }
}

extension RuleEvaluation {
  fileprivate var lines: [String] {
    let place = location == ruleLocation ? "" : " at \(ruleLocation)"
    var lines = ["\(location)  \(kind.rawValue)\(place) (\(position)): \(outcome)"]
    lines.append("  " + source.onOneLine)
    lines += steps.map { "    \($0.source.onOneLine) = \($0.value)" }
    return lines
  }
}

extension RuleEvaluation.Outcome: CustomStringConvertible {
  /// The result, with the reason of a failure.
  public var description: String {
    switch self {
    case .true: "true"
    case .false: "false"
    case .failed(let reason): "not true. \(reason)"
    }
  }
}

extension String {
  /// With each run of white space as one space.
  fileprivate var onOneLine: String { split(whereSeparator: \.isWhitespace).joined(separator: " ") }
}
