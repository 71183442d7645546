import DendroTree
import Foundation

// Each call gives a new query; the one that it is called on stays as it is. The calls may come in any
// order. What does not go together gives a query that carries the error, `InvalidQueryParameter`, to
// every operation on it.

// MARK: - Order

extension DatabaseQuery {
  /// Children sorted by what stands at a path below them: nothing first, then `false`, `true`, numbers,
  /// strings, and what has children of its own; ties by key.
  ///
  /// - Parameter path: one key, or several between slashes. Keys, values and priorities have calls of
  ///   their own: "$key", "$value" and "$priority" are errors.
  public func queryOrdered(byChild path: String) -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.sort(byChild: path, call: "queryOrdered(byChild:)")
    }
  }

  /// Children sorted by key: integers first, by value, then all others by their UTF-16 code units.
  public func queryOrderedByKey() -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.sort(by: .key, call: "queryOrderedByKey()")
    }
  }

  /// Children sorted by what they hold themselves, in the manner of ``queryOrdered(byChild:)``.
  public func queryOrderedByValue() -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.sort(by: .value, call: "queryOrderedByValue()")
    }
  }

  /// Children sorted by priority: those without one first, then numbers, then strings; ties by key. This
  /// is the default order.
  public func queryOrderedByPriority() -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.sort(by: .priority, call: "queryOrderedByPriority()")
    }
  }
}

// MARK: - Limits

extension DatabaseQuery {
  /// The first children of the range, in the query's order.
  ///
  /// - Parameter limit: how many at most, from 1 to 2147483647.
  public func queryLimited(toFirst limit: UInt) -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.limit(to: limit, last: false, call: "queryLimited(toFirst:)")
    }
  }

  /// The last children of the range, in the query's order.
  ///
  /// - Parameter limit: how many at most, from 1 to 2147483647.
  public func queryLimited(toLast limit: UInt) -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.limit(to: limit, last: true, call: "queryLimited(toLast:)")
    }
  }
}

// MARK: - Range

extension DatabaseQuery {
  /// Children from a value on.
  ///
  /// - Parameter startValue: what the query sorts by: nil or `NSNull`, a boolean, a number or a string.
  ///   By key it is a string, which need not be a legal key; by priority it is no boolean. Values of
  ///   other kinds are in the range too if they sort after it.
  public func queryStarting(atValue startValue: Any?) -> DatabaseQuery {
    starting(startValue, call: "queryStarting(atValue:)")
  }

  /// Children from a value on; of those with the very value, from a key on. Not by key.
  public func queryStarting(atValue startValue: Any?, childKey: String?) -> DatabaseQuery {
    starting(startValue, childKey, namesKey: true, call: "queryStarting(atValue:childKey:)")
  }

  /// Children after a value: those with the very value are left out.
  public func queryStarting(afterValue startValue: Any?) -> DatabaseQuery {
    starting(startValue, isExclusive: true, call: "queryStarting(afterValue:)")
  }

  /// Children after a value; of those with the very value, the ones after a key. By key `childKey` is
  /// nil.
  public func queryStarting(afterValue startValue: Any?, childKey: String?) -> DatabaseQuery {
    starting(
      startValue, childKey, isExclusive: true, namesKey: childKey != nil,
      call: "queryStarting(afterValue:childKey:)")
  }

  /// Children up to a value. See ``queryStarting(atValue:)`` for what it may be.
  public func queryEnding(atValue endValue: Any?) -> DatabaseQuery {
    ending(endValue, call: "queryEnding(atValue:)")
  }

  /// Children up to a value; of those with the very value, up to a key. Not by key.
  public func queryEnding(atValue endValue: Any?, childKey: String?) -> DatabaseQuery {
    ending(endValue, childKey, namesKey: true, call: "queryEnding(atValue:childKey:)")
  }

  /// Children before a value: those with the very value are left out.
  public func queryEnding(beforeValue endValue: Any?) -> DatabaseQuery {
    ending(endValue, isExclusive: true, call: "queryEnding(beforeValue:)")
  }

  /// Children before a value; of those with the very value, the ones before a key. By key `childKey` is
  /// nil.
  public func queryEnding(beforeValue endValue: Any?, childKey: String?) -> DatabaseQuery {
    ending(
      endValue, childKey, isExclusive: true, namesKey: childKey != nil,
      call: "queryEnding(beforeValue:childKey:)")
  }

  /// Children with exactly this value; nil finds those that have none.
  public func queryEqual(toValue value: Any?) -> DatabaseQuery {
    equal(value, nil, namesKey: false, call: "queryEqual(toValue:)")
  }

  /// The child with exactly this value and this key. Not by key.
  public func queryEqual(toValue value: Any?, childKey: String?) -> DatabaseQuery {
    equal(value, childKey, namesKey: true, call: "queryEqual(toValue:childKey:)")
  }

  private func starting(
    _ value: Any?, _ key: String? = nil, isExclusive: Bool = false, namesKey: Bool = false,
    call: String
  ) -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.start(
        at: Self.bound(value, key, isExclusive: isExclusive, namesKey: namesKey, call: call))
    }
  }

  private func ending(
    _ value: Any?, _ key: String? = nil, isExclusive: Bool = false, namesKey: Bool = false,
    call: String
  ) -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.end(
        at: Self.bound(value, key, isExclusive: isExclusive, namesKey: namesKey, call: call))
    }
  }

  private func equal(
    _ value: Any?, _ key: String?, namesKey: Bool, call: String
  ) -> DatabaseQuery {
    asking { request throws(ValidationError) in
      try request.equal(
        Self.bound(value, key, isExclusive: false, namesKey: namesKey, call: call))
    }
  }

  private static func bound(
    _ value: Any?, _ key: String?, isExclusive: Bool, namesKey: Bool, call: String
  ) throws(ValidationError) -> QueryRequest.Bound {
    do throws(ValidationError) {
      return QueryRequest.Bound(
        value: try ValuePlace.bound(value),
        key: try key.map { key throws(ValidationError) in try Key(key) },
        isExclusive: isExclusive, namesKey: namesKey, call: call)
    } catch {
      throw ValidationError(error.kind, "\(call) cannot be used: \(error.message)")
    }
  }
}
