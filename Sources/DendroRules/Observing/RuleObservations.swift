package import DendroTree

/// What a verdict depends on: what its rules saw of the tree, and which variables they looked at.
///
/// As long as ``hold(data:newData:)`` for another tree before the write and the tree that the same write makes of it,
/// the same request gets the same verdict there. So a verdict that was made on an older tree can be kept without
/// being made again.
///
/// What the write itself put into the new tree is not part of it, since it is the same whatever was stored before;
/// unless the write had server values (``RuleRequest/hasServerValues``). A verdict that took more steps than
/// ``RuleLimits/steps`` holds for no other tree.
public struct RuleObservations: Sendable {
  /// The variables that a verdict may depend on, beside the data.
  public struct Inputs: OptionSet, Hashable, Sendable {
    /// The bits of the set.
    public let rawValue: Int
    /// Makes a set of bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// A rule looked at `now`.
    public static let now = Inputs(rawValue: 1)
    /// A rule looked at `auth`.
    public static let auth = Inputs(rawValue: 2)
    /// A rule looked at `query`.
    public static let query = Inputs(rawValue: 4)
  }

  /// What was seen at a location.
  package enum Sight: Hashable, Sendable {
    case existence(Bool)
    /// Whether there are children.
    case children(Bool)
    case kind(DataKind)
    /// The value of a leaf.
    case value(Scalar)
    case priority(Scalar?)
    /// All children.
    case keys([Key])
  }

  /// One look at one location.
  package struct Observation: Hashable, Sendable {
    package let path: Path
    /// Whether it is the tree after the write that was looked at.
    package let isNew: Bool
    package let sight: Sight
  }

  /// The variables that rules looked at.
  public let inputs: Inputs
  package let observations: [Observation]
  /// Whether the verdict depends on nothing else. One that took too many steps depends on how many there were.
  let isComplete: Bool

  /// How many looks at the tree were noted.
  public var count: Int { observations.count }

  /// Whether rules looked at something in the new tree that the write did not put there.
  package var includeNewData: Bool { observations.contains { $0.isNew } }

  /// The locations that rules looked at, each once, as `/users/ann`.
  public var locations: [String] {
    Set(observations.map(\.path)).sorted().map(\.description)
  }

  /// Whether everything that was seen is the same in other trees.
  ///
  /// - Parameters:
  ///   - data: the whole tree before.
  ///   - newData: the whole tree after the same write; nil for a reading.
  /// - Complexity: O(``count`` · depth · log children).
  public func hold<Data: RuleData>(data: Data, newData: Data? = nil) -> Bool {
    hold(
      ForeignSource(data), newData.map { ForeignSource($0) } ?? ForeignSource(nothing: Data.self))
  }

  /// Whether everything that was seen is the same in other trees.
  package func hold(data: Node, newData: Node? = nil) -> Bool {
    NodeSource.with(data, newData ?? .empty) { hold($0, $1) }
  }

  private func hold<Source: DataSource>(_ old: Source, _ new: Source) -> Bool {
    isComplete && observations.allSatisfy { $0.holds(in: $0.isNew ? new : old) }
  }
}

extension RuleObservations.Observation {
  fileprivate func holds(in source: some DataSource) -> Bool {
    if case .priority(let priority) = sight {
      return source.priority(at: Array(path.keys)) == priority
    }
    var view = source.root
    for key in path.keys { view = view.child(key) }
    return switch sight {
    case .existence(let exists): (view.kind != .nothing) == exists
    case .children(let hasChildren): (view.kind == .object) == hasChildren
    case .kind(let kind): view.kind == kind
    case .value(let scalar): view.scalar.map { $0.isSame(as: scalar) } ?? false
    case .keys(let keys): view.keys == keys
    case .priority: true
    }
  }
}

extension DataView {
  fileprivate var keys: [Key] {
    var keys: [Key] = []
    forEachChild { key, _ in
      keys.append(key)
      return true
    }
    return keys.sorted()
  }
}

extension Scalar {
  /// Whether rules cannot tell the two apart. A whole double beyond 2^53 equals an integer, and yet their sums with 1
  /// differ.
  fileprivate func isSame(as other: Scalar) -> Bool {
    switch (self, other) {
    case (.integer, .double), (.double, .integer): false
    default: self == other
    }
  }
}
