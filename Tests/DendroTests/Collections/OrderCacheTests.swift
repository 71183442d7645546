import Dendro
import DendroTestSupport
import DendroTree
import Foundation
import Testing

/// Orders that repeated queries keep.
@Suite("Orders kept for queries")
struct OrderCacheTests {
  static let childCount = 2_000

  private func fill(_ posts: DatabaseReference, _ random: inout SeededGenerator) async throws {
    var values: [String: Any] = [:]
    for number in 0..<Self.childCount { values[key(number)] = value(&random) }
    try await posts.setValue(values)
  }

  private func key(_ number: Int) -> String { "k\(100_000 + number)" }

  private func value(_ random: inout SeededGenerator) -> Any {
    switch random.below(12) {
    case 0: return ["b": 1, ".priority": random.below(3)]
    case 1: return ["a": "s", "c": [String(random.below(9)): true]]
    case 2: return random.below(5)
    case 3: return ["b": ["a": random.below(4)]]
    default: return ["a": random.below(500), "title": "post \(random.below(1_000))"]
    }
  }

  @Test(
    "a query shows the same whether its order is kept or not",
    arguments: 0..<(Scale.share < 1 ? 1 : 4))
  func sameAnswers(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let database = Database.inMemory()
    let posts = database.reference(withPath: "posts")
    try await fill(posts, &random)
    for _ in 0..<60 {
      switch random.below(8) {
      case 0: try await posts.child("new-\(random.below(100))").setValue(value(&random))
      case 1: try await posts.child(key(random.below(Self.childCount))).removeValue()
      case 2: try await fill(posts, &random)
      default:
        for _ in 0...random.below(20) {
          try await posts.child(key(random.below(Self.childCount))).setValue(value(&random))
        }
      }
      let all = try await posts.getData()
      for _ in 0..<3 {
        let drawn = RandomQuery(&random, keys: [key(3), key(900), key(1_999), "new-1"])
        let shown = try await drawn.query(of: posts).getData()
        let expected = all.node.filtered(by: drawn.parameters)
        #expect(shown.node == expected, "seed \(seed), \(drawn.parameters)")
        let keys = expected.children(in: drawn.parameters.order).map { $0.key.string }
        #expect(shown.map(\.key) == keys, "seed \(seed), \(drawn.parameters)")
      }
    }
    #expect(database.orderCache.orderCount > 0)
  }

  @Test("the second read keeps the order, and later ones compare only what changed")
  func comparesWhatChanged() async throws {
    var random = SeededGenerator(seed: 1)
    let database = Database.inMemory()
    let posts = database.reference(withPath: "posts")
    try await fill(posts, &random)
    let top = posts.queryOrdered(byChild: "a").queryLimited(toLast: 10)
    let cache = database.orderCache
    _ = try await top.getData()
    #expect(cache.orderCount == 0 && cache.tally.count == 0)
    _ = try await top.getData()
    #expect(cache.orderCount == 1 && cache.tally.count > Self.childCount)
    let before = cache.tally.count
    _ = try await top.getData()
    #expect(cache.tally.count - before <= 100)
    try await posts.child(key(7)).child("a").setValue("z")
    #expect(try await top.getData().map(\.key).last == key(7))
    #expect(cache.tally.count - before <= 300)
    // Another range of the same order.
    _ = try await posts.queryOrdered(byChild: "a").queryEqual(toValue: 4).getData()
    #expect(cache.orderCount == 1 && cache.tally.count - before <= 400)
  }

