package import DendroTree

/// What a verdict depends on: what its rules saw of the tree, and which variables they looked at.
///
/// As long as ``hold(data:newData:)`` for another tree before the write and the tree that the same write makes of it,
/// the same request gets the same verdict there. So a verdict that was made on an older tree can be kept without
/// being made again.
///
/// What the write itself put into the new tree is not part of it, since it is the same whatever was stored before;
/// unless the write had server values (``RuleRequest/hasServerValues``). A verdict that had no
/// steps left holds for no other tree.
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

  /// The variables that rules looked at.
  public let inputs: Inputs
  /// `Observation`s, one after the other.
  private let bytes: [UInt8]
  /// How many looks at the tree were noted.
  public let count: Int
  /// Whether the verdict depends on nothing else. One that took too many steps depends on how many there were.
  private let isComplete: Bool

  init(inputs: Inputs, bytes: [UInt8], count: Int, isComplete: Bool) {
    self.inputs = inputs
    self.bytes = bytes
    self.count = count
    self.isComplete = isComplete
  }

  /// Whether rules looked at something in the new tree that the write did not put there.
  package var includeNewData: Bool { !forEach { !$0.isNew } }

  /// The locations that rules looked at, each once, as `/users/ann`.
  public var locations: [String] { paths.map(\.description) }

  /// The locations that rules looked at, each once, in order.
  package var paths: [Path] {
    var paths: Set<Path> = []
    forEach { observation in
      paths.insert(Path(trusted: observation.path))
      return true
    }
    return paths.sorted()
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
    guard isComplete else { return false }
    return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { memory in
      var texts = TextMemory(in: memory)
      return forEach { observation in
        texts.reset()
        return observation.holds(in: observation.isNew ? new : old, &texts)
      }
    }
  }

  /// Calls `body` with each observation until it returns false.
  ///
  /// - Returns: whether it never did.
  @discardableResult
  private func forEach(_ body: (Observation) -> Bool) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes
      while let observation = Observation(rest) {
        guard body(observation) else { return false }
        rest = UnsafeRawBufferPointer(rebasing: rest[observation.byteCount...])
      }
      return true
    }
  }
}

extension Observation {
  fileprivate func holds(in source: some DataSource, _ texts: inout TextMemory) -> Bool {
    if sight == .priority {
      let priority = source.priority(at: Path(trusted: path))
      return Value.isSame(Value(priority, keptIn: &texts), value)
    }
    let view = source.root.descendant(at: path)
    return switch sight {
    case .exists: view.kind != .nothing
    case .doesNotExist: view.kind == .nothing
    case .hasChildren: view.kind == .object
    case .hasNoChildren: view.kind != .object
    case .isNothing, .isBoolean, .isNumber, .isString, .isObject: Sight(view.kind) == sight
    case .value: Value.isSame(view.value(in: &texts), value)
    case .keys: view.storedKeys.storedBytes.withUnsafeBytes { $0.isEqual(to: detail) }
    case .priority: true
    }
  }
}

extension Value {
  /// Whether rules cannot tell the two apart. A whole double beyond 2^53 equals an integer, and yet their sums with 1
  /// differ.
  fileprivate static func isSame(_ a: Value, _ b: Value) -> Bool {
    switch (a, b) {
    case (.integer, .double), (.double, .integer): false
    default: isEqual(a, b)
    }
  }
}
