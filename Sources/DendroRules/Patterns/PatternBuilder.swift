/// Makes the states of a position automaton and what may follow each.
struct PatternBuilder {
  /// A part of the expression: the states that it may begin and end with.
  struct Part {
    var first: [Int] = []
    var last: [Int] = []
    var takesEmpty = true
  }

  private(set) var sets: [CharacterSet] = []
  private(set) var follow: [[Int]] = []
  private var moveCount = 0

  /// How many moves are written down, and parts built, before the expression is refused: repetitions within
  /// repetitions write the same ones many times, and those of nothing make no state.
  private static let moveCountMax = RuleLimits.patternPositions * RuleLimits.patternPositions

  mutating func build(_ node: PatternNode) throws(PatternError) -> Part {
    moveCount += 1
    guard moveCount <= Self.moveCountMax else { throw Self.tooLarge }
    switch node {
    case .empty: return Part()
    case .characters(let set):
      guard sets.count < RuleLimits.patternPositions else { throw Self.tooLarge }
      sets.append(set)
      follow.append([])
      let state = sets.count - 1
      return Part(first: [state], last: [state], takesEmpty: false)
    case .sequence(let nodes):
      var part = Part()
      for node in nodes { part = try join(part, build(node)) }
      return part
    case .choice(let nodes):
      var part = Part(takesEmpty: false)
      for node in nodes {
        let choice = try build(node)
        part.first += choice.first
        part.last += choice.last
        part.takesEmpty = part.takesEmpty || choice.takesEmpty
      }
      return part
    case .repeated(let node, let min, let max):
      return try repeated(node, min, max)
    }
  }

  private mutating func repeated(
    _ node: PatternNode, _ min: Int, _ max: Int?
  ) throws(PatternError) -> Part {
    var part = Part()
    // Each repetition has its own states; without a greatest number the last one follows itself.
    for _ in 1..<Swift.max(min, 1) { part = try join(part, build(node)) }
    guard let max else {
      var last = try build(node)
      try connect(last.last, last.first)
      if min == 0 { last.takesEmpty = true }
      return try join(part, last)
    }
    if max == 0 { return Part() }
    if min > 0 { part = try join(part, build(node)) }
    for _ in min..<max {
      var optional = try build(node)
      optional.takesEmpty = true
      part = try join(part, optional)
    }
    return part
  }

  private mutating func join(_ a: Part, _ b: Part) throws(PatternError) -> Part {
    try connect(a.last, b.first)
    return Part(
      first: a.takesEmpty ? a.first + b.first : a.first,
      last: b.takesEmpty ? a.last + b.last : b.last,
      takesEmpty: a.takesEmpty && b.takesEmpty)
  }

  private mutating func connect(_ states: [Int], _ targets: [Int]) throws(PatternError) {
    moveCount += states.count * targets.count
    guard moveCount <= Self.moveCountMax else { throw Self.tooLarge }
    for state in states { follow[state] += targets }
  }

  private static let tooLarge = PatternError(
    reason: "it has more than \(RuleLimits.patternPositions) characters, repetitions written out.")
}
