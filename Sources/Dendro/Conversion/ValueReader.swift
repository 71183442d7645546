import DendroTree
import Foundation

/// Converts values of type `Any` to nodes.
///
/// The common types are recognized by their exact dynamic type, which is one comparison each. Casts, which
/// bridge and cost ten times as much, come last. `NSNumber` is read by its `objCType` only: on Linux
/// `as? Bool` succeeds on any number that is 0 or 1.
///
/// | value | becomes |
/// | --- | --- |
/// | `nil`, `NSNull`, an optional without value | nothing |
/// | `String`, `NSString`, `Substring` | a string |
/// | `Bool`, `NSNumber` of a boolean | a boolean |
/// | integers, `NSNumber` of one | an integer; above `Int64.max` a double |
/// | `Double`, `Float`, `CGFloat`, `Decimal`, `NSNumber` of one | a double, finite |
/// | dictionaries with string keys | a branch; `.value`, `.priority` and `.sv` are read first |
/// | arrays | a branch with the keys 0, 1, … |
/// | `Database.Value` | what it stands for |
/// | anything else | refused |
struct ValueReader {
  /// The location that the value is for, relative to the write: where server values are noted.
  private let prefix: Path
  /// Levels above the value.
  private let outerDepth: Int
  /// Where in the value the reader is.
  private var keys: [Key] = []
  /// Server values met, by place. The node holds a stand-in there.
  private(set) var deferred: [Draft.Deferred] = []
  /// Whether the outermost dictionary had a `.priority` of its own.
  private(set) var hasOwnPriority = false

  /// - Parameters:
  ///   - outerDepth: segments of the whole path of the value's location.
  ///   - prefix: that location relative to the write.
  init(outerDepth: Int, prefix: Path = .root) {
    self.outerDepth = outerDepth
    self.prefix = prefix
  }

  /// What a server value is until admission resolves it: a leaf, so that it keeps its place and may
  /// have a priority.
  static let standIn = Scalar.integer(0)

  // MARK: Values

  mutating func node(_ value: Any) throws(ValidationError) -> Node {
    let type = type(of: value)
    if type == String.self { return try string(value as! String) }
    if type == Int.self { return Node(.integer(Int64(value as! Int))) }
    if type == Double.self { return Node(try double(value as! Double)) }
    if type == Bool.self { return Node(.bool(value as! Bool)) }
    if type == [String: Any].self { return try dictionary(value as! [String: Any]) }
    if type == [AnyHashable: Any].self { return try dictionary(value as! [AnyHashable: Any]) }
    if type == [Any].self { return try array(value as! [Any]) }
    if type == [String: String].self { return try scalars(value as! [String: String]) }
    if type == [String: Int].self { return try scalars(value as! [String: Int]) }
    if type == [String: Double].self { return try scalars(value as! [String: Double]) }
    if type == [String: Bool].self { return try scalars(value as! [String: Bool]) }
    return try rare(value)
  }

  private mutating func rare(_ value: Any) throws(ValidationError) -> Node {
    if let optional = value as? any OptionalValue {
      guard let wrapped = optional.wrapped else { return .empty }
      return try node(wrapped)
    }
    if type(of: value) is AnyClass { return try object(value as AnyObject) }
    if let scalar = try number(value) { return Node(scalar) }
    if let value = value as? Database.Value {
      guard let encoded = EncodedValue(value) else { throw tooDeep() }
      return try node(encoded)
    }
    if let text = value as? Substring { return try string(String(text)) }
    if let strings = value as? [String: Any] { return try dictionary(strings) }
    if let anything = value as? [AnyHashable: Any] { return try dictionary(anything) }
    if let elements = value as? [Any] { return try array(elements) }
    throw refused(value)
  }

  private mutating func object(_ object: AnyObject) throws(ValidationError) -> Node {
    switch object {
    case let text as NSString: return try string(text as AnyObject as! String)
    case let number as NSNumber: return Node(try checked(Scalar(number)))
    case is NSNull: return .empty
    case let dictionary as NSDictionary: return try self.dictionary(dictionary)
    case let array as NSArray: return try self.array(array)
    default: throw refused(object)
    }
  }

  func string(_ text: String) throws(ValidationError) -> Node {
    Node(try scalar(text))
  }

  // MARK: Scalars

  func scalar(_ text: String) throws(ValidationError) -> Scalar {
    guard text.utf8.count <= Limits.stringBytes else {
      throw invalid(
        "a string of \(text.utf8.count) bytes is over the limit of \(Limits.stringBytes)")
    }
    return .string(text)
  }

