import DendroTree

/// The children that a query shows.
struct ShownChildren {
  /// With the shown children alone.
  var node: Node
  /// In the query's order; nil if that is not known.
  var ranked: [OrderedChildren.Element]?
}

/// The children of a node in one order, and what the last queries showed of them. Part of a `SharedOrder`.
struct KeptOrder {
  private(set) var siblings: SiblingOrder
  /// What queries showed and still show, the last query first.
  private var results: [Result] = []

  private struct Result {
    var window: Window
    let shown: ShownChildren
  }

  private static var resultCountMax: Int { 4 }
  /// A longer result is not kept, so that kept ones take little memory.
  private static var shownCountMax: Int { 1_000 }

  init(_ siblings: SiblingOrder) { self.siblings = siblings }

  // MARK: Following the node

  /// Follows the node to its next state.
  ///
  /// - Parameter shifts: of all children that changed.
  mutating func advance(to node: Node, _ shifts: [Shift]) {
    siblings.advance(to: node, shifts)
    guard !results.isEmpty else { return }
    results = results.compactMap { result in
      var result = result
      return result.window.slide(shifts) ? result : nil
    }
  }

  /// Follows the node to any other state.
  ///
  /// - Complexity: O(children that the states do not share · log n).
  mutating func advance(to node: Node) { _ = advance(to: node, atMost: .max) }

  /// Follows the node to any other state, if the states do not share at most so many children.
  ///
  /// - Returns: false if more differ; then nothing was done.
  mutating func advance(to node: Node, atMost changeMax: Int) -> Bool {
    if siblings.node.isIdentical(to: node) { return true }
    if !siblings.hasIndex && results.isEmpty {
      siblings.advance(to: node, [])
      return true
    }
    var shifts: [Shift] = []
    let isComplete = Node.forEachShift(from: siblings.node, to: node, in: siblings.order) {
      shifts.append(Shift(old: $0, new: $1))
      return shifts.count <= changeMax
    }
    guard isComplete else { return false }
    advance(to: node, shifts)
    return true
  }

  // MARK: Queries

  /// What a query shows; nil if it shows most of the children.
  ///
  /// - Complexity: O(1) if the query showed the same before; else O(shown · log n).
  mutating func shown(by parameters: QueryParameters) -> ShownChildren? {
    if let kept = kept(parameters) { return kept }
    let window = Window(parameters, over: siblings)
    guard isFewer(window.ranks.count) else { return nil }
    return show(window)
  }

  /// `shown(by:)`, if the query shows few children.
  mutating func quicklyShown(by parameters: QueryParameters) -> ShownChildren? {
    if let kept = kept(parameters) { return kept }
    let window = Window(parameters, over: siblings)
    guard isFewer(window.ranks.count), window.ranks.count <= Self.shownCountMax else { return nil }
    return show(window)
  }

  /// Whether looking up so many children is faster than looking at all.
  private func isFewer(_ count: Int) -> Bool { count <= siblings.count / 4 }

  private mutating func kept(_ parameters: QueryParameters) -> ShownChildren? {
    guard let index = results.firstIndex(where: { $0.window.parameters == parameters }) else {
      return nil
    }
    if index > 0 { results.insert(results.remove(at: index), at: 0) }
    return results[0].shown
  }

  private mutating func show(_ window: Window) -> ShownChildren {
    var ranked: [OrderedChildren.Element] = []
    ranked.reserveCapacity(window.ranks.count)
    var builder = NodeBuilder()
    siblings.forEachChild(in: window.ranks) { key, child in
      ranked.append((key, child))
      builder.append(key, child)
      return true
    }
    let shown = ShownChildren(node: builder.finish(), ranked: ranked)
    if ranked.count <= Self.shownCountMax {
      if results.count == Self.resultCountMax { results.removeLast() }
      results.insert(Result(window: window, shown: shown), at: 0)
    }
    return shown
  }
}
