/// What the compiler makes of a text: rules, perhaps with warnings, or an error.
package struct RuleDiagnosis: Sendable {
  package let result: Result<Rules, RuleTextError>

  package init(_ text: String) {
    result = Result { () throws(RuleTextError) in try Rules(text) }
  }

  /// An object with `good`, the `error` or null, and the `warnings`; each with its `line`, `column` and `message`.
  package var json: String {
    var object = ObjectText()
    switch result {
    case .success(let rules):
      object.add("good", json: "true")
      object.add("error", json: "null")
      object.add(
        "warnings",
        json: ObjectText.array(rules.warnings.map { Self.json($0.position, $0.message) })
      )
    case .failure(let error):
      object.add("good", json: "false")
      object.add("error", json: Self.json(error.position, error.message))
      object.add("warnings", json: "[]")
    }
    return object.text
  }

  private static func json(_ position: TextPosition, _ message: String) -> String {
    var object = ObjectText()
    object.add(position)
    object.add("message", message)
    return object.text
  }
}
