import DendroTree

/// Makes cases of a parsed text.
struct TestReader {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func read(_ document: TextValue) throws(TextFailure) -> (Node, [RuleTests.Case]) {
    let members = try TestMembers(document, known: ["data", "cases"])
    let data = try members.values["data"].map { (value) throws(TextFailure) in
      try draft(value) { bytes throws(JSONError) in
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

  private static let members: Set = [
    "name", "as", "operation", "path", "value", "query", "now", "expect",
  ]

  private func read(
    _ value: TextValue, _ index: Int, _ position: TextPosition, _ data: Node
  ) throws(TextFailure) -> RuleTests.Case {
    let members = try TestMembers(value, known: Self.members)
    let operation = try members.operation()
    let text = try members.string("path") ?? ""
    let path = try members.path(text)
    let now = try members.integer("now") ?? 0
    let auth = try members.auth()
    let expects = try members.expectation()
    let write = try self.write(operation, path, members, now, data)
    var newData: Node?
    if let write {
      var node = data
      _ = node.apply(write)
      newData = node
    }
    let query = operation == .read ? try members.query() : nil
    let locations = RuleRequest.Location.all(of: write, at: path)
    return RuleTests.Case(
      name: try members.string("name") ?? "case \(index + 1)", operation: operation, path: text,
      isExpectedAllowed: expects, position: position,
      request: RuleRequest(locations, query: query, auth: auth, now: now), newData: newData)
  }

  private func write(
    _ operation: RuleTests.Operation, _ path: Path, _ members: TestMembers, _ now: Int64,
    _ data: Node
  ) throws(TextFailure) -> Write? {
    if operation == .read { return nil }
    if operation == .remove { return .remove(path) }
    guard let value = members.values["value"] else {
      throw TextFailure("Expected 'value'.", at: members.start)
    }
    let draft = try draft(value) { bytes throws(JSONError) in
      switch operation {
      case .update: try JSONParser.parseDraft(updating: bytes, at: path)
      case .setPriority: try JSONParser.parseDraft(settingPriority: bytes, at: path)
      default: try JSONParser.parseDraft(setting: bytes, at: path)
      }
    }
    let write = draft.resolved(time: now, against: data)
    do {
      try write.validate()
    } catch {
      throw TextFailure(error.message, at: value.range.lowerBound)
    }
    return write
  }

  private func draft(
    _ value: TextValue, _ parse: (UnsafeRawBufferPointer) throws(JSONError) -> Draft
  ) throws(TextFailure) -> Draft {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(JSONError) in
        try parse(UnsafeRawBufferPointer(rebasing: bytes[value.range]))
      }
    }
    do {
      return try result.get()
    } catch {
      throw TextFailure(
        error.message, at: value.range.lowerBound + min(error.position.offset, value.range.count))
    }
  }
}

extension RuleRequest.Location {
  /// The locations that a write changes, or the one that is read.
  fileprivate static func all(of write: Write?, at path: Path) -> [RuleRequest.Location] {
    switch write {
    case .update(let base, let entries):
      entries.map { Self(base.appending($0.path), isPriority: $0.action.isPriority) }
    case .setPriority: [Self(path, isPriority: true)]
    default: [Self(path)]
    }
  }
}
