import DendroTree

/// Makes cases of a parsed text.
struct TestReader {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func read(_ document: TextValue) throws(TextFailure) -> (Node, [RuleTests.Case]) {
    let members = try TestMembers(document, known: ["data", "cases"])
    let data = try members.values["data"].map { (value) throws(TextFailure) in
      try value.draft(in: bytes) { bytes throws(JSONError) in
        try JSONParser.parseDraft(setting: bytes, at: .root)
      }.resolved(time: 0, against: .empty)
    }
    var node = Node.empty
    if let data { _ = node.apply(data) }
    guard let list = members.values["cases"], case .array(let elements) = list.kind else {
      throw TextFailure("Expected 'cases', an array.", at: document.range.lowerBound)
    }
    var cases: [RuleTests.Case] = []
    let positions = PositionTable(bytes)
    for (index, element) in elements.enumerated() {
      let position = positions.position(of: element.range.lowerBound)
      cases.append(try read(element, index, position, node))
    }
    return (node, cases)
  }

  private func read(
    _ value: TextValue, _ index: Int, _ position: TextPosition, _ data: Node
  ) throws(TextFailure) -> RuleTests.Case {
    let members = try TestMembers(value, known: RuleQuestion.members.union(["name", "expect"]))
    let question = try RuleQuestion(members, in: bytes, about: data, now: 0)
    return RuleTests.Case(
      name: try members.string("name") ?? "case \(index + 1)", operation: question.operation,
      path: question.path, isExpectedAllowed: try members.expectation(), position: position,
      request: question.request, newData: question.newData)
  }
}
