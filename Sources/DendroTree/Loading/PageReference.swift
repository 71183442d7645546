/// What a page says about a page below it that is in another chunk.
struct PageReference: Equatable {
  var shape: PageShape
  /// The number of children in the page or below it, as in its header.
  var total: Int
  /// Whether any of these children has a priority; of a box, whether its node has one.
  var hasPriorities: Bool
  var chunk: UInt32
  /// The page's place among the pages of its chunk to which no page of the chunk refers.
  var root: Int
}

/// What the page above must know of a page before it can refer to it.
struct PageShape: Equatable {
  /// More levels than any branch has: an inner page gets to `Page.innerSplitCountMin` entries before it is split,
  /// so that each level takes at least twice as many insertions as the one below it.
  static let levelMax = 40

  var kind: PageHeader.Kind
  /// The number of pages between an inner page and a leaf page below it, plus 1; 0 for other pages. It is the
  /// same on all ways down.
  var level = 0
  /// The number of keys on the longest path in the page or below it, at most `Limits.depth`.
  var depth = 0

  init(_ kind: PageHeader.Kind, level: Int = 0, depth: Int = 0) {
    self.kind = kind
    self.level = level
    self.depth = depth
  }

  /// Makes the shape from its code in a chunk; nil if no page has it.
  init?(code: Int, depth: Int) {
    guard code >= 1, code <= 2 + Self.levelMax, depth <= Limits.depth else { return nil }
    self.init(code == 1 ? .box : code == 2 ? .leaf : .inner, level: max(0, code - 2), depth: depth)
  }

  /// 1 for a box, 2 for a leaf page, 2 + level for an inner page.
  var code: Int { kind == .box ? 1 : 2 + level }
}
