import DendroTestSupport
import DendroTree
import Testing

@Suite("The counted index of positions")
struct PositionIndexTests {
  private static func position(_ number: Int) -> PackedPosition {
    guard let key = try? Key("k") else { preconditionFailure("k is a key") }
    return PackedPosition(.scalar(.integer(Int64(number))), key)
  }

  private static func index(
    _ numbers: some Sequence<Int>, tally: ComparisonTally = ComparisonTally()
  ) -> PositionIndex {
    PositionIndex(ascending: numbers.map(position), tally: tally)
  }

  private static func content(_ index: PositionIndex) -> [PackedPosition] {
    var content: [PackedPosition] = []
    index.forEach(in: 0..<index.count) {
      content.append($0)
      return true
    }
    return content
  }

  @Test("like a sorted array, through growth and decline", arguments: 0..<12)
  func model(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var model = Set((0..<random.below(3_000)).map { _ in random.below(4_000) }).sorted()
    var index = Self.index(model)
    var held: (index: PositionIndex, model: [Int])?
    for step in 0..<2_000 {
      // Mostly insertions, then mostly removals, which empty it; in between in one narrow place.
      let grows = step / 500 % 2 == 0 ? !random.oneIn(5) : random.oneIn(5)
      let number = step % 1_000 < 250 ? random.below(60) : random.below(4_000)
      let place = model.firstIndex { $0 >= number } ?? model.count
      if grows, place == model.count || model[place] != number {
        index.insert(Self.position(number))
        model.insert(number, at: place)
      } else if !model.isEmpty {
        let place = min(place, model.count - 1)
        index.remove(Self.position(model.remove(at: place)))
      }
      let probe = random.below(4_100)
      let rank = random.below(max(model.count, 1))
      let isRight =
        index.count == model.count
        && index.rank(of: Self.position(probe)) == model.firstIndex { $0 >= probe } ?? model.count
        && (model.isEmpty || index[rank] == Self.position(model[rank]))
      if !isRight { Issue.record("seed \(seed), step \(step)") }
      if step % 50 == 0 {
        #expect(index.problem == nil, "seed \(seed), step \(step)")
        #expect(Self.content(index) == model.map(Self.position), "seed \(seed), step \(step)")
        if let held {
          #expect(Self.content(held.index) == held.model.map(Self.position), "copies stay")
        }
        held = random.oneIn(2) ? (index, model) : nil
      }
      if step % 20 == 0 {
        let low = random.below(model.count + 1)
        let ranks = low..<low + random.below(model.count - low + 1)
        let limit = random.below(100) + 1
        var some: [PackedPosition] = []
        index.forEach(in: ranks) {
          some.append($0)
          return some.count < limit
        }
        #expect(some == model[ranks].prefix(limit).map(Self.position), "seed \(seed), step \(step)")
      }
    }
    while let last = model.popLast() { index.remove(Self.position(last)) }
    #expect(index.count == 0 && index.problem == nil)
  }

  @Test("three pages high and back to nothing, in any order of removal", arguments: 0..<3)
  func height(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var model = Array(0..<9_000)
    var index = PositionIndex()
    for number in model.shuffled(using: &random) { index.insert(Self.position(number)) }
    while !model.isEmpty {
      // From both ends and from random places.
      let place =
        switch (seed, random.below(3)) {
        case (0, _): 0
        case (1, _): model.count - 1
        default: random.below(model.count)
        }
      index.remove(Self.position(model.remove(at: place)))
      if model.count % 500 == 0 {
        #expect(index.problem == nil && index.count == model.count, "seed \(seed)")
        #expect(Self.content(index) == model.map(Self.position), "seed \(seed)")
      }
    }
  }

  /// 2304 positions fill two inner pages of 48 leaves: one is emptied beside one that it could join.
  @Test("made at once and emptied from an end", arguments: [2_304, 50_000], [true, false])
  func emptied(count: Int, fromBelow: Bool) {
    var model = Array(0..<count)[...]
    var index = Self.index(model)
    while let number = fromBelow ? model.popFirst() : model.popLast() {
      index.remove(Self.position(number))
      guard model.count % 500 == 0 || (1_100...1_200).contains(model.count) else { continue }
      #expect(index.problem == nil && index.count == model.count, "\(model.count) left")
    }
  }

  @Test(
    "finding, inserting and removing compare O(log n) times", arguments: [100, 10_000, 200_000])
  func cost(count: Int) {
    let tally = ComparisonTally()
    var index = Self.index((0..<count).map { $0 * 2 }, tally: tally)
    #expect(tally.count == 0, "sorted positions are taken as they are")
    let doublings = Int.bitWidth - count.leadingZeroBitCount
    for number in [1, count | 1, count * 2 - 1] {
      let position = Self.position(number)
      for operation in [{ index.insert(position) }, { index.remove(position) }] {
        let before = tally.count
        operation()
        #expect(tally.count - before <= doublings + 8)
      }
      let before = tally.count
      _ = index.rank(of: position)
      #expect(tally.count - before <= doublings + 8)
    }
  }
}
