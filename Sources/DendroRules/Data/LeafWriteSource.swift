import DendroTree

/// A tree before and after a write that sets one leaf below the root, without a priority. The tree after it is not made:
/// to copy its pages takes as long as ten rules.
///
/// It may be used within `with` alone, as its views may.
struct LeafWriteSource: DataSource {
  let root: LeafWriteView
  /// By its address, as in `NodeSource`.
  private let before: UnsafePointer<Node>
  /// The location of the leaf; nil before the write.
  private let path: UnsafePointer<Path>?

  /// Calls `body` with the tree before and after the write, which are valid during the call.
  @inline(__always)
  static func with<R>(
    _ before: Node, setting leaf: NodeView, at path: Path,
    _ body: (LeafWriteSource, LeafWriteSource) -> R
  ) -> R {
    withUnsafePointer(to: before) { before in
      withUnsafePointer(to: leaf) { leaf in
        withUnsafePointer(to: path) { path in
          path.pointee.storedBytes.withUnsafeBytes { way in
            before.pointee.withView { root in
              body(
                LeafWriteSource(root: LeafWriteView(root, leaf), before: before, path: nil),
                LeafWriteSource(
                  root: LeafWriteView(root, leaf, way: KeyViews(storedPath: way)), before: before,
                  path: path))
            }
          }
        }
      }
    }
  }

  func priority(at path: Path) -> Scalar? {
    // The leaf has none. What is above it keeps its own, also a leaf that becomes a branch.
    if let written = self.path, written.pointee.isPrefix(of: path) { return nil }
    return before.pointee.node(at: path).priority
  }
}

/// What is at a location before or after a leaf is set.
struct LeafWriteView: DataView {
  /// What is there before. Off the way to the leaf, that is what is there.
  private let before: NodeView
  /// The keys that lead from here to the leaf; none off the way to it.
  private let way: KeyViews
  private let leaf: UnsafePointer<NodeView>?

  @inline(__always)
  fileprivate init(
    _ before: NodeView, _ leaf: UnsafePointer<NodeView>?,
    way: KeyViews = KeyViews(storedPath: UnsafeRawBufferPointer(start: nil, count: 0))
  ) {
    self.before = before
    self.leaf = leaf
    self.way = way
  }

  static var nothing: LeafWriteView { LeafWriteView(.nothing, nil) }

  private var isOnTheWay: Bool { !way.isAtEnd }

  var isEmpty: Bool { !isOnTheWay && before.isEmpty }

  var kind: DataKind { isOnTheWay ? .object : before.kind }

  func value(in texts: inout TextMemory) -> Value {
    isOnTheWay ? .unusable : before.value(in: &texts)
  }

  func child(_ key: KeyView) -> LeafWriteView { child(key, before: nil) }

  func child(_ key: KeyView, before known: LeafWriteView?) -> LeafWriteView {
    var way = self.way
    guard let next = way.next(), next == key else { return LeafWriteView(before.child(key), leaf) }
    if way.isAtEnd, let leaf { return LeafWriteView(leaf.pointee, leaf) }
    return LeafWriteView(known?.before ?? before.child(key), leaf, way: way)
  }

  func descendant(at storedPath: UnsafeRawBufferPointer) -> LeafWriteView {
    KeyViews(storedPath: storedPath).reduce(self) { $0.child($1) }
  }

  func visitChildren(_ body: (KeyView, LeafWriteView) -> Bool) {
    var way = self.way
    guard let next = way.next() else {
      return before.visitChildren { body($0, LeafWriteView($1, leaf)) }
    }
    var (isThere, goesOn) = (false, true)
    before.visitChildren { key, child in
      isThere = isThere || key == next
      goesOn = body(key, key == next ? self.child(key) : LeafWriteView(child, leaf))
      return goesOn
    }
    if goesOn, !isThere { _ = body(next, self.child(next)) }
  }
}
