package import DendroTree

/// What a commit changes at one place and below.
package enum PlaceChange: Sendable {
  /// The node at the path, which is relative to the place, is now this.
  case put(Path, Node)
  /// The nodes at these paths, which are relative to the first one, are now these; all others stay.
  case patch(Path, [(path: Path, node: Node)])
}

/// The changes of one commit, brought into a form in which no path is above another.
package struct CommitChanges: Sendable {
  /// In the order of their paths.
  package private(set) var changes: [Change]
  /// Whether the changes say what they have replaced.
  package private(set) var isReplacedKnown = true

  /// - Parameter changes: in the order in which they were made; a later one includes what earlier ones below
  ///   it did.
  package init(_ changes: some Collection<Change>) {
    guard changes.count > 1 else {
      self.changes = Array(changes)
      return
    }
    let sorted: [(offset: Int, element: Change)] = changes.enumerated().sorted { a, b in
      a.element.path == b.element.path ? a.offset < b.offset : a.element.path < b.element.path
    }
    self.changes = []
    var index = 0
    while index < sorted.count {
      // All changes at the path or below follow it without a gap.
      let top = sorted[index].element
      var end = index + 1
      while end < sorted.count, top.path.isPrefix(of: sorted[end].element.path) { end += 1 }
      self.changes.append(Self.merged(Array(sorted[index..<end]), at: top))
      index = end
    }
  }

  /// - Parameters:
  ///   - changes: in the order of their paths, none of which is above another.
  ///   - isReplacedKnown: whether they say what they have replaced.
  package init(disjoint changes: [Change], isReplacedKnown: Bool = true) {
    self.changes = changes
    self.isReplacedKnown = isReplacedKnown
  }

  /// One change in place of those at `top`'s path and below it.
  private static func merged(_ group: [(offset: Int, element: Change)], at top: Change) -> Change {
    guard group.count > 1 else { return top }
    var result = top
    let ordered = group.sorted { $0.offset < $1.offset }
    let first = ordered.firstIndex { $0.element.path == top.path } ?? 0
    // What was replaced at the path already had the earlier changes below it.
    for (_, change) in ordered[..<first].reversed() {
      result.replaced.graft(change.replaced, at: change.path.dropFirst(top.path.count))
    }
    for (_, change) in ordered[first...] {
      if change.path == top.path {
        result.new = change.new
      } else {
        result.new.graft(change.new, at: change.path.dropFirst(top.path.count))
      }
    }
    return result
  }

  /// What the commit changes at `place`; nil for nothing.
  package func change(at place: Path) -> PlaceChange? {
    var parts: [(path: Path, node: Node)] = []
    for change in changes {
      if let relative = change.path.relative(to: place) {
        if relative.isRoot {
          return .put(.root, change.new)
        }
        parts.append((relative, change.new))
      } else if let relative = place.relative(to: change.path) {
        let new = change.new.node(at: relative)
        let isSame = isReplacedKnown && new == change.replaced.node(at: relative)
        return isSame ? nil : .put(.root, new)
      }
    }
    return PlaceChange(parts)
  }

  /// Brings a node up to date that was at `place` before the commit.
  package func apply(to node: inout Node, at place: Path) {
    for change in changes {
      if let relative = change.path.relative(to: place) {
        node.graft(change.new, at: relative)
      } else if let relative = place.relative(to: change.path) {
        node = change.new.node(at: relative)
      }
    }
  }
}

extension PlaceChange {
  /// - Parameter parts: the new nodes below the place, none at it.
  package init?(_ parts: [(path: Path, node: Node)]) {
    guard let first = parts.first else { return nil }
    guard parts.count > 1 else {
      self = .put(first.path, first.node)
      return
    }
    var common = first.path.parent ?? .root
    for (path, _) in parts.dropFirst() {
      while !common.isPrefix(of: path) { common = common.parent ?? .root }
    }
    self = .patch(common, parts.map { ($0.path.dropFirst(common.count), $0.node) })
  }
}
