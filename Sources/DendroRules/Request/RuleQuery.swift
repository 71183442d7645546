/// The variable `query`: how a location is read.
public struct RuleQuery: Hashable, Sendable {
  /// What children are ordered by.
  public enum Order: Hashable, Sendable {
    /// By key.
    case key
    /// By value.
    case value
    /// By priority.
    case priority
    /// By what is at a path below each child, as `owner` or `dim/height`.
    case child(String)
  }

  /// The order; nil for a plain read, where every `query.orderBy…` is false or null.
  public var order: Order?
  /// The lower bound; nil if there is none.
  public var startAt: RuleScalar?
  /// The upper bound; nil if there is none.
  public var endAt: RuleScalar?
  /// The one value that is asked for; nil if there is none.
  public var equalTo: RuleScalar?
  /// How many children from the first are asked for; nil for all.
  public var limitToFirst: Int?
  /// How many children from the last are asked for; nil for all.
  public var limitToLast: Int?

  /// Makes a query. Without arguments it is a plain read.
  public init(
    order: Order? = nil, startAt: RuleScalar? = nil, endAt: RuleScalar? = nil,
    equalTo: RuleScalar? = nil, limitToFirst: Int? = nil, limitToLast: Int? = nil
  ) {
    self.order = order
    self.startAt = startAt
    self.endAt = endAt
    self.equalTo = equalTo
    self.limitToFirst = limitToFirst
    self.limitToLast = limitToLast
  }
}

/// A property of `query`.
enum QueryProperty: String, CaseIterable {
  case orderByKey, orderByValue, orderByPriority
  case orderByChild, startAt, endAt, equalTo, limitToFirst, limitToLast

  /// Whether it is true or false; the others may be null.
  var isFlag: Bool {
    switch self {
    case .orderByKey, .orderByValue, .orderByPriority: true
    default: false
    }
  }
}

extension RuleQuery {
  /// - Parameter texts: see `Value.init(_:_:)`; the request keeps the strings.
  func value(of property: QueryProperty, _ texts: inout TextMemory) -> Value {
    switch property {
    case .orderByKey: .bool(order == .key)
    case .orderByValue: .bool(order == .value)
    case .orderByPriority: .bool(order == .priority)
    case .orderByChild:
      if case .child(let path)? = order { .string(texts.text(of: path)) } else { .null }
    case .startAt: Value(startAt, &texts)
    case .endAt: Value(endAt, &texts)
    case .equalTo: Value(equalTo, &texts)
    case .limitToFirst: limitToFirst.map { .integer(Int64($0)) } ?? .null
    case .limitToLast: limitToLast.map { .integer(Int64($0)) } ?? .null
    }
  }
}
