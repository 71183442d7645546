/// What is left of a tree if some of its chunks are lost.
package struct PartialTree: @unchecked Sendable {  // See `Page`.
  /// Children that are lost.
  package struct Hole: Hashable, Sendable, CustomStringConvertible {
    /// The location whose children are lost.
    package var path: Path
    /// The first of the lost children is not before this key; nil if there is no such bound.
    package var first: Key?
    /// The lost children are before this key; nil if there is no such bound.
    package var end: Key?
    /// How many children of the location are lost, and what is below them; nil if that is not known. With 0 the value of
    /// the location itself is lost, which has no children, or a long priority.
    package var childCount: Int?

    package var description: String {
      if childCount == nil, first == nil, end == nil { return "what was at \(path)" }
      if childCount == 0 { return "the value of \(path)" }
      let count = childCount.map { "\($0) " } ?? ""
      let children = "\(count)\(childCount == 1 ? "child" : "children") of \(path)"
      return switch (first, end) {
      case (nil, nil): children
      case (let first?, nil): "\(children), from '\(first)' on"
      case (nil, let end?): "\(children), before '\(end)'"
      case (let first?, let end?): "\(children), from '\(first)' to before '\(end)'"
      }
    }

    /// What is in both holes; nil if nothing is. How many children that are may not be known.
    package func intersection(_ other: Self) -> Self? {
      if path.count < other.path.count { return concerns(other.path) ? other : nil }
      if path.count > other.path.count { return other.concerns(path) ? self : nil }
      guard path == other.path else { return nil }
      let first = [first, other.first].compactMap { $0 }.max()
      let end = [end, other.end].compactMap { $0 }.min()
      if let first, let end, first >= end { return nil }
      for hole in [self, other] where (hole.first, hole.end) == (first, end) { return hole }
      return Self(path: path, first: first, end: end, childCount: nil)
    }

    /// Whether something of what is at a location may be lost.
    package func concerns(_ location: Path) -> Bool {
      guard location.count > path.count else { return location.isPrefix(of: path) }
      guard path.isPrefix(of: location) else { return false }
      var keys = location.keys.makeIterator()
      for _ in 0..<path.count { _ = keys.next() }
      guard let key = keys.next() else { return true }
      return first.map { key >= $0 } ?? true && end.map { key < $0 } ?? true
    }
  }

  /// Children in a chunk that no way leads to from the top.
  package struct Orphan: Sendable {
    /// The number of the chunk among those of the tree.
    package var chunk: Int
    /// They are children of one location, which is not known; a leaf whose key is not known either.
    package var node: Node
  }

  /// The tree, without what is lost.
  package private(set) var root = Node.empty
  package private(set) var holes: [Hole] = []
  package private(set) var orphans: [Orphan] = []

  /// The references whose pages are lost, by the places where they should be.
  private var lost: [UnsafeMutablePointer<Page?>: PageReference] = [:]
  /// The pages that have a hole, or have one below them.
  private var broken: Set<ObjectIdentifier> = []

  /// - Parameter chunks: in order, decoded without a source; nil for those that are lost. The last one has the top of
  ///   the tree.
  /// - Complexity: O(pages), and for the pages with holes O(children).
  package init(_ chunks: [ChunkPages?]) {
    var roots = chunks.map { $0?.roots.map(Optional.some) ?? [] }
    for chunk in chunks {
      for entry in chunk?.open ?? [] {
        let (number, place) = (Int(entry.reference.chunk), entry.reference.root)
        if number < roots.count, place < roots[number].count,
          let root = roots[number][place], root.matches(entry.reference)
        {
          roots[number][place] = nil
          entry.slot.pointee = root.page
        } else {
          lost[entry.slot] = entry.reference
        }
      }
    }
    if let last = chunks.last, let top = last, let page = top.roots.first?.page,
      top.roots.count == 1
    {
      roots[roots.count - 1] = []
      root =
        note(page) ? node(page, priority: nil, at: .root) ?? .empty : (try? top.tree()) ?? .empty
    } else if !chunks.isEmpty {
      holes.append(Hole(path: .root, first: nil, end: nil, childCount: nil))
    }
    let found = holes
    for (number, roots) in roots.enumerated() {
      for case let root? in roots {
        note(root.page)
        guard let rest = node(root.page, priority: nil, at: .root) else { continue }
        orphans.append(Orphan(chunk: number, node: rest))
      }
    }
    holes = found
    lost = [:]
    broken = []
  }

  /// Notes the pages that have a hole.
  ///
  /// - Returns: whether this one has, or has one below it.
  @discardableResult
  private mutating func note(_ page: Page) -> Bool {
    withExtendedLifetime(page) {
      let access = page.unresolved
      guard access.hasReferences else { return false }
      var isBroken = false
      for index in 0..<access.count where access.kind == .inner || access.refers(index) {
        if let child = access.reference(index).pointee {
          if note(child) { isBroken = true }
        } else {
          isBroken = true
        }
      }
      if isBroken { broken.insert(ObjectIdentifier(page)) }
      return isBroken
    }
  }

  /// The node of a branch's root page or of a box; nil if nothing of it is left.
  private mutating func node(_ page: Page, priority: Scalar?, at path: Path) -> Node? {
    guard broken.contains(ObjectIdentifier(page)) else {
      return page.kind == .box ? page.unboxed : Node(content: .page(page), priority: priority)
    }
    return withExtendedLifetime(page) {
      let access = page.unresolved
      if access.kind == .box {
        var address = access.valueStart(0)
        let priority = Pages.readPriority(&address)
        guard let branch = access.reference(0).pointee else {
          addHole(access.reference(0), at: path)
          return nil
        }
        return node(branch, priority: priority, at: path)
      }
      var builder = NodeBuilder()
      let holeCount = holes.count
      collect(access, at: path, (nil, nil), into: &builder)
      let node = builder.finish(priority: priority)
      guard node.isEmpty else { return node }
      // Without children there is no place for the priority: it is lost, too.
      if priority != nil { joinHoles(from: holeCount, at: path) }
      return nil
    }
  }

  /// Appends the children of a page that are left.
  private mutating func collect(
    _ page: PageAccess, at path: Path, _ bounds: (first: Key?, end: Key?),
    into builder: inout NodeBuilder
  ) {
    for index in 0..<page.count {
      if page.kind == .inner {
        let first = index == 0 ? bounds.first : page.bound(index)
        let end = index + 1 < page.count ? page.bound(index + 1) : bounds.end
        if let child = page.reference(index).pointee {
          withExtendedLifetime(child) {
            collect(child.unresolved, at: path, (first, end), into: &builder)
          }
        } else {
          addHole(page.reference(index), at: path, first, end)
        }
        continue
      }
      let key = page.keyValue(index)
      guard page.refers(index) else {
        builder.append(key, page.node(index))
        continue
      }
      let path = path.appending(key)
      guard let child = page.reference(index).pointee else {
        addHole(page.reference(index), at: path)
        continue
      }
      var address = page.valueStart(index)
      let priority = Pages.readPriority(&address)
      if let node = node(child, priority: priority, at: path) { builder.append(key, node) }
    }
  }

  /// Makes one hole of those from an index on, which are all that was at a location.
  private mutating func joinHoles(from index: Int, at path: Path) {
    let inside = holes[index...]
    let isCounted = inside.allSatisfy { $0.path == path && $0.childCount != nil }
    let count = isCounted ? inside.reduce(0) { $0 + ($1.childCount ?? 0) } : nil
    holes.removeSubrange(index...)
    holes.append(Hole(path: path, first: nil, end: nil, childCount: count))
  }

  private mutating func addHole(
    _ slot: UnsafeMutablePointer<Page?>, at path: Path, _ first: Key? = nil, _ end: Key? = nil
  ) {
    holes.append(Hole(path: path, first: first, end: end, childCount: lost[slot]?.total))
  }
}

extension PageAccess {
  /// The lower bound of an inner page's entry; nil if it is no legal key.
  fileprivate func bound(_ index: Int) -> Key? {
    let key = key(index)
    return Key(orderedBytes: UnsafeRawBufferPointer(start: key.start, count: key.count))
  }
}
