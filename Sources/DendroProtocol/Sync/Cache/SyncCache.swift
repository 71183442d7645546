package import DendroTree

/// What a client keeps of its server's data, also if nothing listens to it.
///
/// The data are those of *tracked targets*: locations and queries of which the server has said once all that they show.
/// What is kept of a target was true when the client listened to it last.
package struct SyncCache: Sendable {
  /// What the server has said last of the tracked targets, and nothing else.
  package var data: Node
  private var targets: [QueryTarget: Target] = [:]
  private var places = TrackedPlaces()
  /// What has changed of the targets since this was asked for, nil for those that are tracked no more.
  private var changed: [QueryTarget: Change] = [:]
  /// The number of the last use of any target.
  private var lastUse: Int64 = 0

  /// A target that is tracked.
  package struct Target: Sendable, Equatable {
    /// The number of its last use: of two, the one with the lower number was not used for longer.
    package var use: Int64
    /// The children that a query shows; empty for a whole location.
    package var keys: Set<Key>
    /// A write of the server after which what is kept was right; nil if none is known.
    package var heard: UInt64?

    package init(use: Int64, keys: Set<Key>, heard: UInt64? = nil) {
      self.use = use
      self.keys = keys
      self.heard = heard
    }
  }

  /// What is to be noted of a target.
  package enum Change: Sendable {
    /// All of it.
    case tracked
    /// Its use, what was heard of it, and whether it shows these children.
    case parts([Key: Bool])
    case forgotten
  }

  /// - Parameters:
  ///   - data: what the server has said of the targets.
  ///   - targets: those that are tracked.
  ///   What none of them shows is given back.
  package init(_ data: Node = .empty, _ targets: [QueryTarget: Target] = [:]) {
    self.data = .empty
    self.targets = targets
    for (target, item) in targets {
      places.set(target, keys: item.keys)
      lastUse = max(lastUse, item.use)
    }
    self.data = places.covered(of: data)
  }

  package subscript(_ target: QueryTarget) -> Target? { targets[target] }

  /// Takes what has changed of the targets since the last call.
  package mutating func takeChanges() -> [QueryTarget: Change] {
    defer { changed = [:] }
    return changed
  }

  // MARK: Reading

  /// What is kept of what a target shows: if that is not all, the children of which all is kept; nil if there are none.
  ///
  /// - Complexity: O(children that the query has shown, or that are kept of others); O(n log n) for a query of a location that is
  ///   kept as a whole.
  func knowledge(of target: QueryTarget) -> Knowledge? {
    let whole = use(covering: target.path)
    if !target.parameters.showsAll, let own = targets[target], own.use >= whole ?? 0 {
      let node = data.node(at: target.path)
      var shown = Node.empty
      for key in own.keys { shown.put(node.child(key), at: key) }
      return Knowledge(
        node: shown.filtered(by: target.parameters), isComplete: true, isWindow: true)
    }
    guard whole != nil || places.covers(target.path) else { return parts(of: target) }
    let node = data.node(at: target.path)
    if target.parameters.showsAll { return Knowledge(node: node, isComplete: true) }
    return Knowledge(node: node.filtered(by: target.parameters), isComplete: true, isWindow: true)
  }

  private func parts(of target: QueryTarget) -> Knowledge? {
    guard let keys = places.places(at: target.path)?.wholeChildren, !keys.isEmpty else {
      return nil
    }
    let all = data.node(at: target.path)
    var node = Node.empty
    for key in keys { node.put(all.child(key), at: key) }
    return Knowledge(
      node: node.filtered(by: target.parameters), isWindow: !target.parameters.showsAll)
  }

  /// A write of the server after which what is kept of a location was right; nil if none is known.
  func heard(_ target: QueryTarget) -> UInt64? {
    guard target.parameters.showsAll else { return nil }
    for count in (0...target.path.count).reversed() {
      if let heard = targets[QueryTarget(target.path.prefix(count))]?.heard { return heard }
    }
    return nil
  }

  /// The last use of a target that is all of a location, or of one above.
  private func use(covering path: Path) -> Int64? {
    (0...path.count).compactMap { targets[QueryTarget(path.prefix($0))]?.use }.max()
  }

  // MARK: What the server says

  /// The server has said something of a target that is listened to.
  ///
  /// - Parameters:
  ///   - before: what was known of it.
  ///   - after: complete.
  /// - Complexity: O(what has changed).
  mutating func learn(_ target: QueryTarget, from before: Knowledge, to after: Knowledge) {
    if targets[target] == nil || !before.isComplete || before.isWindow != after.isWindow {
      return track(target, after)
    }
    if target.parameters.showsAll { return change(before.node, to: after.node, at: target.path) }
    var keys: Set<Key> = []
    Node.difference(from: before.node, to: after.node) { path, old, new in
      if let key = path.first {
        keys.insert(key)
      } else {
        for (key, _) in old.children { keys.insert(key) }
        for (key, _) in new.children { keys.insert(key) }
      }
    }
    for key in keys where after.node.has(key) {
      if !before.node.has(key) { setChild(key, of: target, isShown: true) }
      change(before.node.child(key), to: after.node.child(key), at: target.path.appending(key))
    }
    for key in keys where !after.node.has(key) { removeChild(key, of: target) }
  }

  /// The server has taken what the client has put to a place to which nothing listens.
  mutating func put(_ node: Node, at place: DataPlace) {
    let path = place.path
    if place.isPriority {
      let old = data.node(at: path)
      if !old.isEmpty, places.covers(path) {
        data.graft(old.settingPriority(node.scalar), at: path)
      }
    } else if places.covers(path) {
      data.graft(node, at: path)
    } else if let places = places.places(at: path) {
      data.graft(places.covered(of: node), at: path)
    }
  }

  /// Changes a location as one node has changed to another.
  private mutating func change(_ old: Node, to new: Node, at path: Path) {
    // What is removed goes last: a location that never is without children keeps its priority.
    var removed: [Path] = []
    Node.difference(from: old, to: new) { place, _, node in
      let place = path.appending(place)
      if node.isEmpty { removed.append(place) } else { data.graft(node, at: place) }
    }
    for place in removed { data.graft(.empty, at: place) }
  }

  /// Tracks a target from now on, and keeps what is known of it.
  private mutating func track(_ target: QueryTarget, _ known: Knowledge) {
    let before = targets[target]
    let node = known.isWindow ? known.node : known.node.filtered(by: target.parameters)
    var keys: Set<Key> = []
    if !target.parameters.showsAll { node.forEachChild { key, _ in keys.insert(key) } }
    lastUse += 1
    targets[target] = Target(use: lastUse, keys: keys, heard: before?.heard)
    places.set(target, keys: keys)
    changed[target] = .tracked
    if target.parameters.showsAll { return data.graft(node, at: target.path) }
    node.forEachChild { key, child in data.graft(child, at: target.path.appending(key)) }
    for key in before?.keys.subtracting(keys) ?? [] { release(target.path.appending(key)) }
  }

  /// The server has said that what is known of a target is all there is.
  mutating func listened(_ target: QueryTarget, _ known: Knowledge) {
    let keys = targets[target]?.keys
    let isSame =
      keys.map { keys in
        keys.count == known.node.childCount
          && known.node.children.allSatisfy { keys.contains($0.key) }
      } ?? false
    if isSame || keys != nil && target.parameters.showsAll {
      use(target)
    } else {
      track(target, known)
    }
  }

  private mutating func setChild(_ key: Key, of target: QueryTarget, isShown: Bool) {
    places.setChild(key, of: target, isShown: isShown)
    if isShown { targets[target]?.keys.insert(key) } else { targets[target]?.keys.remove(key) }
    // Taken out, so that the keys are not held twice while they change.
    switch changed.removeValue(forKey: target) {
    case .parts(var keys):
      keys[key] = isShown
      changed[target] = .parts(keys)
    case .tracked: changed[target] = .tracked
    case .forgotten, nil: changed[target] = .parts([key: isShown])
    }
  }

  /// A query shows a child no more.
  private mutating func removeChild(_ key: Key, of target: QueryTarget) {
    guard targets[target]?.keys.contains(key) == true else { return }
    setChild(key, of: target, isShown: false)
    release(target.path.appending(key))
  }

  /// Gives back what is kept of a location, as far as no target covers it.
  private mutating func release(_ path: Path) {
    if places.covers(path) { return }
    let node = data.node(at: path)
    if node.isEmpty { return }
    data.graft(places.places(at: path)?.covered(of: node) ?? .empty, at: path)
  }

  // MARK: Targets

  /// A target begins to be listened to, or ends.
  mutating func use(_ target: QueryTarget) {
    guard targets[target] != nil else { return }
    lastUse += 1
    targets[target]?.use = lastUse
    if changed[target] == nil { changed[target] = .parts([:]) }
  }

  /// Forgets which writes of the server the targets have received.
  mutating func forgetHeard() {
    for target in targets.keys { hear(nil, target) }
  }

  /// What is kept of a target is right after a write of the server; nil if that is not known any more.
  mutating func hear(_ lsn: UInt64?, _ target: QueryTarget) {
    guard let item = targets[target], item.heard != lsn else { return }
    targets[target]?.heard = lsn
    if changed[target] == nil { changed[target] = .parts([:]) }
  }

  /// Tracks a target no more, and gives back what nothing else covers.
  mutating func forget(_ target: QueryTarget) {
    guard let item = targets.removeValue(forKey: target) else { return }
    places.set(target, keys: nil)
    changed[target] = .forgotten
    if target.parameters.showsAll { return release(target.path) }
    for key in item.keys { release(target.path.appending(key)) }
  }

  /// Tracks nothing any more.
  package mutating func forgetAll() {
    for target in targets.keys { changed[target] = .forgotten }
    targets = [:]
    places = TrackedPlaces()
    data = .empty
  }

  /// More targets than this are not kept, however small they are.
  private static let targetCountMax = 1000

  private func isOver(_ limit: Int) -> Bool {
    targets.count > Self.targetCountMax || data.isLarger(than: limit)
  }

  /// Gives back the targets that were not used for longest until what is kept is within a limit, a fifth of those that are
  /// not needed at a time.
  ///
  /// - Parameters:
  ///   - limit: in bytes.
  ///   - isNeeded: whether a target is listened to.
  /// - Returns: how many targets were given back.
  /// - Complexity: O(what is kept, up to the limit) for each fifth.
  package mutating func prune(to limit: Int, isNeeded: (QueryTarget) -> Bool) -> Int {
    guard isOver(limit) else { return 0 }
    var rest = targets.filter { !isNeeded($0.key) }.sorted { $0.value.use < $1.value.use }[...]
    let step = max(1, (rest.count + 4) / 5)
    var count = 0
    while !rest.isEmpty, isOver(limit) {
      let given = rest.prefix(step)
      for item in given { forget(item.key) }
      count += given.count
      rest = rest.dropFirst(step)
    }
    return count
  }
}
