import DendroTree

/// What the evaluation reads. `RuleData` in the form that costs least: keys are those of the tree, and nodes
/// of the tree are read in place.
protocol DataView {
  /// What is at a location without data.
  static var nothing: Self { get }
  /// Whether there is nothing.
  var isEmpty: Bool { get }
  var kind: DataKind { get }
  /// The value of a leaf; null for nothing, and unusable for anything else.
  ///
  /// - Parameter texts: where a string is put that is in no memory that stays.
  func value(in texts: inout TextMemory) -> Value
  func child(_ key: KeyView) -> Self
  /// What is at a child of the tree after a write.
  ///
  /// - Parameter before: what was there before the write, if that is known.
  func child(_ key: KeyView, before: Self?) -> Self
  /// What is at a path below.
  func descendant(at storedPath: UnsafeRawBufferPointer) -> Self
  /// Calls `body` with each child until it returns false. The key is valid during the call.
  func visitChildren(_ body: (KeyView, Self) -> Bool)
}

extension DataView {
  func child(_ key: KeyView, before: Self?) -> Self { child(key) }
}

/// What is at a location.
enum DataKind: UInt8 {
  case nothing
  case boolean
  case number
  case string
  case object
}

/// A root and the views of what is below it.
protocol DataSource {
  associatedtype View: DataView
  var root: View { get }
  /// The priority at a location. Views have none: rules seldom ask for it.
  func priority(at path: Path) -> Scalar?
}

// MARK: Nodes

/// A root of the tree. It may be used within `Node.withView` alone, as the view may.
struct NodeSource: DataSource {
  /// By its address: each copy of a node would count a reference.
  private let node: UnsafePointer<Node>
  let root: NodeView

  private init(_ node: UnsafePointer<Node>, _ root: NodeView) {
    self.node = node
    self.root = root
  }

  /// Calls `body` with two trees, which are valid during the call.
  @inline(__always)
  static func with<R>(
    _ a: Node, _ b: Node, _ body: (NodeSource, NodeSource) -> R
  ) -> R {
    withUnsafePointer(to: a) { a in
      withUnsafePointer(to: b) { b in
        a.pointee.withView { aRoot in
          b.pointee.withView { bRoot in body(NodeSource(a, aRoot), NodeSource(b, bRoot)) }
        }
      }
    }
  }

  func priority(at path: Path) -> Scalar? { node.pointee.node(at: path).priority }
}

extension NodeView: DataView {
  var kind: DataKind {
    switch contentKind {
    case .nothing: .nothing
    case .bool: .boolean
    case .number: .number
    case .string: .string
    case .bytes, .branch: .object
    }
  }

  func value(in texts: inout TextMemory) -> Value {
    switch leaf {
    case nil: return isEmpty ? .null : .unusable
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .double(let value): return .double(value)
    case .string(let bytes): return .string(Text(bytes))
    case .unpaged(let scalar):
      guard case .string(let string) = scalar.pointee else { return .unusable }
      return .string(texts.text(of: string))
    }
  }

  func descendant(at storedPath: UnsafeRawBufferPointer) -> NodeView { view(at: storedPath) }

  func visitChildren(_ body: (KeyView, NodeView) -> Bool) {
    forEachChild { key, child in body(key, child) }
  }
}

// MARK: Data of others

/// Data that is no node.
struct ForeignSource<Data: RuleData>: DataSource {
  let root: ForeignView<Data>

  init(_ data: Data) { root = ForeignView(data: data) }

  /// A tree without data.
  init(nothing: Data.Type) { root = .nothing }

  func priority(at path: Path) -> Scalar? {
    path.keys.reduce(root.data) { $0?.child($1.string) }?.priority?.scalar
  }
}

struct ForeignView<Data: RuleData>: DataView {
  /// Nil for a location that no data could have.
  let data: Data?

  static var nothing: ForeignView { ForeignView(data: nil) }

  var isEmpty: Bool { data.map { !$0.exists } ?? true }

  var kind: DataKind {
    guard let data, data.exists else { return .nothing }
    return switch data.scalar {
    case .boolean: .boolean
    case .integer, .double: .number
    case .string: .string
    case nil: .object
    }
  }

  func value(in texts: inout TextMemory) -> Value {
    guard let scalar = data?.scalar else { return isEmpty ? .null : .unusable }
    return Value(scalar.scalar, keptIn: &texts)
  }

  func child(_ key: KeyView) -> ForeignView { ForeignView(data: data?.child(key.string)) }

  func descendant(at storedPath: UnsafeRawBufferPointer) -> ForeignView {
    KeyViews(storedPath: storedPath).reduce(self) { $0.child($1) }
  }

  func visitChildren(_ body: (KeyView, ForeignView) -> Bool) {
    data?.forEachChild { name, child in
      // What is no key is at no location that rules or requests could name.
      guard let key = try? Key(name) else { return true }
      return key.withOrderedBytes {
        body(KeyView(orderedBytes: $0), ForeignView(data: child))
      }
    }
  }
}
