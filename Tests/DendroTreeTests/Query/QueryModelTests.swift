import DendroTree
import DendroTestSupport
import Testing

@Suite struct QueryModelTests {
  // MARK: Bounds by key that are no keys

  static let strings = [
    "", "\u{1}", "\u{1F}a", "0", "-1", "05", "5", "2147483648", " ", "#", "$", "-", "-0", "/", "a",
    "a\u{0}", "a\u{1}", "a ", "a.b", "a/b", "a\u{7f}", "ab", "é", "e\u{301}", "a\u{f8ff}",
    "\u{f8ff}",
    "\u{10ffff}", "\u{e000}", "z", String(repeating: "a", count: 22),
    String(repeating: "a", count: 23), String(repeating: "a", count: 24),
    String(repeating: "a", count: 768), String(repeating: "a", count: 769),
    String(repeating: "a", count: 768) + "/", String(repeating: "b", count: 100_000),
    String(repeating: "\u{0}", count: 30), "\u{0}",
  ]

  @Test("any string has its place among keys, and its spelling")
  func bounds() throws {
    let bounds = QueryModelTests.strings.map { Key(bound: $0) }
    for (bound, string) in zip(bounds, QueryModelTests.strings) {
      #expect(bound.string.utf8.elementsEqual(string.utf8))
      #expect(bound == Key(bound: string) && bound.hashValue == Key(bound: string).hashValue)
      if let key = try? Key(string) { #expect(bound == key) }
    }
    for (a, x) in zip(bounds, QueryModelTests.strings) {
      for (b, y) in zip(bounds, QueryModelTests.strings) {
        #expect(
          (a < b) == ModelQuery.keyPrecedes(x, y),
          "\(x.debugDescription.prefix(30)) < \(y.debugDescription.prefix(30))")
        #expect((a == b) == x.utf8.elementsEqual(y.utf8))
      }
    }
  }

  // MARK: Filtering

