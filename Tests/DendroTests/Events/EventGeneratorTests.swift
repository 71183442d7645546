import Dendro
import DendroTree
import DendroTestSupport
import Testing

/// The events of a location's queries as a function of its states, and what they cost.
@Suite("Events of two states")
struct EventGeneratorTests {
  private static let all: EventTypes = [.value, .added, .removed, .changed, .moved]

  // MARK: Beside the model

  @Test(
    "of long lists, as the model says, for many queries at once",
    arguments: 0..<(Scale.share < 1 ? 2 : 8))
  func model(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys = (0..<300).map { "k\($0 * 7919 % 300)" } + ["1", "02", "é", "e\u{301}"]
    var generator = EventGenerator()
    var old = try list(&random, keys, count: random.below(300))
    // Four windows are searched one after the other, more have a table.
    let queryCount = [4, 5, 9][Int(seed % 3)]
    var queries = (0..<queryCount).map { _ in RandomQuery(&random, keys: keys).parameters }
    queries[0] = QueryParameters()
    queries[1].limit = .last(1 + random.below(100))
    queries[2].limit = .first(1 + random.below(100))
    for step in 0..<40 {
      // Now and then one is removed and another added.
      if random.oneIn(8) {
        let before = queries
        queries[random.below(queryCount)] = RandomQuery(&random, keys: keys).parameters
        generator.discard(
          EventGenerator.Unneeded(
            windows: Set(before).subtracting(queries),
            orders: Set(before.map(\.order)).subtracting(queries.map(\.order))))
        for type in DataEventType.allCases {
          let first = generator.initialEvents(of: old, for: queries[3], type)
          let model = EventModel.initialEvents(of: old, queries[3], type)
          #expect(first.map { EventModel.rendered($0).line } == model.map(\.line), "seed \(seed)")
        }
      }
      let new = try changed(old, &random, keys)
      let requests = queries.map { EventGenerator.Request($0, Self.all) }
      let changedKey = old == new ? try Key(keys[0]) : Self.onlyChangedKey(old, new)
      let received = generator.events(
        from: old, to: new, changedKey: random.oneIn(4) ? nil : changedKey, for: requests)
      for (query, events) in zip(queries, received) {
        let model = EventModel.events(from: old, to: new, query)
        if events.map({ EventModel.rendered($0).line }) != model.map(\.line) {
          Issue.record("seed \(seed), step \(step), \(query): \(events) not \(model)")
        }
        if let value = events.last, value.type == .value, !query.showsAll {
          #expect(Self.isRanked(value, query.order), "seed \(seed), step \(step), \(query)")
        }
      }
      old = new
    }
  }

  /// Whether a value has its children in their order, all of them and as they are.
  private static func isRanked(_ value: Event, _ order: SortOrder) -> Bool {
    guard let ranked = value.ranked else { return false }
    let sorted = Array(value.node.children(in: order))
    return ranked.map(\.key) == sorted.map(\.key) && ranked.map(\.node) == sorted.map(\.node)
  }

  /// The key of the only child that differs; nil if more differ, or none.
  private static func onlyChangedKey(_ old: Node, _ new: Node) -> Key? {
    var keys: [Key] = []
    Node.changedChildren(from: old, to: new) { key, _, _ in keys.append(key) }
    return keys.count == 1 ? keys[0] : nil
  }

