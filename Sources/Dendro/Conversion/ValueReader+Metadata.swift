import DendroTree
import Foundation

// `.value`, `.priority` and `.sv` in dictionaries.
extension ValueReader {
  static func isMetadata(_ key: String) -> Bool {
    key == ".value" || key == ".priority" || key == ".sv"
  }

  /// A dictionary in which `.value`, `.priority` or `.sv` stands.
  mutating func special(
    _ value: Any?, _ priority: Any?, _ serverValue: Any?, count: Int,
    children: (inout ValueReader) throws(ValidationError) -> Void
  ) throws(ValidationError) {
    if let serverValue {
      guard count == 1 else { throw place.invalid("a server value has no other keys beside .sv") }
      return try readServerValue(serverValue)
    }
    let isOutermost = place.names.isEmpty
    let mark = builder.mark
    if let value {
      try leaf(value)
    } else {
      let branch = builder.beginBranch()
      try children(&self)
      _ = builder.endBranch(branch)
    }
    guard let priority else { return }
    if isOutermost { hasOwnPriority = true }
    try give(priority, to: mark)
  }

  /// Gives a priority to the value that begins at a mark, if there is one. It is checked in any case.
  mutating func give(
    _ priority: Any?, to mark: WriteBuilder.Mark
  ) throws(ValidationError) {
    let given = try self.priority(priority)
    if builder.isEmpty(since: mark) { return }
    switch given {
    case .nothing: break
    case .scalar(let scalar): builder.insertPriority(at: mark) { builder.append(scalar) }
    case .serverValue(let value): builder.insertPriority(at: mark) { builder.append(value) }
    }
  }

  /// A server value where a leaf may be; `content` is what stands under `.sv`.
  mutating func readServerValue(_ content: Any) throws(ValidationError) {
    builder.append(try serverValue(under: content))
  }

  /// What stands under `.value`.
  mutating func leaf(_ value: Any) throws(ValidationError) {
    if let optional = value as? any OptionalValue {
      if let wrapped = optional.wrapped { try leaf(wrapped) }
      return
    }
    if ValuePlace.isNull(value) { return }
    if let scalar = try place.scalar(value) { return append(scalar) }
    if let serverValue = try serverValue(value) { return builder.append(serverValue) }
    let isContainer =
      value is [AnyHashable: Any] || value is [Any] || value is NSDictionary || value is NSArray
    guard isContainer else { throw place.refused(value) }
    throw ValidationError(
      .invalidLeafValueType, place.located(".value holds a dictionary or an array"))
  }

  enum Priority {
    case nothing
    case scalar(Scalar)
    case serverValue(Draft.Deferred.Value)
  }

  func priority(_ value: Any?) throws(ValidationError) -> Priority {
    guard let value, !ValuePlace.isNull(value) else { return .nothing }
    if let optional = value as? any OptionalValue { return try priority(optional.wrapped) }
    if let scalar = try place.scalar(value) {
      guard case .bool = scalar else { return .scalar(scalar) }
      throw place.invalid("a boolean cannot be a priority")
    }
    guard let serverValue = try serverValue(value) else {
      throw place.invalid(
        "\(ValuePlace.shown(type(of: value))) cannot be a priority: a number or a string can")
    }
    return .serverValue(serverValue)
  }

  /// The server value that a dictionary is; nil if it is none.
  private func serverValue(_ value: Any) throws(ValidationError) -> Draft.Deferred.Value? {
    var content: Any?
    var count = 0
    if let dictionary = value as? [AnyHashable: Any] {
      content = dictionary[".sv"]
      count = dictionary.count
    }
    guard let content else { return nil }
    guard count == 1 else { throw place.invalid("a server value has no other keys beside .sv") }
    return try serverValue(under: content)
  }

  private func serverValue(under content: Any) throws(ValidationError) -> Draft.Deferred.Value {
    // `ServerValue` makes strings and dictionaries of exactly these types.
    let type = type(of: content)
    if type != [AnyHashable: Any].self, let name = content as? String, name == "timestamp" {
      return .timestamp
    }
    var operation: [AnyHashable: Any]?
    if type == [AnyHashable: Any].self {
      operation = (content as! [AnyHashable: Any])
    } else {
      operation = content as? [AnyHashable: Any]
    }
    if let operation, operation.count == 1, let (name, operand) = operation.first,
      name.base as? String == "increment"
    {
      switch try place.scalar(operand) {
      case .integer(let value): return .increment(.integer(value))
      case .double(let value): return .increment(.double(value))
      default: throw place.invalid("an increment needs a number")
      }
    }
    throw place.invalid("\(ValuePlace.shown(content)) is not a server value")
  }
}
