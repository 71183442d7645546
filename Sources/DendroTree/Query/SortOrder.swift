/// By what the children of a node are sorted. Ties are sorted by key, upwards.
package enum SortOrder: Hashable, Sendable {
  /// Those without priority first, then numbers, then strings. The default.
  case priority
  case key
  /// By what the child itself holds.
  case value
  /// By what stands at a path below the child; at least one key.
  case child(Path)

  /// What the child is sorted by, before its key.
  package func value(of child: Node) -> SortValue {
    switch self {
    case .priority: child.priority.map(SortValue.scalar) ?? .none
    case .key: .none
    case .value: SortValue(child)
    case .child(let path): SortValue(child.node(at: path))
    }
  }

  /// Where the child stands.
  package func position(of key: Key, _ child: Node) -> SortPosition {
    SortPosition(value: value(of: child), key: key)
  }

  /// Whether a child that changed from `old` to `new`, both of them there, counts as moved.
  ///
  /// If children are sorted by value every change counts, even from branch to branch; otherwise it
  /// is whether the sort values differ.
  package func moves(from old: Node, to new: Node) -> Bool {
    switch self {
    case .key: false
    case .value: old != new
    case .priority, .child: value(of: old) != value(of: new)
    }
  }
}

/// What a child is sorted by: nothing < `false` < `true` < numbers < strings < branches, all of
/// which are equal to each other.
package enum SortValue: Hashable, Sendable {
  case none
  case scalar(Scalar)
  case branch

  package init(_ node: Node) {
    self = node.scalar.map(SortValue.scalar) ?? (node.isEmpty ? .none : .branch)
  }

  private var rank: Int {
    switch self {
    case .none: 0
    case .scalar: 1
    case .branch: 2
    }
  }
}

extension SortValue: Comparable {
  package static func < (a: SortValue, b: SortValue) -> Bool {
    if case .scalar(let x) = a, case .scalar(let y) = b { return x < y }
    return a.rank < b.rank
  }
}

/// The place of a child among its siblings: its sort value, then its key.
package struct SortPosition: Hashable, Sendable {
  package let value: SortValue
  package let key: Key

  package init(value: SortValue, key: Key) {
    self.value = value
    self.key = key
  }
}

extension SortPosition: Comparable {
  package static func < (a: SortPosition, b: SortPosition) -> Bool {
    a.value == b.value ? a.key < b.key : a.value < b.value
  }
}
