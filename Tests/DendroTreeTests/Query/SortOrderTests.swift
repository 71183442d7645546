import DendroTree
import DendroTestSupport
import Testing

@Suite struct SortOrderTests {
  /// A tree, an order, and the keys of the tree's children in this order.
  struct Row: Sendable, CustomTestStringConvertible {
    var tree: String
    var order: SortOrder
    var keys: String

    init(_ tree: String, _ order: SortOrder, _ keys: String) {
      (self.tree, self.order, self.keys) = (tree, order, keys)
    }

    var testDescription: String { "\(tree): \(keys)" }
  }

  static func child(_ text: String) -> SortOrder {
    do {
      return .child(try Path(parsing: text))
    } catch {
      preconditionFailure("\(error)")
    }
  }

  @Test(
    "the four orders",
    arguments: [
      Row(
        #"{s:"str",n0:0,n1:-1.5,t:true,t2:true,f:false,o:{x:1},o2:{a:9},e:"",S:"A"}"#, .value,
        "f t t2 n1 n0 e S s o o2"),
      Row(#"{a:1,f:1,e:1!-2,b:1!5,d:1!"a",c:1!"b"}"#, .priority, "a f e b d c"),
      Row("{b:1,a:1,10:1,9:1}", .priority, "9 10 a b"),
      Row(#"{a:1!"x",f:1,b:1!2}"#, .key, "a b f"),
      Row("{p:{a:{b:2}},q:{a:{b:1}},r:{a:5}}", child("a/b"), "r q p"),
      Row("{a:{s:1},c:{x:1},d:5,e:{s:false}}", child("s"), "c d e a"),
      Row("{a:{s:1!9},b:{s:1}}", child("s"), "a b"),  // A value's priority takes no part.
      Row("{a:1,b:1.0,c:0}", .value, "c a b"),
    ])
  func orders(row: Row) throws {
    let node = try tree(row.tree)
    #expect(
      node.children(in: row.order).map(\.key.string)
        == row.keys.split(separator: " ").map(String.init))
    // Gone over again, and one step at a time.
    var iterator = node.children(in: row.order).makeIterator()
    var count = 0
    while let child = iterator.next() {
      #expect(child.node == node.child(child.key))
      count += 1
    }
    #expect(count == node.childCount && iterator.next() == nil)
  }

  @Test("nothing < false < true < numbers < strings < branches, which are equal")
  func values() throws {
    let groups = try [
      ["-"], ["false"], ["true"], ["-1"], ["0", "-0.0", "0!5"], ["1.5"], [#""""#], [#""a""#],
      ["{a:1}", "{b:2}!3"],
    ].map { try $0.map { SortValue(try tree($0)) } }
    for (i, a) in groups.enumerated() {
      for (j, b) in groups.enumerated() {
        for x in a {
          for y in b { #expect((x < y) == (i < j) && (x == y) == (i == j), "\(x) \(y)") }
        }
      }
    }
  }

  @Test(
    "what counts as moved",
    arguments: [
      (.key, "1", "2!9", false),
      (.priority, "1!1", "2!1", false), (.priority, "1!1", "1!1.0", false),
      (.priority, "1", "1!1", true), (.priority, #"1!"a""#, #"1!"b""#, true),
      (.value, "1", "2", true), (.value, "{a:1}", "{a:2}", true), (.value, "1", "1.0", false),
      (.value, "1", "1!5", true),
      (child("h"), "{h:2}", "{h:0}", true), (child("h"), "{h:2}", "{h:2,n:1}", false),
      (child("h"), "{h:2}", "{h:2.0}", false), (child("h"), "{h:1}", "{h:{o:1}}", true),
      (child("h"), "{h:{o:1}}", "{h:{o:2}}", false), (child("h"), "{h:1}", "5", true),
      (child("h"), "{x:1}", "5", false),
    ] as [(SortOrder, String, String, Bool)])
  func moves(order: SortOrder, old: String, new: String, moves: Bool) throws {
    #expect(order.moves(from: try tree(old), to: try tree(new)) == moves)
  }

  @Test(
    "whether children have priorities, however they are stored",
    arguments: [
      ("-", false), ("5!1", false), ("{a:1}!5", false), ("{a:{b:1!1}}", false),
      ("{a:1,b:1!0}", true), ("{a:1,b:{c:1}!0}", true), (#"{a:{b:1},c:"x"!"y"}"#, true),
    ])
  func priorities(text: String, has: Bool) throws {
    #expect(try tree(text).hasChildPriorities == has)
  }

  @Test("priorities of children that are too long for a page, and in wide branches")
  func longPriorities() throws {
    let long = Scalar.string(String(repeating: "p", count: 1_000))
    for child in [Node(long), try tree("{a:1}"), Node(.integer(1))] {
      for priority in [nil, .integer(1), long] as [Scalar?] {
        for width in [1, 3_000] {
          var builder = NodeBuilder()
          for index in 0..<width { builder.append(try Key("k\(index)"), Node(.integer(1))) }
          builder.append(try Key("m"), child.settingPriority(priority))
          #expect(builder.finish().hasChildPriorities == (priority != nil))
        }
      }
    }
  }

  @Test("each page knows of priorities, while they come and go", arguments: 0..<6)
  func comingAndGoing(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let width = [3, 40, 2_000][random.below(3)]
    let long = Scalar.string(String(repeating: "p", count: 300))
    var tree = Node.empty
    var ranked: Set<Int> = []
    for step in 0..<3_000 {
      // Many have one, then few, then none.
      let wantsPriority = step % 1_000 < 300 || (step % 1_000 < 600 && random.oneIn(20))
      let number = ranked.randomElement(using: &random).flatMap { wantsPriority ? nil : $0 }
      let child = number ?? random.below(width)
      let path = Path(keys: [try Key("k\(child)")])
      let priority: Scalar? =
        wantsPriority ? [.integer(Int64(step)), .string("x"), long][random.below(3)] : nil
      switch random.below(5) {
      case 0: _ = tree.apply(.remove(path))
      case 1: _ = tree.apply(.set(path.appending(try Key("below")), Node(.integer(Int64(step)))))
      case 2: _ = tree.apply(.remove(path.appending(try Key("below"))))
      case 3: _ = tree.apply(.setPriority(path, priority))
      default:
        let scalar = random.oneIn(20) ? long : .integer(Int64(step))
        _ = tree.apply(.set(path, Node(scalar, priority: priority)))
      }
      if tree.node(at: path).priority == nil { ranked.remove(child) } else { ranked.insert(child) }
      if tree.hasChildPriorities == ranked.isEmpty {
        Issue.record("seed \(seed), step \(step): \(ranked.count) have one")
      }
      if step % 50 == 0 { try tree.checkInvariants(isCompact: true) }
    }
  }

  @Test("a limit in the default order costs what it shows, if no child has a priority")
  func cost() throws {
    var parameters = QueryParameters()
    parameters.limit = .last(10)
    var builder = NodeBuilder()
    for index in 0..<3_000 { builder.append(try Key("k\(10_000 + index)"), Node(.integer(1))) }
    var list = builder.finish()
    #expect(list.filteringCost(parameters) == 10)
    #expect(list.filtered(by: parameters).children.map(\.key.string).first == "k12990")
    parameters.limit = .first(10)
    #expect(list.filteringCost(parameters) == 10)
    _ = list.apply(.setPriority(Path(keys: [try Key("k10001")]), .integer(1)))
    #expect(list.filteringCost(parameters) == 3_000)
    #expect(list.filtered(by: parameters).children.map(\.key.string).contains("k10001") == false)
    _ = list.apply(.setPriority(Path(keys: [try Key("k10001")]), nil))
    #expect(list.filteringCost(parameters) == 10)
  }
}
