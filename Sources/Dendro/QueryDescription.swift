import DendroTree

/// Query parameters as the calls that make them, for people.
enum QueryDescription {
  static func calls(of parameters: QueryParameters) -> String {
    var calls: [String] = []
    switch parameters.order {
    case .priority: break
    case .key: calls.append("queryOrderedByKey()")
    case .value: calls.append("queryOrderedByValue()")
    case .child(let path):
      calls.append("queryOrdered(byChild: \(QueryRequest.shown(path.relativeText)))")
    }
    if let start = parameters.start, start == parameters.end {
      calls.append("queryEqual(toValue: \(arguments(start, parameters.order)))")
    } else {
      if let start = parameters.start {
        let label = start.isExclusive ? "afterValue" : "atValue"
        calls.append("queryStarting(\(label): \(arguments(start, parameters.order)))")
      }
      if let end = parameters.end {
        let label = end.isExclusive ? "beforeValue" : "atValue"
        calls.append("queryEnding(\(label): \(arguments(end, parameters.order)))")
      }
    }
    switch parameters.limit {
    case .first(let count): calls.append("queryLimited(toFirst: \(count))")
    case .last(let count): calls.append("queryLimited(toLast: \(count))")
    case nil: break
    }
    return calls.map { "." + $0 }.joined()
  }

  private static func arguments(
    _ bound: QueryParameters.Bound, _ order: DendroTree.SortOrder
  ) -> String {
    if order == .key { return QueryRequest.shown(bound.key?.string ?? "") }
    let value: Scalar? = if case .scalar(let scalar) = bound.value { scalar } else { nil }
    let key = bound.key.map { ", childKey: \(QueryRequest.shown($0.string))" } ?? ""
    return QueryRequest.shown(value) + key
  }
}
