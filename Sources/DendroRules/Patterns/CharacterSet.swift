/// The characters that a position of a regular expression takes: Unicode scalars.
struct CharacterSet: Equatable {
  private(set) var ranges: [ClosedRange<UInt32>] = []
  var isNegated = false
  /// Whether a character also counts if it is the other case of one of these.
  var ignoresCase = false

  mutating func insert(_ scalar: UInt32) { ranges.append(scalar...scalar) }

  mutating func insert(_ range: ClosedRange<UInt32>) { ranges.append(range) }

  mutating func insert(_ set: CharacterSet) {
    guard set.isNegated else {
      ranges += set.ranges
      return
    }
    var start: UInt32 = 0
    for range in set.ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if range.lowerBound > start { ranges.append(start...range.lowerBound - 1) }
      start = max(start, range.upperBound + 1)
    }
    if start <= Self.scalarMax { ranges.append(start...Self.scalarMax) }
  }

  private static let scalarMax: UInt32 = 0x10_FFFF

  func contains(_ scalar: Unicode.Scalar) -> Bool {
    var found = hasRange(of: scalar)
    if !found, ignoresCase {
      found = scalar.otherCases.contains { hasRange(of: $0) }
    }
    return found != isNegated
  }

  /// The codes of the ASCII characters in it.
  var asciiCodes: [Int] { (0..<128).filter { contains(Unicode.Scalar(UInt8($0))) } }

  private func hasRange(of scalar: Unicode.Scalar) -> Bool {
    ranges.contains { $0.contains(scalar.value) }
  }

  // MARK: Classes

  /// The set that `\` and a letter stand for; nil if it is no class.
  static func escaped(_ letter: UInt8) -> CharacterSet? {
    switch letter {
    case UInt8(ascii: "d"): digits
    case UInt8(ascii: "w"): word
    case UInt8(ascii: "s"): space
    case UInt8(ascii: "D"): digits.negated
    case UInt8(ascii: "W"): word.negated
    case UInt8(ascii: "S"): space.negated
    default: nil
    }
  }

  /// What `.` takes: all but the ends of lines.
  static let any = CharacterSet(
    ranges: [0x0A...0x0A, 0x0D...0x0D, 0x85...0x85, 0x2028...0x2029], isNegated: true)

  private static let digits = CharacterSet(ranges: [0x30...0x39])
  private static let word = CharacterSet(
    ranges: [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
  private static let space = CharacterSet(ranges: [0x09...0x0D, 0x20...0x20])

  private var negated: CharacterSet {
    var set = self
    set.isNegated.toggle()
    return set
  }
}

extension Unicode.Scalar {
  /// The lower and the upper case, if this one is theirs in turn: `k` is the lower case of the sign of kelvin, whose upper case
  /// it is not, and so a pattern with the one does not take the other.
  fileprivate var otherCases: [Unicode.Scalar] {
    let lower = Self.single(properties.lowercaseMapping)
    let upper = Self.single(properties.uppercaseMapping)
    return [
      lower.flatMap { Self.single($0.properties.uppercaseMapping) == self ? $0 : nil },
      upper.flatMap { Self.single($0.properties.lowercaseMapping) == self ? $0 : nil },
    ].compactMap(\.self)
  }

  private static func single(_ mapping: String) -> Unicode.Scalar? {
    mapping.unicodeScalars.count == 1 ? mapping.unicodeScalars.first : nil
  }
}
