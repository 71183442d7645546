import DendroTestSupport
import Testing

@testable import Dendro
@testable import DendroTree

@Suite("The schedule of transactions")
struct TransactionScheduleTests {
  private static func entry(at path: Path) -> TransactionSchedule.Entry {
    TransactionSchedule.Entry(
      TransactionJob(at: path, hasPlace: false, run: { _ in }, withdraw: { _ in }))
  }

  private static func areRelated(_ a: Path, _ b: Path) -> Bool {
    a.isPrefix(of: b) || b.isPrefix(of: a)
  }

  @Test(
    "one may run as soon as no related one before it is left, withdrawn or not, and neither earlier nor later",
    arguments: 0..<100)
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var schedule = TransactionSchedule()
    /// In the order of their starts, with the number of the one whose block starts it.
    var left: [(number: Int, path: Path, starter: Int?)] = []
    var entries: [TransactionSchedule.Entry] = []
    var ready: Set<Int> = []
    var starters: Set<Int> = []
    func mayRun(_ number: Int) -> Bool {
      guard let index = left.firstIndex(where: { $0.number == number }) else { return false }
      return !left[..<index].contains {
        Self.areRelated($0.path, left[index].path) || $0.number == left[index].starter
      }
    }
    for round in 0..<400 {
      if random.oneIn(2) || ready.isEmpty {
        var path = Path.root
        for _ in 0..<random.below(4) {
          path = path.appending(try Key(["a", "b"][random.below(2)]))
        }
        let starter = random.oneIn(4) ? ready.sorted().randomElement(using: &random) : nil
        if let starter { starters.insert(starter) }
        let number = entries.count
        entries.append(Self.entry(at: path))
        left.append((number, path, starter))
        if schedule.add(entries[number], startedBy: starter.map { entries[$0] }) {
          ready.insert(number)
        }
      } else {
        // What runs starts others, and is not taken out.
        let waiting = left.map(\.number).filter { !starters.contains($0) }
        let isWithdrawn = random.oneIn(3) && !waiting.isEmpty
        let number = try #require(
          isWithdrawn
            ? waiting.randomElement(using: &random) : ready.sorted().randomElement(using: &random))
        ready.remove(number)
        left.removeAll { $0.number == number }
        let next =
          isWithdrawn
          ? try #require(schedule.withdraw(entries[number])) : schedule.end(entries[number])
        for entry in next {
          let new = try #require(entries.firstIndex { $0 === entry })
          ready.insert(new)
        }
      }
      let expected = Set(left.map(\.number).filter(mayRun))
      #expect(ready == expected, "seed \(seed), round \(round)")
    }
    // Those that are left refer to each other until they have ended; each gets its turn.
    while let number = ready.popFirst() {
      left.removeAll { $0.number == number }
      for entry in schedule.end(entries[number]) {
        ready.insert(try #require(entries.firstIndex { $0 === entry }))
      }
    }
    #expect(left.isEmpty, "seed \(seed)")
  }

  @Test(
    "of those that wait for a thread, the one that was started first is next", arguments: 0..<20)
  func heap(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var heap = Heap<Int>(by: <)
    var model: [Int] = []
    for _ in 0..<500 {
      if random.below(5) < 3 {
        let number = random.below(1000)
        heap.insert(number)
        model.append(number)
      } else {
        model.sort()
        #expect(heap.popFirst() == (model.isEmpty ? nil : model.removeFirst()), "seed \(seed)")
      }
      #expect(heap.isEmpty == model.isEmpty)
    }
  }
}