  /// Children of every type, with few values and many ties, or of many values.
  static func node(_ random: inout SeededGenerator) throws -> Node {
    var writes = WriteGenerator(seed: random.next())
    writes.stringByteCountMax = 3
    var builder = NodeBuilder()
    let hasPriorities = random.oneIn(2)
    for _ in 0..<[0, 1, 3, 12, 60, 400][random.below(6)] {
      let key = random.oneIn(3) ? writes.key() : try Key("\(random.below(500) - 50)")
      var child: Node =
        switch random.below(6) {
        case 0: try tree("{s:{t:\(random.below(4))},o:1}")
        case 1: writes.node(height: 2)
        case 2: Node(writes.scalar())
        default:
          try tree("{s:\(["1", "2", "2.0", "3", "true", "\"x\"", "false"][random.below(7)])}")
        }
      child = child.settingPriority(hasPriorities && random.oneIn(2) ? writes.priority() : nil)
      builder.append(key, child)
    }
    return builder.finish(priority: writes.priority())
  }

  static func parameters(_ random: inout SeededGenerator, _ node: Node) throws -> QueryParameters {
    var parameters = QueryParameters()
    let orders: [SortOrder] = [
      .priority, .key, .value, SortOrderTests.child("s"), SortOrderTests.child("s/t"),
    ]
    parameters.order = orders[random.below(orders.count)]
    let children = node.children.map { ($0.key, $0.node) }
    func bound() throws -> QueryParameters.Bound {
      let own = children.randomElement(using: &random)
      if parameters.order == .key {
        let string =
          random.oneIn(3) ? nil : own?.0.string
        return QueryParameters.Bound(
          value: .none, key: Key(bound: string ?? strings[random.below(strings.count)]),
          isExclusive: random.oneIn(2))
      }
      var writes = WriteGenerator(seed: random.next())
      var value = own.map { parameters.order.value(of: $0.1) } ?? .none
      if value == .branch || random.oneIn(4) {
        value = random.oneIn(4) ? .none : .scalar(writes.scalar())
      }
      let key = random.oneIn(2) ? own?.0 ?? writes.key() : nil
      return QueryParameters.Bound(value: value, key: key, isExclusive: random.oneIn(2))
    }
    if random.oneIn(2) { parameters.start = try bound() }
    if random.oneIn(2) { parameters.end = try bound() }
    if random.oneIn(8) {
      parameters.start = try bound()
      parameters.start?.isExclusive = false
      parameters.end = parameters.start
    }
    let count = random.oneIn(10) ? Int(Int32.max) : 1 + random.below(random.oneIn(2) ? 5 : 450)
    switch random.below(3) {
    case 0: parameters.limit = .first(count)
    case 1: parameters.limit = .last(count)
    default: break
    }
    return parameters
  }

  static let small = [
    "{a:1,b:2,c:2,5:3,05:3}!7", #"{a:1!2,b:2!"x",c:{s:2},d:{s:"x"}!2,e:{x:1}}"#,
    #"{b:{s:2},a:{s:2},z:{s:true},10:{s:"x"},9:5,2:"x"}"#,
  ]

  @Test("every order with every kind of bound and limit", arguments: small)
  func enumerated(text: String) throws {
    let node = try tree(text)
    var bounds: [QueryParameters.Bound?] = [nil]
    for value in [.none, .scalar(.integer(2)), .scalar(.string("x"))] as [SortValue] {
      for key in [nil, Key(bound: "b"), Key(bound: "")] {
        for isExclusive in [false, true] {
          bounds.append(QueryParameters.Bound(value: value, key: key, isExclusive: isExclusive))
        }
      }
    }
    let orders = [.priority, .key, .value, SortOrderTests.child("s")] as [SortOrder]
    let limits = [nil, .first(1), .first(2), .last(1), .last(2)] as [QueryParameters.Limit?]
    for order in orders {
      for start in bounds where order != .key || (start?.value ?? SortValue.none) == SortValue.none
      {
        for end in bounds where order != .key || (end?.value ?? SortValue.none) == SortValue.none {
          for limit in limits {
            var parameters = QueryParameters()
            (parameters.order, parameters.limit) = (order, limit)
            (parameters.start, parameters.end) = (start, end)
            _ = try check(node, parameters, "\(parameters)")
          }
        }
      }
    }
  }

  @Test("filtering agrees with filter, sort and take", arguments: 0..<24 as Range<UInt64>)
  func filtered(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var shown = 0
    for round in 0..<30 {
      let node = try QueryModelTests.node(&random)
      let parameters = try QueryModelTests.parameters(&random, node)
      shown += try check(node, parameters, "seed \(seed) round \(round): \(parameters)")
    }
    #expect(shown > 0)
  }

  /// - Returns: how many children are shown.
  private func check(
    _ node: Node, _ parameters: QueryParameters, _ comment: @autoclosure () -> Comment
  ) throws -> Int {
    let filtered = node.filtered(by: parameters)
    try filtered.checkInvariants(isCompact: true)
    let expected = ModelQuery.children(of: node, parameters)
    let children = Array(filtered.children(in: parameters.order))
    #expect(filtered.childCount == expected.count, comment())
    #expect(
      children.map { Array($0.key.string.utf8) } == expected.map { Array($0.key.utf8) }, comment())
    for (child, model) in zip(children, expected) {
      #expect(child.node.isIdentical(to: model.node) || child.node == model.node, comment())
    }
    #expect(filtered.priority == (parameters.showsAll ? node.priority : nil), comment())
    #expect(!expected.isEmpty || parameters.showsAll || filtered.isEmpty, comment())
    #expect(
      node.filteringCost(parameters) >= (parameters.showsAll ? 0 : expected.count), comment())
    return expected.count
  }

  @Test("if a range or a limit leaves everything, the children are shared, not copied")
  func shared() throws {
    var builder = NodeBuilder()
    for index in 0..<2_000 { builder.append(try Key("k\(index)"), Node(.integer(Int64(index)))) }
    let node = builder.finish(priority: .integer(1))
    let plain = node.settingPriority(nil)
    for order in [.priority, .key, .value, SortOrderTests.child("s")] as [SortOrder] {
      var parameters = QueryParameters()
      parameters.order = order
      #expect(node.filtered(by: parameters).isIdentical(to: node))
      parameters.limit = .last(2_000)
      #expect(node.filtered(by: parameters).isIdentical(to: plain))
      parameters.limit = nil
      parameters.start = QueryParameters.Bound(
        value: .none, key: order == .key ? Key(bound: "") : nil, isExclusive: false)
      #expect(node.filtered(by: parameters).isIdentical(to: plain))
    }
  }

  @Test("leaves and nothing: shown only if all is")
  func leaves() throws {
    for node in [Node.empty, try tree("5!1"), Node(.string(String(repeating: "s", count: 5_000)))] {
      var parameters = QueryParameters()
      parameters.order = .value
      #expect(node.filtered(by: parameters).isIdentical(to: node))
      parameters.limit = .first(1)
      #expect(node.filtered(by: parameters).isEmpty)
      parameters.limit = nil
      parameters.end = QueryParameters.Bound(value: .none, key: nil, isExclusive: false)
      #expect(node.filtered(by: parameters).isEmpty)
    }
  }
}