  @Test(
    "for some types they are those of all types, filtered",
    arguments: 0..<(Scale.share < 1 ? 3 : 10))
  func types(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys = (0..<30).map { "k\($0)" }
    let query = RandomQuery(&random, keys: keys).parameters
    var whole = EventGenerator()
    var parts = DataEventType.allCases.map { _ in EventGenerator() }
    var old = try list(&random, keys, count: 20)
    for step in 0..<40 {
      let new = try changed(old, &random, keys)
      let all = whole.events(from: old, to: new, for: [.init(query, Self.all)])[0]
      for (index, type) in DataEventType.allCases.enumerated() {
        let some = parts[index].events(from: old, to: new, for: [.init(query, EventTypes(type))])[0]
        #expect(
          some.map { EventModel.rendered($0).line }
            == all.filter { $0.type == type }.map { EventModel.rendered($0).line },
          "seed \(seed), step \(step), \(type)")
      }
      old = new
    }
  }

  private func leaf(_ random: inout SeededGenerator) -> Node {
    let scalar: Scalar =
      switch random.below(4) {
      case 0: .string("s\(random.below(5))")
      case 1: .double(Double(random.below(20)) / 2)
      default: .integer(Int64(random.below(30)))
      }
    let priority: Scalar? = random.oneIn(40) ? .integer(Int64(random.below(3))) : nil
    return Node(scalar, priority: priority)
  }

  private func child(_ random: inout SeededGenerator) throws -> Node {
    if random.oneIn(2) { return leaf(&random) }
    var builder = NodeBuilder()
    builder.append(try Key("a"), leaf(&random))
    if random.oneIn(3) { builder.append(try Key("c"), leaf(&random)) }
    return builder.finish()
  }

  private func list(
    _ random: inout SeededGenerator, _ keys: [String], count: Int
  ) throws -> Node {
    var builder = NodeBuilder()
    for key in keys.prefix(count) { builder.append(try Key(key), try child(&random)) }
    return builder.finish()
  }

  /// The node after a few changes of children, or, rarely, of all.
  private func changed(
    _ node: Node, _ random: inout SeededGenerator, _ keys: [String]
  ) throws -> Node {
    var node = node
    if random.oneIn(25) { node = try list(&random, keys, count: random.below(keys.count)) }
    if random.oneIn(25) { node = leaf(&random) }
    if random.oneIn(25) { node = node.settingPriority(leaf(&random).priority) }
    for _ in 0..<random.below(random.oneIn(5) ? 100 : 4) {
      let path = Path(keys: [try Key(keys[random.below(keys.count)])])
      switch random.below(5) {
      case 0, 1: _ = node.apply(.remove(path))
      case 2: _ = node.apply(.set(path.appending(try Key("a")), leaf(&random)))
      default: _ = node.apply(.set(path, try child(&random)))
      }
    }
    return node
  }

  // MARK: Cost

  /// Children with 0…99,999 below `n`, in shuffled order.
  private static func bigList(_ count: Int) throws -> Node {
    var builder = NodeBuilder()
    for number in 0..<count { builder.append(try key(number), try ranked(number * 7919 % count)) }
    return builder.finish()
  }

  private static func key(_ number: Int) throws -> Key { try Key("post-\(1_000_000 + number)") }

  private static func ranked(_ rank: Int) throws -> Node {
    var builder = NodeBuilder()
    builder.append(try Key("n"), Node(.integer(Int64(rank))))
    return builder.finish()
  }

  @Test("a write into a list of 100,000 under limitToLast(100) by child: O(log n) comparisons")
  func windowCost() throws {
    let count = 100_000
    let list = try Self.bigList(count)
    var parameters = QueryParameters()
    parameters.order = .child(try Path(parsing: "n"))
    parameters.limit = .last(100)
    var generator = EventGenerator()
    let first = generator.initialEvents(of: list, for: parameters, .childAdded)
    #expect(first.count == 100)
    // Sorted once: n · log2 n is 1.66 million, of which a sort may need a little more.
    #expect((count..<2 * 1_660_000).contains(generator.comparisonCount))
    #expect(generator.indexCount == 1)

    _ = generator.initialEvents(of: list, for: parameters, .value)
    var old = list
    var eventCount = 0
    for step in 0..<200 {
      var new = old
      // Into the window, out of it, within it, beside it, and of new children.
      let number = step * 613 % count
      let rank = [count + step, 0, count - 50, step * 17 % count][step % 4]
      _ = new.apply(
        .set(
          Path(keys: [try Self.key(step % 5 == 0 ? count + step : number)]), try Self.ranked(rank)))
      let before = generator.comparisonCount
      let events = generator.events(
        from: old, to: new, for: [.init(parameters, Self.all)])[0]
      eventCount += events.count
      // Two changes of the index, six searches in it, at 17 comparisons and a little.
      #expect(generator.comparisonCount - before < 400, "step \(step)")
      if let value = events.last { #expect(value.node.childCount == 100) }
      old = new
    }
    #expect(eventCount > 100)
  }

  @Test("equal orders are kept once, dropped with their last user, and not for plain lists")
  func indexes() throws {
    let list = try Self.bigList(1_000)
    var generator = EventGenerator()
    var windows: [EventGenerator.Request] = []
    let byChild = SortOrder.child(try Path(parsing: "n"))
    for limit in 1...5 {
      var parameters = QueryParameters()
      parameters.order = byChild
      parameters.limit = .first(limit)
      windows.append(.init(parameters, Self.all))
      _ = generator.initialEvents(of: list, for: parameters, .childAdded)
    }
    #expect(generator.indexCount == 1)

    // By priority if there is none, and by key: the tree itself is the order.
    var byKey = QueryParameters()
    byKey.order = .key
    byKey.limit = .last(10)
    var last = QueryParameters()
    last.limit = .last(10)
    for parameters in [QueryParameters(), byKey, last] {
      _ = generator.initialEvents(of: list, for: parameters, .childAdded)
    }
    #expect(generator.indexCount == 1)
    let others = [0, 1, 3, 4].map { windows[$0].parameters } + [byKey]
    generator.discard(.init(windows: Set(others), orders: [.key]))
    #expect(generator.indexCount == 1)

    // The first priority makes an index, which then finds predecessors without a scan.
    var new = list
    _ = new.apply(.setPriority(Path(keys: [try Self.key(500)]), .integer(1)))
    _ = generator.events(from: list, to: new, for: [windows[2], .init(last, Self.all)])
    #expect(generator.indexCount == 2)
    generator.discard(.init(windows: [windows[2].parameters], orders: [byChild]))
    #expect(generator.indexCount == 1)
    generator.discard(.init(windows: [last], orders: [.priority]))
    #expect(generator.indexCount == 0)
  }

  @Test("the neighbour of a child with a priority costs O(log n), also if all have one")
  func priorities() throws {
    var builder = NodeBuilder()
    for number in 0..<20_000 {
      builder.append(
        try Self.key(number), Node(.bool(true), priority: .integer(Int64(number * 7919 % 20_000))))
    }
    var old = builder.finish()
    var generator = EventGenerator()
    #expect(
      generator.initialEvents(of: old, for: QueryParameters(), .childAdded).count == 20_000)
    for step in 0..<50 {
      var new = old
      _ = new.apply(
        .setPriority(Path(keys: [try Self.key(step * 31)]), .integer(Int64(step * 401 % 20_000))))
      let before = generator.comparisonCount
      _ = generator.events(from: old, to: new, for: [.init(QueryParameters(), Self.all)])
      #expect(generator.comparisonCount - before < 200)
      old = new
    }
  }
}
