/// The parameters of a query, call by call, and the error if they contradict each other.
///
/// The order of the calls does not matter: what depends on how the children are sorted is judged by
/// `parameters()`, when all is known. A value; any thread.
package struct QueryRequest: Sendable {
  /// One end of the range, as it was asked for.
  package struct Bound: Sendable {
    var value: Scalar?
    var key: Key?
    var isExclusive: Bool
    /// Whether a child key was named, be it nil: if children are sorted by key, there is none to name.
    var namesKey: Bool
    /// Who asked, for messages: `queryStarting(atValue:)`.
    var call: String

    package init(
      value: Scalar?, key: Key?, isExclusive: Bool = false, namesKey: Bool = false, call: String
    ) {
      self.value = value
      self.key = key
      self.isExclusive = isExclusive
      self.namesKey = namesKey
      self.call = call
    }
  }

  package private(set) var order: SortOrder?
  private var start: Bound?
  private var end: Bound?
  private var limit: QueryParameters.Limit?

  /// The most children that a limit may ask for.
  package static let limitMax = Int(Int32.max)

  package init() {}

  // MARK: Calls

  /// - Throws: `ValidationError` if an order was given already.
  package mutating func sort(by order: SortOrder, call: String) throws(ValidationError) {
    guard self.order == nil else {
      throw Self.invalid("\(call) comes after another order: a query has one")
    }
    self.order = order
  }

  /// - Throws: `ValidationError` if the path is empty or names what has a call of its own.
  package mutating func sort(byChild path: String, call: String) throws(ValidationError) {
    switch path {
    case "$key", ".key", "$priority", ".priority", "$value", ".value":
      throw Self.invalid("\(call) was given \"\(path)\", for which there is a call of its own")
    case "": throw ValidationError(.invalidPath, "\(call) was given an empty path")
    default: break
    }
    let child: Path
    do throws(ValidationError) {
      child = try Path(parsing: path)
    } catch {
      throw ValidationError(.invalidPath, "\(call) cannot use its path: \(error.message)")
    }
    guard !child.isRoot else {
      throw Self.invalid("\(call) was given a path without a key: \(Self.shown(path))")
    }
    try sort(by: .child(child), call: call)
  }

  /// - Throws: `ValidationError` if there is a start already.
  package mutating func start(at bound: Bound) throws(ValidationError) {
    if let start {
      throw Self.invalid("\(bound.call) comes after \(start.call): one start at most")
    }
    start = bound
  }

  /// - Throws: `ValidationError` if there is an end already.
  package mutating func end(at bound: Bound) throws(ValidationError) {
    if let end { throw Self.invalid("\(bound.call) comes after \(end.call): one end at most") }
    end = bound
  }

  /// Start and end at once.
  ///
  /// - Throws: `ValidationError` if there is one of them already.
  package mutating func equal(_ bound: Bound) throws(ValidationError) {
    try start(at: bound)
    try end(at: bound)
  }

  /// - Throws: `ValidationError` if the count is 0 or above 2147483647, or there is a limit already.
  package mutating func limit(
    to count: UInt, last: Bool, call: String
  ) throws(ValidationError) {
    guard limit == nil else {
      throw Self.invalid("\(call) comes after another limit: a query has one at most")
    }
    guard count > 0, count <= Self.limitMax else {
      throw Self.invalid("\(call) was given \(count): a limit is from 1 to \(Self.limitMax)")
    }
    limit = last ? .last(Int(count)) : .first(Int(count))
  }

  // MARK: The whole

  /// - Throws: `ValidationError` of kind `.invalidQuery` if a bound does not go with the order.
  package func parameters() throws(ValidationError) -> QueryParameters {
    var parameters = QueryParameters()
    parameters.order = order ?? .priority
    parameters.start = try start.map { bound throws(ValidationError) in
      try Self.bound(bound, parameters.order)
    }
    parameters.end = try end.map { bound throws(ValidationError) in
      try Self.bound(bound, parameters.order)
    }
    parameters.limit = limit
    return parameters
  }

  private static func bound(
    _ bound: Bound, _ order: SortOrder
  ) throws(ValidationError) -> QueryParameters.Bound {
    switch order {
    case .key:
      guard !bound.namesKey else {
        throw invalid(
          "\(bound.call) names a child key, but by key the value is the key: leave childKey out")
      }
      guard case .string(let key)? = bound.value else {
        throw invalid(
          "\(bound.call) was given \(shown(bound.value)): a bound by key is a string")
      }
      return QueryParameters.Bound(
        value: .none, key: Key(bound: key), isExclusive: bound.isExclusive)
    case .priority:
      if case .bool? = bound.value {
        throw invalid(
          "\(bound.call) was given a boolean: a bound by priority, which is the default order, "
            + "is nil, a number or a string")
      }
    case .value, .child: break
    }
    return QueryParameters.Bound(
      value: bound.value.map(SortValue.scalar) ?? .none, key: bound.key,
      isExclusive: bound.isExclusive)
  }

  private static func invalid(_ message: String) -> ValidationError {
    ValidationError(.invalidQuery, message)
  }

  /// A value in a message, cut after 64 bytes.
  package static func shown(_ value: Scalar?) -> String {
    switch value {
    case nil: "nil"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .double(let value): "\(value)"
    case .string(let value): shown(value)
    case .bytes(let value): "\(value.count) bytes"
    }
  }

  package static func shown(_ text: String) -> String {
    var text = text
    return text.withUTF8 { KeyCoding.quoted(UnsafeRawBufferPointer($0)) }
  }
}
