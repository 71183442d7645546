/// A regular expression that is ready to run.
///
/// It is a position automaton (Glushkov, 1961): each character or class of the expression is a state, so there
/// are no empty moves, and a set of states is a few words of bits. Every character of the text is looked at
/// once, whatever the expression is. Nothing changes while it runs.
struct Pattern: Sendable {
  private let sets: [CharacterSet]
  /// The words of a set of states.
  private let width: Int
  /// The states that a match may begin with anywhere, and those at the beginning of the text alone.
  private let first: [UInt64]
  private let firstAtStart: [UInt64]
  /// The states that a match may end with anywhere, and those at the end of the text alone.
  private let last: [UInt64]
  private let lastAtEnd: [UInt64]
  /// For each state the states that may come next.
  private let follow: [UInt64]
  /// For each ASCII character the states that take it.
  private let ascii: [UInt64]
  /// Whether every text matches, or else the empty one.
  private let takesAnything: Bool
  private let takesEmpty: Bool

  /// - Throws: if the expression is none of those that rules may have.
  init(_ text: String, ignoresCase: Bool) throws(PatternError) {
    var parser = PatternParser(text, ignoresCase: ignoresCase)
    let nodes = try parser.parse()
    var builder = PatternBuilder()
    var ends = Ends()
    for (index, node) in nodes.enumerated() {
      ends.add(
        try builder.build(node), isAtStart: parser.beginsAtStart && index == 0,
        isAtEnd: parser.endsAtEnd && index == nodes.count - 1)
    }
    let width = max(1, (builder.sets.count + 63) / 64)
    sets = builder.sets
    self.width = width
    first = Self.bits(ends.first, width)
    firstAtStart = Self.bits(ends.firstAtStart, width)
    last = Self.bits(ends.last, width)
    lastAtEnd = Self.bits(ends.lastAtEnd, width)
    takesAnything = ends.takesAnything
    takesEmpty = ends.takesEmpty
    follow = builder.follow.flatMap { Self.bits($0, width) }
    ascii = Self.table(builder.sets, width)
  }

  /// Where the alternatives begin and end.
  private struct Ends {
    var first: [Int] = []
    var firstAtStart: [Int] = []
    var last: [Int] = []
    var lastAtEnd: [Int] = []
    var takesAnything = false
    var takesEmpty = false

    mutating func add(_ part: PatternBuilder.Part, isAtStart: Bool, isAtEnd: Bool) {
      if isAtStart { firstAtStart += part.first } else { first += part.first }
      if isAtEnd { lastAtEnd += part.last } else { last += part.last }
      guard part.takesEmpty else { return }
      takesEmpty = true
      if !isAtStart || !isAtEnd { takesAnything = true }
    }
  }

  private static func table(_ sets: [CharacterSet], _ width: Int) -> [UInt64] {
    var table = [UInt64](repeating: 0, count: 128 * width)
    // A repetition has the same set many times in a row.
    var last: (set: CharacterSet, codes: [Int])?
    for (state, set) in sets.enumerated() {
      let codes = last.flatMap { $0.set == set ? $0.codes : nil } ?? set.asciiCodes
      last = (set, codes)
      for code in codes { table[code * width + state / 64] |= 1 << UInt64(state % 64) }
    }
    return table
  }

  private static func bits(_ states: [Int], _ width: Int) -> [UInt64] {
    var words = [UInt64](repeating: 0, count: width)
    for state in states { words[state / 64] |= 1 << UInt64(state % 64) }
    return words
  }

  /// The memory that it takes.
  var wordCount: Int { follow.count + ascii.count }

  /// Whether it matches anywhere in the text.
  ///
  /// - Parameter work: is reduced by the states that were looked at, and one for each character; nil is returned when
  ///   none is left.
  func matches(_ text: Text, work: inout Int) -> Bool? {
    if takesAnything { return true }
    if text.count == 0 { return takesEmpty }
    var current = [UInt64](repeating: 0, count: width)
    var next = firstAtStart
    let isAnchored = isNone(first)
    for scalar in text.scalars {
      work -= 1
      if work < 0 { return nil }
      step(&current, &next, scalar, &work)
      if intersects(next, last) { return true }
      swap(&current, &next)
      if isAnchored, isNone(current) { return false }
      for word in 0..<width { next[word] = 0 }
    }
    return intersects(current, lastAtEnd)
  }

  private func isNone(_ states: [UInt64]) -> Bool {
    for word in 0..<width where states[word] != 0 { return false }
    return true
  }

  private func intersects(_ a: [UInt64], _ b: [UInt64]) -> Bool {
    for word in 0..<width where a[word] & b[word] != 0 { return true }
    return false
  }

  /// Finds the states after a character.
  ///
  /// - Parameter next: has those that the text may begin with here and not later.
  private func step(
    _ current: inout [UInt64], _ next: inout [UInt64], _ scalar: Unicode.Scalar,
    _ work: inout Int
  ) {
    for word in 0..<width { next[word] |= first[word] }
    for word in 0..<width {
      var rest = current[word]
      while rest != 0 {
        let state = word &* 64 &+ rest.trailingZeroBitCount
        rest &= rest &- 1
        work &-= width
        for index in 0..<width { next[index] |= follow[state &* width &+ index] }
      }
    }
    if scalar.isASCII {
      let row = Int(scalar.value) &* width
      for word in 0..<width { next[word] &= ascii[row &+ word] }
    } else {
      keepTaking(scalar, &next, &work)
    }
  }

  private func keepTaking(_ scalar: Unicode.Scalar, _ states: inout [UInt64], _ work: inout Int) {
    for word in 0..<width {
      var rest = states[word]
      while rest != 0 {
        let bit = rest & (0 &- rest)
        let set = sets[word * 64 + rest.trailingZeroBitCount]
        work -= 1 + set.ranges.count
        if !set.contains(scalar) { states[word] &= ~bit }
        rest &= rest &- 1
      }
    }
  }
}
