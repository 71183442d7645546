import Dendro
import DendroTree
import Foundation
import DendroTestSupport
import Testing

/// What listeners cost those who write, and each other.
@Suite("What listeners cost")
struct ListenerCostTests {
  // MARK: Elsewhere

  #if os(Linux)
    @Test(
      "a write without listeners allocates the same with 0 and with 100,000 listeners elsewhere")
    func unconcerned() async {
      // In a process of its own: the count stays on.
      await #expect(processExitsWith: .success) {
        try #require(AllocationCount.begin())
        let none = try await Self.allocationCounts(listenerCount: 0)
        let few = try await Self.allocationCounts(listenerCount: 1)
        let many = try await Self.allocationCounts(listenerCount: 100_000)
        #expect(none == few && none == many, "\(none), \(few) and \(many)")
      }
    }

    /// What a write without listeners allocates, the minimum and the median of 500.
    private static func allocationCounts(listenerCount: Int) async throws -> [Int] {
      let database = Database.inMemory()
      let root = database.reference()
      for number in 0..<listenerCount {
        root.child("elsewhere/\(number % 1_000)/\(number)").observe(.value) { _ in }
      }
      if listenerCount > 0 {
        root.child("elsewhere").queryOrdered(byChild: "n").queryLimited(toLast: 100)
          .observe(.childAdded) { _ in }
      }
      await settle(database)
      let here = root.child("here/a")
      var counts: [Int] = []
      plainly {
        // Each by itself: now and then an array of the engine's grows, which is not the listeners'.
        for number in 0..<600 {
          let count = AllocationCount.during { here.setValue(number) }
          if number >= 100 { counts.append(count) }
        }
      }
      counts.sort()
      try await database.close()
      return [counts[0], counts[250]]
    }
  #endif

  // MARK: Coming and going

  /// Ways to listen and to stop, each with the number of listeners.
  enum Way: String, CaseIterable, Sendable {
    case handlesForwards, handlesBackwards, handlesMixed, all, queries, queriesByAll, singles
    case waitingSingles, close, iterators, betweenDrains
  }

  /// The steps that coming and going takes, all in all.
  private func stepCount(_ way: Way, _ count: Int) async throws -> Int {
    let database = Database.inMemory()
    let place = database.reference(withPath: "place")
    try await place.setValue(["a": 1, "b": 2])
    let query = { (number: Int) in place.queryLimited(toFirst: UInt(number + 1)) }
    switch way {
    case .handlesForwards, .handlesBackwards, .handlesMixed:
      let handles = (0..<count).map { number in
        place.observe(number % 2 == 0 ? .value : .childAdded) { _ in }
      }
      await settle(database)
      for number in 0..<count {
        let index =
          switch way {
          case .handlesForwards: number
          case .handlesBackwards: count - 1 - number
          default: number * 7_919 % count
          }
        place.removeObserver(withHandle: handles[index])
      }
    case .all:
      for _ in 0..<count { place.observe(.value) { _ in } }
      // Half of them still wait for their first events.
      await settle(database)
      for _ in 0..<count { place.observe(.childAdded) { _ in } }
      place.removeAllObservers()
    case .queries, .queriesByAll:
      let handles = (0..<count).map { query($0).observe(.value) { _ in } }
      await settle(database)
      if way == .queries {
        for number in 0..<count { query(number).removeObserver(withHandle: handles[number]) }
      } else {
        place.removeAllObservers()
      }
    case .singles:
      for _ in 0..<count { place.observeSingleEvent(of: .value) { _ in } }
    case .waitingSingles:
      for _ in 0..<count { place.observeSingleEvent(of: .childChanged) { _ in } }
      try await place.child("a").setValue(3)
    case .close:
      for number in 0..<count { query(number % 10).observe(.value) { _ in } }
      await settle(database)
      try await database.close()
    case .iterators:
      var iterators: [DatabaseQuery.Snapshots.Iterator?] = []
      for _ in 0..<count {
        var iterator = place.snapshots.makeAsyncIterator()
        _ = try await iterator.next()
        iterators.append(iterator)
      }
      for index in iterators.indices { iterators[index] = nil }
    case .betweenDrains:
      // Each is removed after a drain, which then has to discard what it need not keep.
      let handles = (0..<count).map { query($0).observe(.value) { _ in } }
      for handle in handles {
        place.removeObserver(withHandle: handle)
        await settle(database)
      }
    }
    if way != .close {
      await settle(database)
      #expect(database.listenedCount == 0, "\(way)")
    }
    return database.listenerStepCount
  }

  @Test("coming and going is O(1) for each of any number of listeners", arguments: Way.allCases)
  func comingAndGoing(way: Way) async throws {
    let few = try await stepCount(way, 250)
    let many = try await stepCount(way, 4_000)
    #expect(few > 0 && many <= few * 16 * 3 / 2, "\(few) steps for 250, \(many) for 4,000")
  }

  // MARK: Windows

  @Test(
    "one sort for all windows in one order over 100,000 children, then O(log n) a write")
  func windows() async throws {
    let count = 100_000
    let database = Database.inMemory()
    let list = database.reference(withPath: "list")
    let path = try Path(parsing: "list")
    func key(_ number: Int) -> String { "post-\(1_000_000 + number)" }
    var children: [String: Any] = [:]
    for number in 0..<count { children[key(number)] = ["n": number * 7_919 % count] }
    try await list.setValue(children)
    let recorder = Recorder(database)
    let query = list.queryOrdered(byChild: "n")
    recorder.listen("last", query.queryLimited(toLast: 100))
    await settle(database)
    // Sorted once: n · log2 n is 1.66 million, of which a sort may need a little more.
    let sorted = database.comparisonCount(at: path)
    #expect((count..<2 * 1_660_000).contains(sorted))
    recorder.listen("first", query.queryLimited(toFirst: 100), [.childAdded, .value])
    recorder.listen("again", query.queryLimited(toLast: 100), [.value])
    await settle(database)
    #expect(database.comparisonCount(at: path) - sorted < 1_000, "sorted again")

    var eventCount = 0
    for step in 0..<100 {
      let before = database.comparisonCount(at: path)
      // Into the last window, into the first one, within it, beside both, and now and then a new child.
      let rank = [count + step, -step, count - 50, step * 17 % count][step % 4]
      try await list.child(key(step % 5 == 0 ? count + step : step * 613)).child("n").setValue(rank)
      eventCount += await recorder.take().count
      // Two changes of the index and six searches in it for either window, at 17 comparisons and a little.
      #expect(database.comparisonCount(at: path) - before < 600, "step \(step)")
    }
    #expect(eventCount > 100)
    try await database.close()
  }

  @Test("a limit in the default order, if no child has a priority, looks at what it shows")
  func defaultOrder() async throws {
    let database = Database.inMemory()
    let list = database.reference(withPath: "list")
    var children: [String: Any] = [:]
    for number in 0..<20_000 { children["post-\(100_000 + number)"] = number }
    try await list.setValue(children)
    let recorder = Recorder(database)
    recorder.listen("", list.queryLimited(toLast: 10))
    await settle(database)
    let path = try Path(parsing: "list")
    #expect(database.comparisonCount(at: path) < 1_000)
    let before = database.comparisonCount(at: path)
    try await list.child("post-200000").setValue(1)
    await settle(database)
    #expect(database.comparisonCount(at: path) - before < 600)
    try await database.close()
  }
}
