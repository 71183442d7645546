package import DendroTree

/// What the evaluation reads. `RuleData` in the form that costs least: keys are those of the tree, and nodes
/// of the tree are read in place.
package protocol DataView {
  /// What is at a location without data.
  static var nothing: Self { get }
  var kind: DataKind { get }
  /// The value of a leaf; nil for anything else.
  var scalar: Scalar? { get }
  func child(_ key: Key) -> Self
  /// Calls `body` with each child until it returns false.
  func forEachChild(_ body: (Key, Self) -> Bool)
}

/// What is at a location.
package enum DataKind: Hashable, Sendable {
  case nothing
  case boolean
  case number
  case string
  case object
}

/// A root and the views of what is below it.
package protocol DataSource {
  associatedtype View: DataView
  var root: View { get }
  /// The priority at a location. Views have none: rules seldom ask for it.
  func priority(at keys: [Key]) -> Scalar?
}

// MARK: Nodes

/// A root of the tree. It may be used within `Node.withView` alone, as the view may.
package struct NodeSource: DataSource {
  /// By its address: each copy of a node would count a reference.
  private let node: UnsafePointer<Node>
  package let root: NodeView

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

  package func priority(at keys: [Key]) -> Scalar? {
    keys.reduce(node.pointee) { $0.child($1) }.priority
  }
}

extension NodeView: DataView {
  package var kind: DataKind {
    switch contentKind {
    case .nothing: .nothing
    case .bool: .boolean
    case .number: .number
    case .string: .string
    case .bytes, .branch: .object
    }
  }

  package func forEachChild(_ body: (Key, NodeView) -> Bool) {
    forEachChild { key, child in body(key.key, child) }
  }
}

// MARK: Data of others

/// Data that is no node.
struct ForeignSource<Data: RuleData>: DataSource {
  let root: ForeignView<Data>

  init(_ data: Data) { root = ForeignView(data: data) }

  /// A tree without data.
  init(nothing: Data.Type) { root = .nothing }

  func priority(at keys: [Key]) -> Scalar? {
    keys.reduce(root) { $0.child($1) }.data?.priority?.scalar
  }
}

struct ForeignView<Data: RuleData>: DataView {
  /// Nil for a location that no data could have.
  let data: Data?

  static var nothing: ForeignView { ForeignView(data: nil) }

  var kind: DataKind {
    guard let data, data.exists else { return .nothing }
    return switch data.scalar {
    case .boolean: .boolean
    case .integer, .double: .number
    case .string: .string
    case nil: .object
    }
  }

  var scalar: Scalar? { data?.scalar?.scalar }

  func child(_ key: Key) -> ForeignView { ForeignView(data: data?.child(key.string)) }

  func forEachChild(_ body: (Key, ForeignView) -> Bool) {
    data?.forEachChild { name, child in
      // What is no key is at no location that rules or requests could name.
      guard let key = try? Key(name) else { return true }
      return body(key, ForeignView(data: child))
    }
  }
}