  @Test(
    "the same queries again, while what they show changes and what they do not",
    arguments: 0..<(Scale.share < 1 ? 2 : 6))
  func sameQueries(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let database = Database.inMemory()
    let posts = database.reference(withPath: "posts")
    try await fill(posts, &random)
    var drawn: [RandomQuery] = []
    let order = SortOrder.child(try Path(parsing: "a"))
    while drawn.count < 6 {
      let query = RandomQuery(&random, keys: [key(3), key(900)])
      if query.parameters.order == order, !query.parameters.showsAll { drawn.append(query) }
    }
    // One more than are kept is asked for with some seeds. A listener's order is shared with others.
    let askedCount = 4 + Int(seed % 3)
    let listened = drawn[0].query(of: posts)
    let handle = seed < 3 ? nil : listened.observe(.childAdded) { _ in }
    for step in 0..<150 {
      for _ in 0..<random.below(3) {
        let number = random.below(Self.childCount)
        switch random.below(12) {
        case 0: try await posts.child(key(number)).removeValue()
        case 1: try await posts.child("new-\(random.below(50))").setValue(value(&random))
        case 2: try await posts.child(key(number)).setPriority(random.below(3))
        case 3: try await fill(posts, &random)
        case 4, 5: try await posts.child(key(number)).child("title").setValue("post \(step)")
        default: try await posts.child(key(number)).child("a").setValue(random.below(520))
        }
      }
      let all = try await posts.getData()
      let query = drawn[random.below(askedCount)]
      let shown = try await query.query(of: posts).getData()
      let expected = all.node.filtered(by: query.parameters)
      #expect(shown.node == expected, "seed \(seed), step \(step), \(query.parameters)")
      let keys = expected.children(in: query.parameters.order).map { $0.key.string }
      #expect(shown.map(\.key) == keys, "seed \(seed), step \(step)")
      #expect(
        try shown.allSatisfy { $0.node == all.node.child(try Key($0.key)) }, "seed \(seed)")
    }
    if let handle { listened.removeObserver(withHandle: handle) }
  }

  @Test("a query that shows the same as before compares only what changed beside it")
  func keptResult() async throws {
    let database = Database.inMemory()
    let posts = database.reference(withPath: "posts")
    var values: [String: Any] = [:]
    for number in 0..<Self.childCount { values[key(number)] = ["a": number] }
    try await posts.setValue(values)
    let top = posts.queryOrdered(byChild: "a").queryLimited(toLast: 100)
    for _ in 0..<3 { _ = try await top.getData() }
    let tally = database.orderCache.tally
    let before = tally.count
    for _ in 0..<10 { _ = try await top.getData() }
    #expect(tally.count == before, "nothing changed")
    for number in 0..<10 { try await posts.child(key(number)).child("a").setValue(number + 500) }
    let keys = try await top.getData().map(\.key)
    #expect(keys == (Self.childCount - 100..<Self.childCount).map(key))
    // Ten positions removed and ten inserted, at 11 comparisons and a few.
    #expect((20..<400).contains(tally.count - before))
  }

  @Test("the order of a listener is used, and none is kept")
  func listenersOrder() async throws {
    var random = SeededGenerator(seed: 2)
    let database = Database.inMemory()
    let posts = database.reference(withPath: "posts")
    try await fill(posts, &random)
    let top = posts.queryOrdered(byChild: "a").queryLimited(toLast: 10)
    let handle = top.observe(.value) { _ in }
    await settle(database)
    let path = try Path(parsing: "posts")
    let before = database.comparisonCount(at: path)
    for _ in 0..<3 { _ = try await top.getData() }
    #expect(database.orderCache.orderCount == 0 && database.orderCache.tally.count == 0)
    #expect(database.comparisonCount(at: path) - before <= 300)
    top.removeObserver(withHandle: handle)
  }

  @Test("no order is kept if the option says so, nor one that is longer than it says")
  func turnedOff() async throws {
    for limit in [0, -1, Self.childCount - 1] {
      var random = SeededGenerator(seed: 3)
      var options = DatabaseOptions()
      options.queryOrderLimit = limit
      let database = Database.inMemory(options: options)
      let posts = database.reference(withPath: "posts")
      try await fill(posts, &random)
      let top = posts.queryOrdered(byChild: "a").queryLimited(toLast: 10)
      for _ in 0..<3 { _ = try await top.getData() }
      #expect(database.orderCache.orderCount == 0)
    }
  }

  @Test(
    "an order by long strings counts their bytes, when it is made and when they are written later")
  func longStrings() async throws {
    var options = DatabaseOptions()
    options.queryOrderLimit = 3 * Self.childCount
    let database = Database.inMemory(options: options)
    let posts = database.reference(withPath: "posts")
    let cache = database.orderCache
    func fill(_ a: String) async throws {
      var values: [String: Any] = [:]
      for number in 0..<Self.childCount { values[key(number)] = ["a": key(number) + a, "b": "x"] }
      try await posts.setValue(values)
    }
    func read(_ child: String) async throws -> [String] {
      var keys: [String] = []
      for _ in 0..<3 {
        keys = try await posts.queryOrdered(byChild: child).queryLimited(toLast: 2).getData()
          .map(\.key)
      }
      return keys
    }
    // Two children for each.
    try await fill(String(repeating: "y", count: 100))
    #expect(try await read("a") == [key(1_998), key(1_999)])
    #expect(cache.orderCount == 1)
    // Eleven: dropped, and not made again while it is asked for.
    try await fill(String(repeating: "y", count: 1_000))
    #expect(try await read("a") == [key(1_998), key(1_999)])
    #expect(cache.orderCount == 0)
    let comparisonCount = cache.tally.count
    #expect(try await read("a") == [key(1_998), key(1_999)])
    #expect(cache.orderCount == 0 && cache.tally.count == comparisonCount)
    // An order by another child of the same posts is kept.
    _ = try await read("b")
    #expect(cache.orderCount == 1)
    // Too large from the beginning: it is never made.
    cache.sweep(now: .now.advanced(by: .seconds(100)))
    #expect(try await read("a") == [key(1_998), key(1_999)])
    #expect(cache.orderCount == 0)
  }

  @Test(
    "a declared order is kept from the first read on, whatever the limit, until it is taken back")
  func declared() async throws {
    var random = SeededGenerator(seed: 4)
    var options = DatabaseOptions()
    options.queryOrderLimit = 0
    let database = Database.inMemory(options: options)
    let posts = database.reference(withPath: "posts")
    try await fill(posts, &random)
    let cache = database.orderCache
    let byA = posts.queryOrdered(byChild: "a")
    let top = byA.queryLimited(toLast: 10)
    for query in [posts, posts.queryOrderedByKey().queryLimited(toLast: 10), top, byA, top] {
      query.keepSynced(true)
    }
    #expect(cache.orderCount == 1 && cache.tally.count == 0)
    let first = try await top.getData()
    let built = cache.tally.count
    #expect(built > Self.childCount)
    #expect(try await top.getData().node == first.node && cache.tally.count == built)
    #expect(cache.sweep(now: .now.advanced(by: .seconds(1_000))) == false)
    try await posts.child(key(7)).child("a").setValue("z")
    #expect(try await top.getData().map(\.key).last == key(7))
    #expect(cache.tally.count - built < 300)
    top.keepSynced(false)
    #expect(cache.orderCount == 1, "another query declares it")
    for query in [byA, byA, posts.queryOrderedByValue()] { query.keepSynced(false) }
    #expect(cache.orderCount == 0)
    #expect(try await top.getData().map(\.key).last == key(7))
  }

  @Test("an order that is kept already is declared as it is, and makes room no more")
  func declaredLater() throws {
    let cache = OrderCache(limits: .init(childCount: 100))
    let path = try Path(parsing: "a")
    var parameters = QueryParameters()
    parameters.order = .value
    for _ in 0..<2 { _ = cache.order(.value, at: path, childCount: 90) }
    let kept = cache.keptOrder(.value, at: path, childCount: 90)
    cache.declare(parameters, at: path)
    #expect(kept != nil && cache.keptOrder(.value, at: path, childCount: 1_000) === kept)
    let other = try Path(parsing: "b")
    for _ in 0..<2 { _ = cache.order(.value, at: other, childCount: 90) }
    #expect(cache.orderCount == 2)
    cache.takeBack(parameters, at: path)
    #expect(cache.orderCount == 1 && cache.keptOrder(.value, at: path, childCount: 90) == nil)
  }

  @Test("the order that was used least recently makes room")
  func leastRecentlyUsed() throws {
    let cache = OrderCache(limits: .init(childCount: 100))
    let paths = try ["a", "b", "c"].map { try Path(parsing: $0) }
    var now = ContinuousClock.now
    func ask(_ index: Int, _ childCount: Int) -> Bool {
      now = now.advanced(by: .seconds(1))
      return cache.order(.value, at: paths[index], childCount: childCount, now: now) != nil
    }
    #expect(!ask(0, 40) && ask(0, 40) && !ask(1, 50) && ask(1, 50))
    #expect(cache.orderCount == 2)
    #expect(ask(0, 41))
    #expect(!ask(2, 50) && ask(2, 50))  // Drops that of b.
    #expect(cache.orderCount == 2 && ask(0, 41) && !ask(1, 50))
    #expect(!ask(2, 101) && ask(0, 41))
    // One order that grows drops the others.
    #expect(ask(0, 100) && cache.orderCount == 1)
  }

  @Test("an order that was not used for a minute is dropped")
  func age() throws {
    let cache = OrderCache(limits: .init(childCount: 100))
    let start = ContinuousClock.now
    let path = try Path(parsing: "a")
    for second in [0, 1] {
      _ = cache.order(.value, at: path, childCount: 10, now: start.advanced(by: .seconds(second)))
    }
    #expect(cache.sweep(now: start.advanced(by: .seconds(60))) && cache.orderCount == 1)
    #expect(!cache.sweep(now: start.advanced(by: .seconds(61))) && cache.orderCount == 0)
  }
}
