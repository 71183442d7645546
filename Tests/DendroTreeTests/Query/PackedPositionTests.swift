import DendroTestSupport
import DendroTree
import Testing

@Suite("Packed positions")
struct PackedPositionTests {
  /// Values around every border of their packed form.
  private static let values: [SortValue] = {
    var values: [SortValue] = [.none, .branch, .scalar(.bool(false)), .scalar(.bool(true))]
    let doubles: [Double] = [
      0, -0.0, 1, -1, 0.5, -0.5, .leastNonzeroMagnitude, -.leastNonzeroMagnitude,
      .greatestFiniteMagnitude, -.greatestFiniteMagnitude, 0x1p53, 0x1p53 + 2, -0x1p53, 0x1p62,
      0x1p63, -0x1p63, 0x1p63 - 1024, 0x1p64, 1e300, -1e300,
    ]
    values += doubles.map { .scalar(.double($0)) }
    let integers: [Int64] = [
      0, 1, -1, 255, 256, 1 << 53 - 1, 1 << 53, 1 << 53 + 1, 1 << 53 + 2, -(1 << 53) - 1, 1 << 62,
      1 << 62 + 1, 1 << 62 - 1, 1 << 62 + 255, 1 << 62 + 256, 1 << 62 + 257, .max, .max - 1,
      .max - 511, .max - 512, .max - 513, .max - 1024, .min, .min + 1, .min + 512, .min + 1025,
    ]
    values += integers.map { .scalar(.integer($0)) }
    let strings = [
      "", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\0\0", "a\0b", "a\u{1}", "aa", "b", "é",
      "e\u{301}", "\u{D7FF}", "\u{E000}", "\u{FFFF}", "\u{10000}", "\u{10FFFF}",
      String(repeating: "a", count: 8), String(repeating: "a", count: 26),
      String(repeating: "a", count: 27), String(repeating: "a", count: 28),
      String(repeating: "a", count: 28) + "b", String(repeating: "\0", count: 40),
      String(repeating: "a", count: 1_000), String(repeating: "a", count: 1_000) + "\u{10000}",
    ]
    return values + strings.map { .scalar(.string($0)) }
  }()

  private static func keys() throws -> [Key] {
    try ["0", "1", "-1", "10", "01", "a", "aa", "b", "é", "\u{FFFF}", "\u{10FFFF}"].map {
      try Key($0)
    }
      + [Key(String(repeating: "k", count: 20)), Key(String(repeating: "k", count: 21))]
      + [Key(String(repeating: "k", count: 768))]
  }

  @Test("are in the order of positions, equal if these are, and have their keys")
  func order() throws {
    let keys = try Self.keys()
    var positions: [(plain: SortPosition, packed: PackedPosition)] = []
    for (number, value) in Self.values.enumerated() {
      for key in [keys[number % keys.count], keys[(number + 5) % keys.count], keys[0]] {
        positions.append((SortPosition(value: value, key: key), PackedPosition(value, key)))
      }
    }
    for a in positions {
      #expect(a.packed.key == a.plain.key, "\(a.plain)")
      for b in positions {
        if (a.packed < b.packed) != (a.plain < b.plain) {
          Issue.record("\(a.plain) < \(b.plain)")
        }
        if (a.packed == b.packed) != (a.plain == b.plain) {
          Issue.record("\(a.plain) == \(b.plain)")
        }
      }
    }
  }

  private static func value(_ random: inout SeededGenerator) -> SortValue {
    if random.oneIn(3) { return values[random.below(values.count)] }
    let bits = random.next() >> UInt64(random.below(64))
    switch random.below(4) {
    case 0: return .scalar(.integer(Int64(bitPattern: bits) * (random.oneIn(2) ? 1 : -1)))
    case 1:
      let double = Double(bitPattern: random.next())
      return .scalar(.double(double.isFinite ? double : 0))
    case 2: return .scalar(.double(Double(Int64(bitPattern: bits))))
    default:
      let letters = ["\0", "a", "b", "\u{E000}", "\u{10000}", "\u{1}"]
      return .scalar(
        .string((0..<random.below(40)).map { _ in letters[random.below(6)] }.joined()))
    }
  }

  @Test("as positions and as bounds of ranges, like the plain ones", arguments: 0..<8)
  func model(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys = try Self.keys() + [Key(bound: ""), Key(bound: "\u{1}b"), Key(bound: "a/b")]
    for step in 0..<3_000 {
      let (a, b) = (Self.value(&random), random.oneIn(8) ? .none : Self.value(&random))
      let (x, y) = (keys[random.below(keys.count - 3)], keys[random.below(keys.count)])
      let plain = SortPosition(value: a, key: x)
      let packed = PackedPosition(a, x)
      let other = (SortPosition(value: b, key: y), PackedPosition(b, y))
      #expect((packed < other.1) == (plain < other.0), "seed \(seed), step \(step)")
      var parameters = QueryParameters()
      parameters.start = random.oneIn(4) ? nil : bound(random.oneIn(3) ? a : b, y, &random)
      parameters.end = random.oneIn(4) ? nil : bound(random.oneIn(3) ? a : b, y, &random)
      let range = PackedPosition.Range(parameters)
      #expect(range.hasStart == (parameters.start != nil))
      #expect(range.hasEnd == (parameters.end != nil))
      #expect(
        range.isBeforeStart(packed) == parameters.isBeforeStart(plain)
          && range.isAfterEnd(packed) == parameters.isAfterEnd(plain),
        "seed \(seed), step \(step): \(plain) in \(parameters)")
    }
  }

  private func bound(
    _ value: SortValue, _ key: Key, _ random: inout SeededGenerator
  ) -> QueryParameters.Bound {
    .init(value: value, key: random.oneIn(2) ? nil : key, isExclusive: random.oneIn(2))
  }

  @Test("of the children of a node, and of those that differ between two", arguments: 0..<6)
  func children(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let orders: [SortOrder] = [
      .key, .value, .priority, SortOrderTests.child("a"), SortOrderTests.child("a/b"),
    ]
    var old = Node.empty
    for step in 0..<30 {
      var new = old
      for _ in 0..<random.below(40) {
        let key = try Key("k\(random.below(60))")
        let below = try [Path.root, Path(parsing: "a"), Path(parsing: "a/b"), Path(parsing: "c")]
        let path = Path(keys: [key]).appending(below[random.below(4)])
        let scalar = Scalar.integer(Int64(random.below(9)))
        switch random.below(4) {
        case 0: _ = new.apply(.remove(path))
        case 1: _ = new.apply(.setPriority(path, scalar))
        default: _ = new.apply(.set(path, Node(scalar)))
        }
      }
      for order in orders {
        var expected: [PackedPosition] = []
        new.forEachChild { expected.append(order.packedPosition(of: $0, $1)) }
        #expect(new.packedPositions(in: order) == expected, "seed \(seed), step \(step)")
        // What is not reported stands where it stood.
        var positions = Set(old.packedPositions(in: order).map(\.key.string))
        var left = old.packedPositions(in: order)
        let isComplete = Node.forEachShift(from: old, to: new, in: order) { before, after in
          if let before { left.removeAll { $0 == before } }
          if let after { left.append(after) }
          return true
        }
        #expect(isComplete)
        #expect(left.sorted() == expected.sorted(), "seed \(seed), step \(step), \(order)")
        positions.formUnion(expected.map(\.key.string))
        for key in try positions.map({ try Key($0) }) {
          let child = new.child(key)
          #expect(
            new.packedPosition(ofChild: key, in: order)
              == (child.isEmpty ? nil : order.packedPosition(of: key, child)))
        }
      }
      old = new
    }
  }
}
