import DendroTree

/// One request, as an object of JSON says it: a case of tests, or a trial.
struct RuleQuestion: Sendable {
  let operation: RuleTests.Operation
  /// As it is written.
  let path: String
  let request: RuleRequest
  /// The data after the write; nil for a reading.
  let newData: Node?

  static let members: Set = ["as", "operation", "path", "value", "query", "now"]

  /// - Parameters:
  ///   - bytes: the text that the members are in.
  ///   - data: before the request.
  ///   - now: the time if there is no member that says it.
  init(
    _ members: TestMembers, in bytes: [UInt8], about data: Node, now: Int64
  ) throws(TextFailure) {
    operation = try members.operation()
    path = try members.string("path") ?? ""
    let location = try members.path(path)
    let now = try members.integer("now") ?? now
    let auth = try members.auth()
    let write = try Self.write(operation, location, members, in: bytes, now, data)
    newData = write.map { write in
      var node = data
      _ = node.apply(write)
      return node
    }
    request = RuleRequest(
      RuleRequest.Location.all(of: write, at: location),
      query: operation == .read ? try members.query() : nil, auth: auth, now: now)
  }

  private static func write(
    _ operation: RuleTests.Operation, _ path: Path, _ members: TestMembers, in bytes: [UInt8],
    _ now: Int64, _ data: Node
  ) throws(TextFailure) -> Write? {
    if operation == .read { return nil }
    if operation == .remove { return .remove(path) }
    guard let value = members.values["value"] else {
      throw TextFailure("Expected 'value'.", at: members.start)
    }
    let draft = try value.draft(in: bytes) { bytes throws(JSONError) in
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
}

extension TextValue {
  /// Reads the value as data.
  ///
  /// - Parameter bytes: the text that the value is in.
  func draft(
    in bytes: [UInt8], _ parse: (UnsafeRawBufferPointer) throws(JSONError) -> Draft
  ) throws(TextFailure) -> Draft {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(JSONError) in
        try parse(UnsafeRawBufferPointer(rebasing: bytes[range]))
      }
    }
    do {
      return try result.get()
    } catch {
      throw TextFailure(
        error.message, at: range.lowerBound + min(error.position.offset, range.count))
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
