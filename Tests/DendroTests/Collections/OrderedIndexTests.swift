import Dendro
import Testing
import DendroTestSupport

@Suite("The counted index")
struct OrderedIndexTests {
  @Test("like a sorted array, through growth and decline", arguments: 0..<12)
  func model(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var model = Set((0..<random.below(3_000)).map { _ in random.below(4_000) }).sorted()
    var index = OrderedIndex(ascending: model)
    var held: (index: OrderedIndex<Int>, model: [Int])?
    for step in 0..<2_000 {
      // Mostly insertions, then mostly removals, which empty it; in between in one narrow place.
      let grows = step / 500 % 2 == 0 ? !random.oneIn(5) : random.oneIn(5)
      let element = step % 1_000 < 250 ? random.below(60) : random.below(4_000)
      let place = model.firstIndex { $0 >= element } ?? model.count
      if grows, place == model.count || model[place] != element {
        index.insert(element)
        model.insert(element, at: place)
      } else if !model.isEmpty {
        let place = min(place, model.count - 1)
        index.remove(model.remove(at: place))
      }
      let probe = random.below(4_100)
      let rank = random.below(max(model.count, 1))
      let isRight =
        index.count == model.count
        && index.count { $0 < probe } == model.firstIndex { $0 >= probe } ?? model.count
        && (model.isEmpty || index[rank] == model[rank])
      if !isRight { Issue.record("seed \(seed), step \(step)") }
      if step % 50 == 0 {
        #expect(index.problem == nil, "seed \(seed), step \(step)")
        #expect((0..<index.count).map { index[$0] } == model, "seed \(seed), step \(step)")
        if let held {
          #expect((0..<held.index.count).map { held.index[$0] } == held.model, "copies stay")
        }
        held = random.oneIn(2) ? (index, model) : nil
      }
    }
    while let last = model.popLast() { index.remove(last) }
    #expect(index.count == 0 && index.problem == nil)
  }

  @Test("three pages high and back to nothing, in any order of removal", arguments: 0..<3)
  func height(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var model = Array(0..<9_000)
    var index = OrderedIndex<Int>()
    for element in model.shuffled(using: &random) { index.insert(element) }
    while !model.isEmpty {
      // From both ends and from random places.
      let place =
        switch (seed, random.below(3)) {
        case (0, _): 0
        case (1, _): model.count - 1
        default: random.below(model.count)
        }
      index.remove(model.remove(at: place))
      if model.count % 500 == 0 {
        #expect(index.problem == nil && index.count == model.count, "seed \(seed)")
        #expect((0..<index.count).map { index[$0] } == model, "seed \(seed)")
      }
    }
  }

  /// 4608 elements fill two inner pages of 48 leaves: one is emptied beside one that it could join.
  @Test("made at once and emptied from an end", arguments: [4_608, 50_000], [true, false])
  func emptied(count: Int, fromBelow: Bool) {
    var model = Array(0..<count)[...]
    var index = OrderedIndex(ascending: Array(model))
    while let element = fromBelow ? model.popFirst() : model.popLast() {
      index.remove(element)
      guard model.count % 500 == 0 || (2_200...2_400).contains(model.count) else { continue }
      #expect(index.problem == nil && index.count == model.count, "\(model.count) left")
    }
  }

  @Test(
    "finding, inserting and removing compare O(log n) times", arguments: [100, 10_000, 200_000])
  func cost(count: Int) {
    let tally = ComparisonTally()
    var index = OrderedIndex(ascending: (0..<count).map { $0 * 2 }, tally: tally)
    #expect(tally.count == 0, "sorted elements are taken as they are")
    let doublings = Int.bitWidth - count.leadingZeroBitCount
    for element in [1, count | 1, count * 2 - 1] {
      for operation in [{ index.insert(element) }, { index.remove(element) }] {
        let before = tally.count
        operation()
        #expect(tally.count - before <= doublings + 8)
      }
      let before = tally.count
      _ = index.count { $0 < element }
      #expect(tally.count - before <= doublings + 8)
    }
  }
}
