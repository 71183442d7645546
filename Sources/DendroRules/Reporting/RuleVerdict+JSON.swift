extension RuleVerdict {
  /// The verdict with its trace as a JSON object. Of each rule on the way, `rules` has the `path` whose rule it is, its
  /// place among the `rule`s, `kind`, `line`, `column`, `source`, `result` (`true`, `false` or `failed`, with the
  /// `reason`), and the `values` of its parts, inner ones first.
  package var json: String {
    var object = ObjectText()
    object.add("allowed", json: "\(isAllowed)")
    object.add("steps", json: "\(stepCount)")
    object.add("rules", json: ObjectText.array(trace?.evaluations.map(\.json) ?? []))
    object.add("omitted", json: "\(trace?.omittedCount ?? 0)")
    return object.text
  }
}

extension RuleEvaluation {
  fileprivate var json: String {
    var object = ObjectText()
    object.add("path", location)
    object.add("rule", ruleLocation)
    object.add("kind", kind.rawValue)
    object.add(position)
    object.add("source", source)
    switch outcome {
    case .true: object.add("result", "true")
    case .false: object.add("result", "false")
    case .failed(let reason):
      object.add("result", "failed")
      object.add("reason", reason)
    }
    object.add("values", json: ObjectText.array(steps.map(\.json)))
    return object.text
  }
}

extension RuleEvaluation.Step {
  fileprivate var json: String {
    var object = ObjectText()
    object.add(position)
    object.add("source", source)
    object.add("value", value)
    return object.text
  }
}
