import Dendro
import Foundation
import Testing

/// A query as a table writes it, and the children that it shows, in its order.
struct QueryRow: CustomTestStringConvertible, @unchecked Sendable {
  let name: String
  let query: (DatabaseQuery) -> DatabaseQuery
  let children: String
  /// Where the rows of a table differ in it.
  let data: Any?

  init(
    _ name: String, _ children: String, of data: Any? = nil,
    _ query: @escaping (DatabaseQuery) -> DatabaseQuery
  ) {
    self.name = name
    self.children = children
    self.data = data
    self.query = query
  }

  var testDescription: String { "\(name) shows \(children)" }
}

@Suite("Queries, read once")
struct QueryTests {
  let root = Database.inMemory().reference()

  /// The keys that a query shows, in its order, in every way of asking for them.
  private func check(
    _ row: QueryRow, on data: Any?, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await root.child("x").setValue(data)
    let query = row.query(root.child("x"))
    let keys = row.children.split(separator: " ").map(String.init)
    let snapshot = try await query.getData()
    #expect(snapshot.map(\.key) == keys, sourceLocation: sourceLocation)
    #expect(
      (snapshot.children.allObjects as? [DataSnapshot])?.map(\.key) == keys,
      sourceLocation: sourceLocation)
    #expect(snapshot.childrenCount == UInt(keys.count), sourceLocation: sourceLocation)
    #expect(snapshot.exists() == !keys.isEmpty, sourceLocation: sourceLocation)
    #expect(snapshot.key == "x" && snapshot.ref == root.child("x"), sourceLocation: sourceLocation)
    for child in snapshot {
      #expect(child.ref == root.child("x").child(child.key), sourceLocation: sourceLocation)
      #expect(snapshot.hasChild(child.key), sourceLocation: sourceLocation)
    }
    let (error, called) = await withCheckedContinuation { continuation in
      query.getData { continuation.resume(returning: ($0 as? DatabaseError, $1)) }
    }
    #expect(error == nil && called.map(\.key) == keys, sourceLocation: sourceLocation)
  }

  // MARK: The four orders

  nonisolated(unsafe) static let mixedValues: [String: Any] = [
    "s": "str", "n0": 0, "n1": -1.5, "t": true, "t2": true, "f": false, "o": ["x": 1],
    "o2": ["a": 9], "e": "", "S": "A",
  ]

  @Test("by value: booleans, numbers, strings, branches; ties by key")
  func byValue() async throws {
    try await check(
      QueryRow("by value", "f t t2 n1 n0 e S s o o2") { $0.queryOrderedByValue() },
      on: Self.mixedValues)
  }

  nonisolated(unsafe) static let ranked: [String: Any] = [
    "a": 1, "f": 1, "e": [".value": 1, ".priority": -2], "b": [".value": 1, ".priority": 5],
    "d": [".value": 1, ".priority": "a"], "c": [".value": 1, ".priority": "b"],
  ]

  @Test(
    "by priority: none, numbers, strings; the default",
    arguments: [
      QueryRow("by default", "a f e b d c") { $0 },
      QueryRow("by priority", "a f e b d c") { $0.queryOrderedByPriority() },
      QueryRow("first 3", "a f e") { $0.queryLimited(toFirst: 3) },
      QueryRow("last 3", "b d c") { $0.queryLimited(toLast: 3) },
      QueryRow("by key", "a b c d e f") { $0.queryOrderedByKey() },
    ])
  func byPriority(_ row: QueryRow) async throws { try await check(row, on: Self.ranked) }

  @Test(
    "by child: a path may be deep; a leaf and what is missing count as nothing",
    arguments: [
      QueryRow("by a/b", "r q p", of: ["p": ["a": ["b": 2]], "q": ["a": ["b": 1]], "r": ["a": 5]]) {
        $0.queryOrdered(byChild: "a/b")
      },
      QueryRow("by /a//b/", "r p", of: ["p": ["a": ["b": 2]], "r": ["a": 5]]) {
        $0.queryOrdered(byChild: "/a//b/")
      },
      QueryRow("by s", "c d e a", of: ["a": ["s": 1], "c": ["x": 1], "d": 5, "e": ["s": false]]) {
        $0.queryOrdered(byChild: "s")
      },
    ])
  func byChild(_ row: QueryRow) async throws { try await check(row, on: row.data) }

  @Test(
    "by key: integers by value, then UTF-16 code units",
    arguments: [
      ("10 9 1a a -3 007 7", "-3 7 007 9 10 1a a"),
      ("\u{10000} \u{e000} é e\u{301} z", "e\u{301} z é \u{10000} \u{e000}"),
    ])
  func byKey(_ keys: String, _ order: String) async throws {
    for key in keys.split(separator: " ") { try await root.child(String(key)).setValue(1) }
    let snapshot = try await root.queryOrderedByKey().getData()
    #expect(
      snapshot.map { Array($0.key.utf8) } == order.split(separator: " ").map { Array($0.utf8) })
    #expect(snapshot.childrenCount == UInt(snapshot.map(\.key).count))
  }

  // MARK: Ranges

  nonisolated(unsafe) static let scores: [String: Any] = [
    "a": ["s": 1], "b": ["s": 2], "c": ["s": 2], "d": ["s": 3],
  ]

  @Test(
    "ranges and limits by child",
    arguments: [
      QueryRow("starting(atValue: 2)", "b c d") { $0.queryStarting(atValue: 2) },
      QueryRow(#"starting(atValue: 2, childKey: "c")"#, "c d") {
        $0.queryStarting(atValue: 2, childKey: "c")
      },
      QueryRow("starting(atValue: 2, childKey: nil)", "b c d") {
        $0.queryStarting(atValue: 2, childKey: nil)
      },
      QueryRow("starting(afterValue: 2)", "d") { $0.queryStarting(afterValue: 2) },
      QueryRow(#"starting(afterValue: 2, childKey: "b")"#, "c d") {
        $0.queryStarting(afterValue: 2, childKey: "b")
      },
      QueryRow("starting(afterValue: 2, childKey: nil)", "d") {
        $0.queryStarting(afterValue: 2, childKey: nil)
      },
      QueryRow("ending(atValue: 2)", "a b c") { $0.queryEnding(atValue: 2) },
      QueryRow(#"ending(atValue: 2, childKey: "b")"#, "a b") {
        $0.queryEnding(atValue: 2, childKey: "b")
      },
      QueryRow("ending(beforeValue: 2)", "a") { $0.queryEnding(beforeValue: 2) },
      QueryRow(#"ending(beforeValue: 2, childKey: "c")"#, "a b") {
        $0.queryEnding(beforeValue: 2, childKey: "c")
      },
      QueryRow("ending(beforeValue: 2, childKey: nil)", "a") {
        $0.queryEnding(beforeValue: 2, childKey: nil)
      },
      QueryRow("equal(toValue: 2)", "b c") { $0.queryEqual(toValue: 2) },
      QueryRow("equal(toValue: 2.0)", "b c") { $0.queryEqual(toValue: 2.0) },
      QueryRow(#"equal(toValue: 2, childKey: "c")"#, "c") {
        $0.queryEqual(toValue: 2, childKey: "c")
      },
      QueryRow(#"equal(toValue: 2, childKey: "d")"#, "") {
        $0.queryEqual(toValue: 2, childKey: "d")
      },
      QueryRow("limited(toFirst: 3)", "a b c") { $0.queryLimited(toFirst: 3) },
      QueryRow("limited(toLast: 2)", "c d") { $0.queryLimited(toLast: 2) },
      QueryRow("starting(atValue: 2).limited(toFirst: 1)", "b") {
        $0.queryStarting(atValue: 2).queryLimited(toFirst: 1)
      },
      QueryRow("ending(atValue: 2).limited(toLast: 1)", "c") {
        $0.queryEnding(atValue: 2).queryLimited(toLast: 1)
      },
      QueryRow("starting(atValue: 3).ending(atValue: 1)", "") {
        $0.queryStarting(atValue: 3).queryEnding(atValue: 1)
      },
    ])
  func scores(_ row: QueryRow) async throws {
    let ordered = QueryRow(row.name, row.children) {
      row.query($0.queryOrdered(byChild: "s"))
    }
    try await check(ordered, on: Self.scores)
    // The order may come last.
    let late = QueryRow(row.name, row.children) { row.query($0).queryOrdered(byChild: "s") }
    try await check(late, on: Self.scores)
  }

  @Test(
    "ranges by key",
    arguments: [
      QueryRow("1…", "1 2 10 a b") { $0 },
      QueryRow(#"starting(atValue: "2").ending(atValue: "a")"#, "2 10 a") {
        $0.queryStarting(atValue: "2").queryEnding(atValue: "a")
      },
      QueryRow(#"starting(afterValue: "2").limited(toFirst: 2)"#, "10 a") {
        $0.queryStarting(afterValue: "2").queryLimited(toFirst: 2)
      },
      QueryRow(#"ending(beforeValue: "a").limited(toLast: 2)"#, "2 10") {
        $0.queryEnding(beforeValue: "a").queryLimited(toLast: 2)
      },
      QueryRow(#"equal(toValue: "10")"#, "10") { $0.queryEqual(toValue: "10") },
      QueryRow(#"equal(toValue: "010")"#, "") { $0.queryEqual(toValue: "010") },
      QueryRow("limited(toLast: 3)", "10 a b") { $0.queryLimited(toLast: 3) },
      QueryRow("limited(toFirst: 100)", "1 2 10 a b") { $0.queryLimited(toFirst: 100) },
      // Bounds that are no keys have their place all the same.
      QueryRow(#"starting(atValue: "")"#, "a b") { $0.queryStarting(atValue: "") },
      QueryRow(#"ending(atValue: "")"#, "1 2 10") { $0.queryEnding(atValue: "") },
      QueryRow(#"starting(atValue: "\u{1}")"#, "a b") { $0.queryStarting(atValue: "\u{1}") },
      QueryRow(#"starting(afterValue: "a/b")"#, "b") { $0.queryStarting(afterValue: "a/b") },
      QueryRow(#"starting(atValue: "a").ending(atValue: "a\u{f8ff}")"#, "a") {
        $0.queryStarting(atValue: "a").queryEnding(atValue: "a\u{f8ff}")
      },
      QueryRow("ending at 10,000 characters", "1 2 10 a") {
        $0.queryEnding(atValue: String(repeating: "a", count: 10_000))
      },
      QueryRow(#"equal(toValue: "$")"#, "") { $0.queryEqual(toValue: "$") },
      QueryRow("a nil child key after or before is none", "2 10") {
        $0.queryStarting(afterValue: "1", childKey: nil)
          .queryEnding(beforeValue: "a", childKey: nil)
      },
      // Other orders of the calls are among the rows by child.
    ])
  func keys(_ row: QueryRow) async throws {
    let data = ["1": 1, "2": 1, "10": 1, "a": 1, "b": 1]
    try await check(
      QueryRow(row.name, row.children) { row.query($0.queryOrderedByKey()) }, on: data)
    try await check(
      QueryRow(row.name, row.children) { row.query($0).queryOrderedByKey() }, on: data)
  }

  @Test("an exclusive bound stays exclusive if the order by key comes after it")
  func exclusive() async throws {
    try await root.setValue(["a": 1, "b": 1, "c": 1])
    for query in [
      root.queryStarting(afterValue: "b").queryOrderedByKey(),
      root.queryOrderedByKey().queryStarting(afterValue: "b"),
    ] {
      #expect(try await query.getData().map(\.key) == ["c"])
    }
    let query = root.queryEnding(beforeValue: "b").queryOrderedByKey()
    #expect(try await query.getData().map(\.key) == ["a"])
  }

  @Test(
    "keys that differ in leading zeros: what is exactly at the bound is left out, nothing else",
    arguments: [
      QueryRow("after 5", "05 005 6") { $0.queryStarting(afterValue: "5") },
      QueryRow("after 05", "005 6") { $0.queryStarting(afterValue: "05") },
      QueryRow("before 6", "4 5 05 005") { $0.queryEnding(beforeValue: "6") },
      QueryRow("before 005", "4 5 05") { $0.queryEnding(beforeValue: "005") },
      QueryRow("after 2147483647", "") { $0.queryStarting(afterValue: "2147483647") },
    ])
  func leadingZeros(_ row: QueryRow) async throws {
    try await check(
      QueryRow(row.name, row.children) { row.query($0.queryOrderedByKey()) },
      on: ["4": 1, "5": 1, "05": 1, "005": 1, "6": 1])
    // The same among children of one value.
    let value = QueryRow("after 5 by value", "05 005 6") {
      $0.queryOrderedByValue().queryStarting(afterValue: 1, childKey: "5")
    }
    try await check(value, on: ["4": 1, "5": 1, "05": 1, "005": 1, "6": 1])
  }

  @Test(
    "nothing as a bound",
    arguments: [
      QueryRow("equal(toValue: nil)", "c d") { $0.queryEqual(toValue: nil) },
      QueryRow("equal(toValue: NSNull())", "c d") { $0.queryEqual(toValue: NSNull()) },
      QueryRow("starting(afterValue: nil)", "e a") { $0.queryStarting(afterValue: nil) },
      QueryRow("starting(atValue: nil)", "c d e a") { $0.queryStarting(atValue: nil) },
      QueryRow("ending(beforeValue: nil)", "") { $0.queryEnding(beforeValue: nil) },
      QueryRow("ending(atValue: nil)", "c d") { $0.queryEnding(atValue: nil) },
      QueryRow("equal(toValue: false)", "e") { $0.queryEqual(toValue: false) },
      QueryRow("equal(toValue: NSNumber(false))", "e") {
        $0.queryEqual(toValue: NSNumber(value: false))
      },
      QueryRow("equal(toValue: NSNumber(1))", "a") { $0.queryEqual(toValue: NSNumber(value: 1)) },
      QueryRow("equal(toValue: true)", "") { $0.queryEqual(toValue: true) },
    ])
  func nothing(_ row: QueryRow) async throws {
    try await check(
      QueryRow(row.name, row.children) { row.query($0.queryOrdered(byChild: "s")) },
      on: ["a": ["s": 1], "c": ["x": 1], "d": 5, "e": ["s": false]])
  }

  @Test(
    "bounds of another type follow the order of types",
    arguments: [
      QueryRow("starting(atValue: 2)", "two text branch") { $0.queryStarting(atValue: 2) },
      QueryRow("ending(atValue: 3)", "nothing no yes two") { $0.queryEnding(atValue: 3) },
      QueryRow(#"starting(atValue: "")"#, "text branch") { $0.queryStarting(atValue: "") },
      QueryRow("starting(afterValue: true)", "two text branch") {
        $0.queryStarting(afterValue: true)
      },
    ])
  func types(_ row: QueryRow) async throws {
    try await check(
      QueryRow(row.name, row.children) { row.query($0.queryOrdered(byChild: "s")) },
      on: [
        "nothing": ["x": 1], "no": ["s": false], "yes": ["s": true], "two": ["s": 2],
        "text": ["s": "a"], "branch": ["s": ["y": 1]],
      ])
  }

  @Test(
    "priorities as bounds",
    arguments: [
      QueryRow("starting(atValue: 2)", "b c") { $0.queryStarting(atValue: 2) },
      QueryRow("ending(atValue: 1)", "d a") { $0.queryEnding(atValue: 1) },
      QueryRow("equal(toValue: nil)", "d") { $0.queryEqual(toValue: nil) },
      QueryRow(#"starting(atValue: "")"#, "c") { $0.queryStarting(atValue: "") },
      QueryRow(#"starting(atValue: 1, childKey: "b")"#, "b c") {
        $0.queryStarting(atValue: 1, childKey: "b")
      },
    ])
  func priorities(_ row: QueryRow) async throws {
    let data: [String: Any] = [
      "a": [".value": 1, ".priority": 1], "b": [".value": 1, ".priority": 2],
      "c": [".value": 1, ".priority": "x"], "d": 1,
    ]
    try await check(row, on: data)
    try await check(
      QueryRow(row.name, row.children) { row.query($0).queryOrderedByPriority() }, on: data)
  }

  // MARK: What is shown

  @Test("only an order: everything, a leaf too, with its priority")
  func wholeNode() async throws {
    try await root.setValue(5, andPriority: 1)
    for query in [
      root, root.queryOrderedByKey(), root.queryOrderedByValue(), root.queryOrderedByPriority(),
      root.queryOrdered(byChild: "s"),
    ] {
      let snapshot = try await query.getData()
      #expect(shown(snapshot.valueInExportFormat()) == "{.priority:1,.value:5}")
    }
  }

  @Test("a range or a limit shows no leaf, and not the node's own priority")
  func leafAndRange() async throws {
    let queries = [
      root.queryStarting(atValue: nil), root.queryLimited(toFirst: 3),
      root.queryLimited(toLast: 3), root.queryOrderedByKey().queryLimited(toLast: 1),
    ]
    try await root.setValue(5, andPriority: 1)
    for query in queries { #expect(try await query.getData().value is NSNull) }
    try await root.setValue(nil)
    for query in queries { #expect(try await query.getData().value is NSNull) }
    try await root.setValue(["a": 1, ".priority": 2])
    for query in queries {
      #expect(shown(try await query.getData().valueInExportFormat()) == "{a:1}")
    }
    let none = try await root.queryOrderedByKey().queryEqual(toValue: "b").getData()
    #expect(none.value is NSNull && !none.exists() && none.priority is NSNull)
  }

  @Test("a child's snapshot iterates over its own children in the default order")
  func childOrder() async throws {
    try await root.setValue(["p": ["a": 2, "b": 1], "q": ["a": 1]])
    let snapshot = try await root.queryOrderedByValue().getData()
    #expect(snapshot.map(\.key) == ["p", "q"])
    #expect(snapshot["p"].map(\.key) == ["a", "b"])
    #expect(try await root.child("p").queryOrderedByValue().getData().map(\.key) == ["b", "a"])
    #expect(
      shown(try await root.child("p").queryOrderedByValue().getData().value) == "{a:2,b:1}")
  }

  @Test("a read of a query changes nothing, and raises no event")
  func pureRead() async throws {
    let recorder = Recorder(root.database)
    try await root.setValue(Self.scores)
    recorder.listen("", root, [.childRemoved, .childAdded])
    _ = await recorder.take()
    _ = try await root.queryOrdered(byChild: "s").queryLimited(toFirst: 1).getData()
    #expect(await recorder.take() == [])
    #expect(try await root.getData().childrenCount == 4)
  }

  @Test("many children: what takes long is done elsewhere, and shows the moment of the call")
  func many() async throws {
    var values: [String: Any] = [:]
    for index in 0..<3_000 { values["k\(index)"] = ["s": index % 100] }
    try await root.setValue(values)
    let query = root.queryOrdered(byChild: "s").queryEqual(toValue: 7).queryLimited(toLast: 2)
    #expect(try await query.getData().map(\.key) == ["k807", "k907"])
    let keys = await withCheckedContinuation { continuation in
      query.getData { _, snapshot in continuation.resume(returning: snapshot.map(\.key)) }
      plainly { root.removeValue() }
    }
    #expect(keys == ["k807", "k907"])
    #expect(try await query.getData().exists() == false)
    try await root.database.close()
    #expect(await failure { _ = try await query.getData() }?.code == .closed)
  }
}