  func double(_ value: Double) throws(ValidationError) -> Scalar {
    guard value.isFinite else { throw invalid("\(value) is not a number that can be stored") }
    return .double(value)
  }

  /// The native number types; nil for anything else.
  private func number(_ value: Any) throws(ValidationError) -> Scalar? {
    guard let scalar = Scalar(native: value) else { return nil }
    return try checked(scalar)
  }

  private func checked(_ scalar: Scalar) throws(ValidationError) -> Scalar {
    if case .double(let value) = scalar { return try double(value) }
    return scalar
  }

  /// A scalar of any accepted type; nil for empty ones, containers and everything else.
  private func scalar(_ value: Any) throws(ValidationError) -> Scalar? {
    switch value {
    case let text as String: return try scalar(text)
    case let text as Substring: return try scalar(String(text))
    default:
      if type(of: value) is AnyClass {
        guard let number = value as AnyObject as? NSNumber else { return nil }
        return try checked(Scalar(number))
      }
      return try number(value)
    }
  }

  // MARK: Containers

  private mutating func dictionary(_ dictionary: [String: Any]) throws(ValidationError) -> Node {
    for key in dictionary.keys where key.utf8.first == UInt8(ascii: ".") {
      return try special(
        dictionary[".value"], dictionary[".priority"], dictionary[".sv"], count: dictionary.count
      ) { (reader, builder) throws(ValidationError) in
        for (key, value) in dictionary where !Self.isMetadata(key) {
          try reader.child(key, value, &builder)
        }
      }
    }
    var builder = NodeBuilder()
    for (key, value) in dictionary { try child(key, value, &builder) }
    return builder.finish()
  }

  /// Dictionaries whose type says what all values are. To cast them to others would copy them.
  private mutating func scalars<Value>(
    _ dictionary: [String: Value]
  ) throws(ValidationError) -> Node {
    for key in dictionary.keys where key.utf8.first == UInt8(ascii: ".") {
      return try self.dictionary(dictionary.mapValues { $0 as Any })
    }
    var builder = NodeBuilder()
    for (key, value) in dictionary { try child(key, value, &builder) }
    return builder.finish()
  }

  private mutating func dictionary(
    _ dictionary: [AnyHashable: Any]
  ) throws(ValidationError) -> Node {
    // Most of these are server values.
    if dictionary.count == 1, let (key, content) = dictionary.first, key.base as? String == ".sv" {
      return try deferredLeaf(content)
    }
    return try pairs(count: dictionary.count, dictionary.lazy.map { ($0.key.base, $0.value) })
  }

  /// Enumerated as it is: made a Swift dictionary, keys that differ only in normalization would meet.
  private mutating func dictionary(_ dictionary: NSDictionary) throws(ValidationError) -> Node {
    try pairs(count: dictionary.count, dictionary.lazy.map { ($0.key, $0.value) })
  }

  private mutating func pairs(
    count: Int, _ pairs: some Sequence<(Any, Any)>
  ) throws(ValidationError) -> Node {
    var value: Any?
    var priority: Any?
    var serverValue: Any?
    var isSpecial = false
    for (key, content) in pairs {
      guard let key = key as? String else {
        throw invalid("the key \(Self.shown(key)) is not a string")
      }
      switch key {
      case ".value": value = content
      case ".priority": priority = content
      case ".sv": serverValue = content
      default: continue
      }
      isSpecial = true
    }
    if isSpecial {
      return try special(value, priority, serverValue, count: count) {
        (reader, builder) throws(ValidationError) in
        for (key, content) in pairs {
          if let key = key as? String, !Self.isMetadata(key) {
            try reader.child(key, content, &builder)
          }
        }
      }
    }
    var builder = NodeBuilder()
    for (key, content) in pairs { try child(key as! String, content, &builder) }
    return builder.finish()
  }

  private mutating func array(_ elements: some Collection<Any>) throws(ValidationError) -> Node {
    var builder = NodeBuilder()
    var index = 0
    for element in elements {
      try child(String(index), element, &builder)
      index += 1
    }
    return builder.finish()
  }

  private mutating func array(_ array: NSArray) throws(ValidationError) -> Node {
    var builder = NodeBuilder()
    for index in 0..<array.count { try child(String(index), array[index], &builder) }
    return builder.finish()
  }

