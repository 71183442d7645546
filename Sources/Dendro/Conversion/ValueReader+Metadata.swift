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
    children: (inout ValueReader, inout NodeBuilder) throws(ValidationError) -> Void
  ) throws(ValidationError) -> Node {
    if let serverValue {
      guard count == 1 else { throw invalid("a server value has no other keys beside .sv") }
      return try deferredLeaf(serverValue)
    }
    let isOutermost = keys.isEmpty
    let deferredBefore = deferred.count
    var node: Node
    if let value {
      node = try leaf(value)
    } else {
      var builder = NodeBuilder()
      try children(&self, &builder)
      node = builder.finish()
    }
    guard let priority else { return node }
    if isOutermost { hasOwnPriority = true }
    let given = try self.priority(priority)
    if node.isEmpty {
      deferred.removeSubrange(deferredBefore...)
      return node
    }
    node = node.settingPriority(given)
    return node
  }

  /// A server value where a leaf may be; `content` is what stands under `.sv`.
  mutating func deferredLeaf(_ content: Any) throws(ValidationError) -> Node {
    let value = try Self.serverValue(content, self)
    deferred.append(Draft.Deferred(path: place, isPriority: false, value: value))
    return Node(Self.standIn)
  }

  /// What stands under `.value`.
  mutating func leaf(_ value: Any) throws(ValidationError) -> Node {
    if let optional = value as? any OptionalValue {
      guard let wrapped = optional.wrapped else { return .empty }
      return try leaf(wrapped)
    }
    if Self.isNull(value) { return .empty }
    if let scalar = try scalar(value) { return Node(scalar) }
    if let serverValue = try serverValue(value) {
      deferred.append(Draft.Deferred(path: place, isPriority: false, value: serverValue))
      return Node(Self.standIn)
    }
    let isContainer =
      value is [AnyHashable: Any] || value is [Any] || value is NSDictionary || value is NSArray
    guard isContainer else { throw refused(value) }
    throw ValidationError(
      .invalidLeafValueType, located(".value holds a dictionary or an array"))
  }

  /// Reads a priority, and notes it where it is a server value.
  mutating func priority(_ value: Any?) throws(ValidationError) -> Scalar? {
    guard let value, !Self.isNull(value) else { return nil }
    if let optional = value as? any OptionalValue { return try priority(optional.wrapped) }
    if let scalar = try scalar(value) {
      guard case .bool = scalar else { return scalar }
      throw invalid("a boolean cannot be a priority")
    }
    guard let serverValue = try serverValue(value) else {
      throw invalid("\(Self.shown(type(of: value))) cannot be a priority: a number or a string can")
    }
    deferred.append(Draft.Deferred(path: place, isPriority: true, value: serverValue))
    return Self.standIn
  }

  /// Asks objects only: to ask a Swift container whether it is an object makes one of it and of all it
  /// holds, however deep.
  static func isNull(_ value: Any) -> Bool {
    type(of: value) is AnyClass && value is NSNull
  }

  /// The server value that a dictionary is; nil where it is none.
  func serverValue(_ value: Any) throws(ValidationError) -> Draft.Deferred.Value? {
    var content: Any?
    var count = 0
    if let dictionary = value as? [AnyHashable: Any] {
      content = dictionary[".sv"]
      count = dictionary.count
    }
    guard let content else { return nil }
    guard count == 1 else { throw invalid("a server value has no other keys beside .sv") }
    return try Self.serverValue(content, self)
  }

  static func serverValue(
    _ content: Any, _ reader: ValueReader
  ) throws(ValidationError) -> Draft.Deferred.Value {
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
      switch try reader.scalar(operand) {
      case .integer(let value): return .increment(.integer(value))
      case .double(let value): return .increment(.double(value))
      default: throw reader.invalid("an increment needs a number")
      }
    }
    throw reader.invalid("\(shown(content)) is not a server value")
  }
}
