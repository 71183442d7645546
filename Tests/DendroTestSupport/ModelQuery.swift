package import DendroTree

/// The oracle of queries: filter, sort, take, over a plain array, with an order of keys and values of
/// its own.
package enum ModelQuery {
  package typealias Child = (key: String, node: Node)

  /// The children that a query shows, in its order.
  package static func children(of node: Node, _ parameters: QueryParameters) -> [Child] {
    var children: [Child] = node.children.map { ($0.key.string, $0.node) }
    children.sort { precedes($0, $1, parameters.order) }
    children = children.filter { isInRange($0, parameters) }
    switch parameters.limit {
    case .first(let count): return Array(children.prefix(count))
    case .last(let count): return Array(children.suffix(count))
    case nil: return children
    }
  }

  private static func isInRange(_ child: Child, _ parameters: QueryParameters) -> Bool {
    if let start = parameters.start {
      let side = compare(child, start, parameters.order)
      if side < 0 || (side == 0 && start.isExclusive) { return false }
    }
    if let end = parameters.end {
      let side = compare(child, end, parameters.order)
      if side > 0 || (side == 0 && end.isExclusive) { return false }
    }
    return true
  }

  private static func compare(
    _ child: Child, _ bound: QueryParameters.Bound, _ order: SortOrder
  ) -> Int {
    let value = value(of: child, order)
    let own: Value =
      switch bound.value {
      case .none: .nothing
      case .scalar(let scalar): .scalar(scalar)
      case .branch: .branch
      }
    if precedes(value, own) { return -1 }
    if precedes(own, value) { return 1 }
    guard let key = bound.key?.string else { return 0 }
    if keyPrecedes(child.key, key) { return -1 }
    return keyPrecedes(key, child.key) ? 1 : 0
  }

  // MARK: Orders

  private enum Value {
    case nothing
    case scalar(Scalar)
    case branch

    var rank: Int {
      switch self {
      case .nothing: 0
      case .scalar(.bool(false)): 1
      case .scalar(.bool(true)): 2
      case .scalar(.integer), .scalar(.double): 3
      case .scalar(.string): 4
      case .branch: 5
      case .scalar(.bytes): 6
      }
    }
  }

  private static func value(of child: Child, _ order: SortOrder) -> Value {
    func value(_ node: Node) -> Value {
      node.scalar.map(Value.scalar) ?? (node.isEmpty ? .nothing : .branch)
    }
    switch order {
    case .key: return .nothing
    case .priority: return child.node.priority.map(Value.scalar) ?? .nothing
    case .value: return value(child.node)
    case .child(let path):
      var node = child.node
      for key in path.keys { node = node.child(key) }
      return value(node)
    }
  }

  private static func precedes(_ a: Child, _ b: Child, _ order: SortOrder) -> Bool {
    let x = value(of: a, order)
    let y = value(of: b, order)
    if precedes(x, y) { return true }
    if precedes(y, x) { return false }
    return keyPrecedes(a.key, b.key)
  }

  private static func precedes(_ a: Value, _ b: Value) -> Bool {
    if a.rank != b.rank { return a.rank < b.rank }
    guard case .scalar(let x) = a, case .scalar(let y) = b else { return false }
    if case .string(let x) = x, case .string(let y) = y {
      return x.utf16.lexicographicallyPrecedes(y.utf16)
    }
    return x < y
  }

  /// Integers first, by value, then by length; all others by UTF-16 code units.
  package static func keyPrecedes(_ a: String, _ b: String) -> Bool {
    switch (integer(a), integer(b)) {
    case (let x?, let y?):
      if x != y { return x < y }
      if a.utf16.count != b.utf16.count { return a.utf16.count < b.utf16.count }
      return a.utf16.lexicographicallyPrecedes(b.utf16)
    case (_?, nil): return true
    case (nil, _?): return false
    case (nil, nil): return a.utf16.lexicographicallyPrecedes(b.utf16)
    }
  }

  private static func integer(_ key: String) -> Int32? {
    let units = Array(key.utf8)
    let digits = units.first == UInt8(ascii: "-") ? units.dropFirst() : units[...]
    guard units.count <= 11, !digits.isEmpty,
      digits.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") })
    else { return nil }
    return Int32(key)
  }
}
