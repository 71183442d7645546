import DendroTree

/// The views of a location and of those below it.
struct ListenPoints: Sendable {
  /// In the order in which they have begun.
  private(set) var views: [ListenedView] = []
  private(set) var children: [Key: ListenPoints] = [:]

  var isEmpty: Bool { views.isEmpty && children.isEmpty }

  /// Whether all of the location is listened to.
  var hasWholeView: Bool { views.contains(where: \.parameters.showsAll) }

  subscript(_ parameters: QueryParameters) -> ListenedView? {
    views.first { $0.parameters == parameters }
  }

  /// What the server has said of what a query shows, or of all of the location.
  func server(_ parameters: QueryParameters) -> Knowledge? {
    views.first {
      parameters.showsAll ? $0.parameters.showsAll : $0.parameters == parameters
    }?.server
  }

  /// The children's points, in the order of their keys.
  var sortedChildren: [(key: Key, points: ListenPoints)] {
    children.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  mutating func add(_ view: ListenedView) { views.append(view) }

  mutating func remove(_ parameters: QueryParameters) {
    views.removeAll { $0.parameters == parameters }
  }

  /// The points of a location.
  func points(at path: Path) -> ListenPoints? {
    guard let key = path.first else { return self }
    return children[key]?.points(at: path.dropFirst(1))
  }

  /// Changes the points of a location, which are made if they are not there.
  mutating func change(at path: Path, _ body: (inout ListenPoints) -> Void) {
    guard let key = path.first else { return body(&self) }
    children[key, default: ListenPoints()].change(at: path.dropFirst(1), body)
    if children[key]?.isEmpty == true { children[key] = nil }
  }

  /// Whether all of a location, or of one above it, is listened to.
  func covers(_ path: Path) -> Bool {
    if hasWholeView { return true }
    guard let key = path.first else { return false }
    return children[key]?.covers(path.dropFirst(1)) ?? false
  }

  /// Whether a listen at a location or above it tells what is there.
  func tells(_ path: Path) -> Bool {
    if hasWholeView { return true }
    guard let key = path.first else { return false }
    return views.contains { $0.server.node.has(key) }
      || children[key]?.tells(path.dropFirst(1)) ?? false
  }

  /// Calls `body` with the locations below of which listens tell what is there, none of them below another one that is whole.
  func forEachTold(at path: Path = .root, _ body: (Path) -> Void) {
    if hasWholeView { return body(path) }
    for view in views { view.server.node.forEachChild { key, _ in body(path.appending(key)) } }
    for (key, points) in children { points.forEachTold(at: path.appending(key), body) }
  }

  /// Whether a listen that is above a target, or has all of its location, knows all of that.
  func knowsMore(than target: SyncedTree.Target) -> Bool {
    var points = self
    for key in target.path.keys {
      if points.knowsAll { return true }
      guard let next = points.children[key] else { return false }
      points = next
    }
    return !target.parameters.showsAll && points.knowsAll
  }

  private var knowsAll: Bool {
    views.contains { $0.parameters.showsAll && $0.server.isComplete }
  }

  /// What the server has at a location below, as far as a view here knows all of it.
  func knownNode(at path: Path) -> Node? {
    for view in views where view.server.isComplete {
      if view.parameters.showsAll { return view.server.node.node(at: path) }
      if let key = path.first, view.server.node.has(key) { return view.server.node.node(at: path) }
    }
    return nil
  }

  /// What is known of a location by listens at it, above and below.
  func knowledge(of path: Path) -> Knowledge {
    var known: Node?
    var points = self
    var rest = path
    while true {
      known = known ?? points.knownNode(at: rest)
      guard let key = rest.first else { break }
      guard let next = points.children[key] else {
        return Knowledge(node: known ?? .empty, isComplete: known != nil)
      }
      points = next
      rest = rest.dropFirst(1)
    }
    if let known { return Knowledge(node: known, isComplete: true) }
    var node = Node.empty
    for (key, child) in points.children {
      if let known = child.knownNode(at: .root) { node.put(known, at: key) }
    }
    return Knowledge(node: node)
  }

  /// The listens that show what is here without one for all of it: for each location one for all of that, or else those of
  /// its queries and those below.
  ///
  /// - Parameter isTop: whether the view of all of this location does not count.
  func distinctTargets(at path: Path, isTop: Bool = false) -> [SyncedTree.Target] {
    if !isTop, hasWholeView { return [SyncedTree.Target(path)] }
    return views.filter { !$0.parameters.showsAll }.map { SyncedTree.Target(path, $0.parameters) }
      + sortedChildren.flatMap { $0.points.distinctTargets(at: path.appending($0.key)) }
  }

  // MARK: Operations

  /// Applies an operation to all views that it concerns, the deepest first.
  ///
  /// - Parameters:
  ///   - writes: those that are pending here.
  ///   - whole: what the server has here, if a listen above knows all of it.
  mutating func apply(
    _ operation: SyncOperation, _ writes: WriteLayer, whole: Node? = nil,
    at path: Path = .root, into outcome: inout SyncedTree.Outcome
  ) {
    let whole = whole ?? knownNode(at: .root)
    let keys = operation.place.path.first.map { [$0] } ?? sortedChildren.map(\.key)
    for key in keys {
      guard let index = children.index(forKey: key), let below = operation.below(key) else {
        continue
      }
      children.values[index].apply(
        below, writes.below(key), whole: whole?.child(key), at: path.appending(key),
        into: &outcome)
    }
    for index in views.indices {
      apply(operation, writes, whole, toView: index, isOwn: false, at: path, into: &outcome)
    }
  }

  /// Applies what the server says of one query.
  mutating func apply(
    _ operation: SyncOperation, to parameters: QueryParameters, _ writes: WriteLayer, at path: Path,
    into outcome: inout SyncedTree.Outcome
  ) {
    guard let index = views.firstIndex(where: { $0.parameters == parameters }) else { return }
    apply(operation, writes, nil, toView: index, isOwn: true, at: path, into: &outcome)
  }

  private mutating func apply(
    _ operation: SyncOperation, _ writes: WriteLayer, _ whole: Node?, toView index: Int,
    isOwn: Bool, at path: Path, into outcome: inout SyncedTree.Outcome
  ) {
    let old = views[index]
    views[index].apply(operation, writes, whole: whole, isOwn: isOwn)
    let target = SyncedTree.Target(path, old.parameters)
    if let step = SyncedTree.Step(target, from: old.visible, to: views[index].visible) {
      outcome.steps.append(step)
    }
    if let step = SyncedTree.Step(target, from: old.server, to: views[index].server) {
      outcome.learned.append(step)
    }
  }
}
