package import DendroTree

extension RuleQuery {
  /// What rules see of a query: one with the same bound at both ends is one for that value.
  ///
  /// - Parameter parameters: nil for a plain read.
  package init(_ parameters: QueryParameters?) {
    guard let parameters else {
      self.init()
      return
    }
    let order: Order =
      switch parameters.order {
      case .key: .key
      case .value: .value
      case .priority: .priority
      case .child(let path): .child(path.relativeText)
      }
    self.init(order: order)
    let (start, end) = (parameters.start, parameters.end)
    if let start, start == end, !start.isExclusive, order == .key || start.key == nil {
      equalTo = Self.scalar(start, order)
    } else {
      startAt = start.flatMap { Self.scalar($0, order) }
      endAt = end.flatMap { Self.scalar($0, order) }
    }
    switch parameters.limit {
    case .first(let count): limitToFirst = count
    case .last(let count): limitToLast = count
    case nil: break
    }
  }

  private static func scalar(_ bound: QueryParameters.Bound, _ order: Order) -> RuleScalar? {
    if order == .key { return bound.key.map { .string($0.string) } }
    guard case .scalar(let scalar) = bound.value else { return nil }
    return RuleScalar(scalar)
  }
}