  private mutating func child(
    _ name: String, _ value: Any, _ builder: inout NodeBuilder
  ) throws(ValidationError) {
    try child(name, &builder) { (reader) throws(ValidationError) in try reader.node(value) }
  }

  /// Adds what `read` makes of the value of a key.
  @inline(__always)
  mutating func child(
    _ name: String, _ builder: inout NodeBuilder,
    _ read: (inout ValueReader) throws(ValidationError) -> Node
  ) throws(ValidationError) {
    let key: Key
    do throws(ValidationError) {
      key = try Key(name)
    } catch {
      throw invalid(error.message)
    }
    keys.append(key)
    // Before going down: containers that hold themselves end here. Not so `NSMutableDictionary` and
    // `NSMutableArray` of Foundation for Linux: there whatever hands out an element bridges all below it
    // first, and uses up the stack.
    guard outerDepth + keys.count <= Limits.depth else {
      throw tooDeep()
    }
    let node = try read(&self)
    keys.removeLast()
    if !node.isEmpty { builder.append(key, node) }
  }

  // MARK: Metadata

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
  private mutating func deferredLeaf(_ content: Any) throws(ValidationError) -> Node {
    let value = try Self.serverValue(content, self)
    deferred.append(Draft.Deferred(path: place, isPriority: false, value: value))
    return Node(Self.standIn)
  }

  /// What stands under `.value`.
  private mutating func leaf(_ value: Any) throws(ValidationError) -> Node {
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
  private static func isNull(_ value: Any) -> Bool {
    type(of: value) is AnyClass && value is NSNull
  }

  /// What a query begins or ends at; nil where that is nothing.
  ///
  /// - Throws: `ValidationError` of kind `.invalidQuery` for what no leaf can hold.
  static func bound(_ value: Any?) throws(ValidationError) -> Scalar? {
    guard let value, !isNull(value) else { return nil }
    if let optional = value as? any OptionalValue { return try bound(optional.wrapped) }
    let scalar: Scalar?
    do throws(ValidationError) {
      scalar = try ValueReader(outerDepth: 0).scalar(value)
    } catch {
      throw ValidationError(.invalidQuery, error.message)
    }
    guard let scalar else {
      throw ValidationError(
        .invalidQuery,
        "a value of type \(shown(type(of: value))) is no bound: nil, booleans, numbers and strings are"
      )
    }
    return scalar
  }

  /// The server value that a dictionary is; nil where it is none.
  private func serverValue(_ value: Any) throws(ValidationError) -> Draft.Deferred.Value? {
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

  private static func serverValue(
    _ content: Any, _ reader: ValueReader
  ) throws(ValidationError) -> Draft.Deferred.Value {
    if let name = content as? String, name == "timestamp" { return .timestamp }
    if let operation = content as? [AnyHashable: Any], operation.count == 1,
      let (name, operand) = operation.first, name.base as? String == "increment"
    {
      switch try reader.scalar(operand) {
      case .integer(let value): return .increment(.integer(value))
      case .double(let value): return .increment(.double(value))
      default: throw reader.invalid("an increment needs a number")
      }
    }
    throw reader.invalid("\(shown(content)) is not a server value")
  }

  private var place: Path {
    keys.isEmpty ? prefix : prefix.appending(Path(keys: keys))
  }

  // MARK: Errors

  private func refused(_ value: Any) -> ValidationError {
    invalid("a value of type \(Self.shown(type(of: value))) cannot be stored")
  }

  private func tooDeep() -> ValidationError {
    invalid("the data is deeper than \(Limits.depth) levels")
  }

  func invalid(_ message: String) -> ValidationError {
    ValidationError(.invalidData, located(message))
  }

  private func located(_ message: String) -> String {
    let place = place
    return place.isRoot ? message : "at \(place): \(message)"
  }

  /// Describes a value for an error message, in bounded length. A container may be large or deep, so only
  /// its type is shown.
  private static func shown(_ value: Any) -> String {
    let isContainer =
      value is [AnyHashable: Any] || value is [Any] || value is NSDictionary || value is NSArray
    let text = String(describing: isContainer ? type(of: value) : value)
    return text.count > 80 ? text.prefix(80) + "…" : text
  }
}

/// Sees through optionals in an `Any`, where `nil` is not `NSNull`.
protocol OptionalValue {
  var wrapped: Any? { get }
}

extension Optional: OptionalValue {
  var wrapped: Any? { map { $0 as Any } }
}
