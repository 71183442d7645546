import DendroTree

extension Database {
  /// Data as a Swift value without `Any`: what a location holds, or what is to be set there.
  ///
  /// ```swift
  /// var post: Database.Value = ["title": "Rings", "tags": ["wood", "time"], "stars": 0]
  /// post["stars"] = 1
  /// try await ref.setValue(post)
  /// switch try await ref.getData()["title"].typedValue {
  /// case .string(let title): print(title)
  /// default: print("untitled")
  /// }
  /// ```
  ///
  /// There is no case for arrays: as in the tree, elements are children with the keys 0, 1, 2, …, and
  /// `value[1]` is the child of the key 1. Equality is that of the tree: 1 equals 1.0, `true` does not
  /// equal 1, no children equal nothing, and strings are equal only if they are spelled with the same
  /// code points. Priorities do not show; in a value that is set, `.priority` and `.value` may stand as
  /// in ``DataSnapshot/valueInExportFormat()``.
  public enum Value: Sendable {
    /// Nothing.
    case null
    /// A boolean.
    case bool(Bool)
    /// An integer.
    case integer(Int64)
    /// A number stored as a double, which may be whole.
    case double(Double)
    /// A string.
    case string(String)
    /// Children by key.
    case children(Children)
  }
}

// MARK: - Typed reads

extension Database.Value {
  /// Whether it is nothing, or has no children.
  public var isNull: Bool {
    switch self {
    case .null: true
    case .children(let children): children.isEmpty
    case .bool, .integer, .double, .string: false
    }
  }

  /// The integer, also if it is a double of the same value; else nil.
  public var int: Int? {
    switch self {
    case .integer(let value): Int(exactly: value)
    case .double(let value): Int(exactly: value)
    default: nil
    }
  }

  /// The number; else nil. Integers beyond 2^53 are rounded to the nearest double.
  public var double: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .double(let value): value
    default: nil
    }
  }

  /// The string; else nil.
  public var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The boolean; else nil. Numbers are no booleans.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// The children; none for a scalar.
  public var children: Children { if case .children(let children) = self { children } else { [:] } }

  /// The child at a key, which is no path; `.null` if there is none. Setting one makes children of a
  /// scalar; setting `.null` removes.
  ///
  /// - Complexity: O(log children); O(children) to set.
  public subscript(key: String) -> Database.Value {
    get { children[key] }
    set {
      var children = children
      self = .null  // So that the children are changed in place.
      children[key] = newValue
      self = children.isEmpty ? .null : .children(children)
    }
  }

  /// The child at an index.
  public subscript(index: Int) -> Database.Value {
    get { self[String(index)] }
    set { self[String(index)] = newValue }
  }
}

extension DataSnapshot {
  /// The data without `Any`, its children in the order of keys. Priorities do not show.
  ///
  /// - Complexity: O(size of the data), at each call.
  public var typedValue: Database.Value { Database.Value(node) }
}

// MARK: - Literals

extension Database.Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringInterpolation,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// `.null`.
  public init(nilLiteral: ()) { self = .null }

  /// A boolean.
  public init(booleanLiteral value: Bool) { self = .bool(value) }

  /// An integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// A double.
  public init(floatLiteral value: Double) { self = .double(value) }

  /// A string.
  public init(stringLiteral value: String) { self = .string(value) }

  /// Children with the keys 0, 1, 2, …; places of nothing are left out.
  public init(arrayLiteral elements: Database.Value...) { self.init(elements) }

  /// Children; of several at one key the last holds.
  public init(dictionaryLiteral elements: (String, Database.Value)...) {
    self.init(Children(elements))
  }

  /// Children with the keys 0, 1, 2, …; places of nothing are left out.
  public init(_ elements: some Sequence<Database.Value>) {
    self.init(Children(elements.enumerated().map { (String($0), $1) }))
  }

  /// Children, or nothing if there are none.
  public init(_ children: Children) { self = children.isEmpty ? .null : .children(children) }
}

// MARK: - Comparison

extension Database.Value: Hashable {
  /// Whether both are the same data.
  public static func == (a: Database.Value, b: Database.Value) -> Bool {
    if case .children(let x) = a, case .children(let y) = b { return x == y }
    return a.isNull || b.isNull ? a.isNull && b.isNull : a.scalar == b.scalar
  }

  /// Hashes the data.
  public func hash(into hasher: inout Hasher) {
    if case .children(let children) = self, !children.isEmpty {
      hasher.combine(children)
    } else {
      hasher.combine(scalar)
    }
  }

  /// The value if it is no children; nil for nothing.
  var scalar: Scalar? {
    switch self {
    case .null, .children: nil
    case .bool(let value): .bool(value)
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    case .string(let value): .string(value)
    }
  }
}

// MARK: - From and into the tree

extension Database.Value {
  init(_ scalar: Scalar) {
    switch scalar {
    case .bool(let value): self = .bool(value)
    case .integer(let value): self = .integer(value)
    case .double(let value): self = .double(value)
    case .string(let value): self = .string(value)
    case .bytes: preconditionFailure("the data have no bytes")
    }
  }

  init(_ node: Node) {
    if let scalar = node.scalar {
      self.init(scalar)
    } else {
      self = node.isEmpty ? .null : .children(Children(of: node))
    }
  }
}
