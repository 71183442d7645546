import Dendro
import Foundation
import Testing

/// A state, a query of the root, and writes with the events of a listener to everything, in order.
struct QueryTrace: CustomTestStringConvertible, @unchecked Sendable {
  struct Step {
    let path: String
    let write: Trace.Write
    let events: [String]

    init(_ path: String, _ write: Trace.Write, _ events: String...) {
      self.path = path
      self.write = write
      self.events = events
    }
  }

  let testDescription: String
  let before: Any?
  let query: (DatabaseQuery) -> DatabaseQuery
  let steps: [Step]

  init(
    _ name: String, _ before: Any?, _ steps: [Step],
    _ query: @escaping (DatabaseQuery) -> DatabaseQuery
  ) {
    testDescription = name
    self.before = before
    self.query = query
    self.steps = steps
  }
}

@Suite("Events of queries")
struct QueryEventTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  static let orders = [
    QueryTrace(
      "by child s",
      ["a": ["s": 3], "b": ["s": 1], "c": ["s": 2]],
      [
        .init(
          "/", .set(["z": ["s": 9], "y": ["s": 10], "c": ["s": 20]]),
          "removed b={s:1}", "removed a={s:3}", "added z={s:9} after nil", "added y={s:10} after z",
          "moved c={s:20} after y", "changed c={s:20} after y",
          "value {c:{s:20},y:{s:10},z:{s:9}}"),
        .init(
          "/", .set(nil), "removed z={s:9}", "removed y={s:10}", "removed c={s:20}", "value null"),
      ]
    ) { $0.queryOrdered(byChild: "s") },
    QueryTrace(
      "by child h",
      ["x": ["h": 2], "y": ["h": 1]],
      [
        .init(
          "x/h", .set(0), "moved x={h:0} after nil", "changed x={h:0} after nil",
          "value {x:{h:0},y:{h:1}}"),
        .init(
          "x/name", .set("n"), #"changed x={h:0,name:"n"} after nil"#,
          #"value {x:{h:0,name:"n"},y:{h:1}}"#),
        .init(
          "y/h", .set(["o": 1]), "moved y={h:{o:1}} after x", "changed y={h:{o:1}} after x",
          #"value {x:{h:0,name:"n"},y:{h:{o:1}}}"#),
        .init(
          "y/h", .set(["o": 2]), "changed y={h:{o:2}} after x",
          #"value {x:{h:0,name:"n"},y:{h:{o:2}}}"#),
        .init("y/h", .set(nil), "removed y={h:{o:2}}", #"value {x:{h:0,name:"n"}}"#),
      ]
    ) { $0.queryOrdered(byChild: "h") },
    QueryTrace(
      "by value",
      ["a": 3, "b": 1, "c": 2],
      [
        .init("b", .set(5), "moved b=5 after a", "changed b=5 after a", "value {a:3,b:5,c:2}"),
        .init("b", .set(6), "moved b=6 after a", "changed b=6 after a", "value {a:3,b:6,c:2}"),
        .init("z", .set(["x": 1]), "added z={x:1} after b", "value {a:3,b:6,c:2,z:{x:1}}"),
        .init(
          "z", .set(["x": 2]), "moved z={x:2} after b", "changed z={x:2} after b",
          "value {a:3,b:6,c:2,z:{x:2}}"),
      ]
    ) { $0.queryOrderedByValue() },
    QueryTrace(
      "by key",
      ["a": 1, "b": 2],
      [
        .init(
          "b", .priority(1), "changed b={.priority:1,.value:2} after a",
          "value {a:1,b:{.priority:1,.value:2}}"),
        .init("10", .set(1), "added 10=1 after nil", "value {10:1,a:1,b:{.priority:1,.value:2}}"),
        .init(
          "9", .set(1), "added 9=1 after nil", "value {10:1,9:1,a:1,b:{.priority:1,.value:2}}"),
      ]
    ) { $0.queryOrderedByKey() },
    QueryTrace(
      "by a path below the child",
      ["p": ["a": ["b": 2]], "q": ["a": ["b": 1]], "r": ["a": 5]],
      [
        .init(
          "r/a/b", .set(0), "moved r={a:{b:0}} after nil", "changed r={a:{b:0}} after nil",
          "value {p:{a:{b:2}},q:{a:{b:1}},r:{a:{b:0}}}"),
        .init("p/a", .set(nil), "removed p={a:{b:2}}", "value {q:{a:{b:1}},r:{a:{b:0}}}"),
        .init(
          "q/a/c", .set(1), "changed q={a:{b:1,c:1}} after r",
          "value {q:{a:{b:1,c:1}},r:{a:{b:0}}}"),
      ]
    ) { $0.queryOrdered(byChild: "a/b") },
  ]

  static let ends = [
    QueryTrace(
      "limitToLast(2) of an empty location", nil,
      [
        .init("m", .set(1), "added m=1 after nil", "value {m:1}"),
        .init("t", .set(1), "added t=1 after m", "value {m:1,t:1}"),
        .init("p", .set(1), "removed m=1", "added p=1 after nil", "value {p:1,t:1}"),
        .init("z", .set(1), "removed p=1", "added z=1 after t", "value {t:1,z:1}"),
        .init("z", .set(nil), "removed z=1", "added p=1 after nil", "value {p:1,t:1}"),
        .init("t", .set(nil), "removed t=1", "added m=1 after nil", "value {m:1,p:1}"),
        .init("n", .set(1), "removed m=1", "added n=1 after nil", "value {n:1,p:1}"),
      ]
    ) { $0.queryLimited(toLast: 2) },
    QueryTrace(
      "limitToLast(2) by child s",
      ["a": ["s": 1], "b": ["s": 2], "c": ["s": 3], "d": ["s": 4]],
      [
        .init(
          "/", .update(["a/s": 10, "b/s": 9]), "removed c={s:3}", "removed d={s:4}",
          "added b={s:9} after nil", "added a={s:10} after b", "value {a:{s:10},b:{s:9}}"),
        .init(
          "/", .update(["a/s": 9, "b/s": 10]), "moved a={s:9} after nil", "moved b={s:10} after a",
          "changed a={s:9} after nil", "changed b={s:10} after a", "value {a:{s:9},b:{s:10}}"),
      ]
    ) { $0.queryOrdered(byChild: "s").queryLimited(toLast: 2) },
    QueryTrace(
      "limitToFirst(2) of plain children",
      ["a": 1, "b": 2, "c": 3],
      [
        .init("c", .set(9)),
        .init("/", .priority(1)),
        .init("/", .set(5), "removed a=1", "removed b=2", "value null"),
        .init("/", .set(nil)),
      ]
    ) { $0.queryLimited(toFirst: 2) },
    QueryTrace(
      "a limit with a start",
      ["a": 1, "b": 2, "c": 3, "d": 4],
      [
        .init("a", .set(2), "removed c=3", "added a=2 after nil", "value {a:2,b:2}"),
        .init("b", .set(nil), "removed b=2", "added c=3 after a", "value {a:2,c:3}"),
        .init("d", .set(nil)),
        .init("c", .set(1), "removed c=3", "value {a:2}"),
      ]
    ) { $0.queryOrderedByValue().queryStarting(atValue: 2).queryLimited(toFirst: 2) },
  ]

  static let firsts = [
    QueryTrace(
      "limitToFirst(2) by child s",
      ["x": ["s": 10], "y": ["s": 20], "z": ["s": 30]],
      [
        .init(
          "z/s", .set(5), "removed y={s:20}", "added z={s:5} after nil", "value {x:{s:10},z:{s:5}}"),
        .init(
          "z/s", .set(7), "moved z={s:7} after nil", "changed z={s:7} after nil",
          "value {x:{s:10},z:{s:7}}"),
        .init(
          "x/s", .set(9), "moved x={s:9} after z", "changed x={s:9} after z",
          "value {x:{s:9},z:{s:7}}"),
        .init(
          "x/s", .set(25), "removed x={s:9}", "added y={s:20} after z", "value {y:{s:20},z:{s:7}}"),
        .init(
          "w", .set(["s": 1]), "removed y={s:20}", "added w={s:1} after nil",
          "value {w:{s:1},z:{s:7}}"),
        .init(
          "w/n", .set(1), "changed w={n:1,s:1} after nil", "value {w:{n:1,s:1},z:{s:7}}"),
      ]
    ) { $0.queryOrdered(byChild: "s").queryLimited(toFirst: 2) },
    QueryTrace(
      "limitToFirst(2) by value",
      ["a": 3, "b": 1, "c": 2],
      [
        .init("c", .set(1), "moved c=1 after b", "changed c=1 after b", "value {b:1,c:1}"),
        .init("a", .set(0), "removed c=1", "added a=0 after nil", "value {a:0,b:1}"),
        .init("b", .set(2), "removed b=1", "added c=1 after a", "value {a:0,c:1}"),
        .init(
          "/", .update(["a": NSNull(), "b": NSNull()]), "removed a=0", "value {c:1}"),
      ]
    ) { $0.queryOrderedByValue().queryLimited(toFirst: 2) },
    QueryTrace(
      "from 2 to 3 by child s",
      ["a": ["s": 1], "b": ["s": 2], "c": ["s": 3], "d": ["s": 4]],
      [
        .init(
          "a/s", .set(2.5), "added a={s:2.5} after b", "value {a:{s:2.5},b:{s:2},c:{s:3}}"),
        .init("c/s", .set(9), "removed c={s:3}", "value {a:{s:2.5},b:{s:2}}"),
        .init("d/s", .set("3")),
        .init(
          "/", .update(["a/s": 1, "d/s": 3]), "removed a={s:2.5}", "added d={s:3} after b",
          "value {b:{s:2},d:{s:3}}"),
      ]
    ) { $0.queryOrdered(byChild: "s").queryStarting(atValue: 2).queryEnding(atValue: 3) },
  ]

  @Test("step by step", arguments: orders + ends + firsts)
  func traces(_ trace: QueryTrace) async throws {
    try await root.setValue(trace.before)
    let recorder = Recorder(database)
    let query = trace.query(root)
    recorder.listen("", query)
    _ = await recorder.take()
    for (index, step) in trace.steps.enumerated() {
      try await Trace(nil, step.path, step.write, []).perform(at: root)
      let received = await recorder.take()
      #expect(received == step.events, "step \(index)")
      // The listener's last value is what a read gives.
      let read = try await query.getData()
      if let value = received.last, value.hasPrefix("value") {
        #expect(value == "value \(shown(read.valueInExportFormat()))", "step \(index)")
      }
    }
  }

  @Test("a node with a priority under three queries; a limited one shows no priority of the node")
  func nodePriority() async throws {
    try await root.setValue([".value": 5, ".priority": 1])
    let recorder = Recorder(database)
    let types: [DataEventType] = [.childAdded, .value]
    recorder.listen("default", root, types)
    recorder.listen("key", root.queryOrderedByKey(), types)
    recorder.listen("first", root.queryLimited(toFirst: 3), types)
    #expect(
      await recorder.take() == [
        "default:value {.priority:1,.value:5}", "key:value {.priority:1,.value:5}",
        "first:value null",
      ])
    try await root.setValue([".priority": 2, "a": 1])
    #expect(
      await recorder.take() == [
        "default:added a=1 after nil", "default:value {.priority:2,a:1}", "key:added a=1 after nil",
        "key:value {.priority:2,a:1}", "first:added a=1 after nil", "first:value {a:1}",
      ])
    try await root.setPriority(9)
    #expect(
      await recorder.take() == ["default:value {.priority:9,a:1}", "key:value {.priority:9,a:1}"])
  }

  @Test(
    "queries of one location in the order of their first registration; equal ones are one")
  func sameLocation() async throws {
    try await root.setValue(["a": 1, "b": 2, "c": 3])
    let recorder = Recorder(database)
    recorder.listen("all", root)
    recorder.listen("first1", root.queryLimited(toFirst: 1))
    recorder.listen("all2", root.queryOrderedByPriority())
    _ = await recorder.take()
    try await root.setValue(["b": 2, "c": 4])
    #expect(
      await recorder.take() == [
        "all:removed a=1", "all2:removed a=1", "all:changed c=4 after b",
        "all2:changed c=4 after b",
        "all:value {b:2,c:4}", "all2:value {b:2,c:4}", "first1:removed a=1",
        "first1:added b=2 after nil", "first1:value {b:2}",
      ])
  }

  @Test("priorities as bounds")
  func priorityBounds() async throws {
    func ranked(_ priority: Any?) -> Any {
      priority.map { [".value": 1, ".priority": $0] } ?? 1
    }
    try await root.setValue(
      ["a": ranked(1), "b": ranked(2), "c": ranked("x"), "d": ranked(nil)])
    let recorder = Recorder(database)
    recorder.listen("A", root.queryStarting(atValue: 2))
    recorder.listen("B", root.queryEnding(atValue: 1))
    recorder.listen("C", root.queryEqual(toValue: nil))
    recorder.listen("E", root.queryStarting(atValue: 1, childKey: "b"))
    _ = await recorder.take()
    try await root.child("d").setPriority(7)
    let (b, c, d) = (
      "b:{.priority:2,.value:1}", #"c:{.priority:"x",.value:1}"#, "d:{.priority:7,.value:1}"
    )
    #expect(
      await recorder.take() == [
        "A:added d={.priority:7,.value:1} after b", "A:value {\(b),\(c),\(d)}", "B:removed d=1",
        "B:value {a:{.priority:1,.value:1}}", "C:removed d=1", "C:value null",
        "E:added d={.priority:7,.value:1} after b", "E:value {\(b),\(c),\(d)}",
      ])
    try await root.child("b").setPriority(nil)
    #expect(
      await recorder.take() == [
        "A:removed b={.priority:2,.value:1}", "A:value {\(c),\(d)}", "B:added b=1 after nil",
        "B:value {a:{.priority:1,.value:1},b:1}", "C:added b=1 after nil", "C:value {b:1}",
        "E:removed b={.priority:2,.value:1}", "E:value {\(c),\(d)}",
      ])
  }

  @Test("a start without a value shows no leaf, and no priority of the node")
  func leafUnderRange() async throws {
    try await root.setValue(5)
    let recorder = Recorder(database)
    recorder.listen("", root.queryStarting(atValue: nil), [.value])
    #expect(await recorder.take() == ["value null"])
    try await root.setValue(["a": 1, ".priority": 3])
    #expect(await recorder.take() == ["value {a:1}"])
  }

  @Test("an equal number is no change; another type is")
  func numbers() async throws {
    let recorder = Recorder(database)
    recorder.listen("", root.child("v"), [.value])
    recorder.listen("by value", root.queryOrderedByValue().queryStarting(atValue: 1), [.childAdded])
    _ = await recorder.take()
    try await root.child("v").setValue(1)
    #expect(await recorder.take() == ["value 1", "by value:added v=1 after nil"])
    try await root.child("v").setValue(1.0)
    #expect(await recorder.take() == [])
    try await root.child("v").setValue(true)
    #expect(await recorder.take() == ["value true"])
    try await root.child("v").setValue("1")
    #expect(await recorder.take() == [#"value "1""#, #"by value:added v="1" after nil"#])
    try await root.child("v").setValue(1)
    #expect(await recorder.take() == ["value 1"])
  }

  @Test(
    "first events in the order of the query",
    arguments: [
      QueryRow("keys", "-3 7 007 9 10 1a a") { $0.queryOrderedByKey() },
      QueryRow("the last keys", "10 1a a") { $0.queryOrderedByKey().queryLimited(toLast: 3) },
      QueryRow("values", "a 1a 10 9 7 007 -3") { $0.queryOrderedByValue() },
      QueryRow("values from 3", "10 9") {
        $0.queryOrderedByValue().queryStarting(atValue: 3).queryLimited(toFirst: 2)
      },
    ])
  func first(_ row: QueryRow) async throws {
    try await root.setValue(["10": 3, "9": 4, "1a": 2, "a": 1, "-3": 6, "007": 5, "7": 5])
    let recorder = Recorder(database)
    let query = row.query(root)
    let keys = row.children.split(separator: " ").map(String.init)
    query.observe(
      .childAdded,
      andPreviousSiblingKeyWith: { recorder.note("\($0.key) after \($1 ?? "nil")") })
    query.observe(.value) { snapshot in
      recorder.note(snapshot.map(\.key).joined(separator: " "))
    }
    query.observeSingleEvent(of: .childAdded) { recorder.note("first \($0.key)") }
    let afters = ["nil"] + keys.dropLast()
    #expect(
      await recorder.take() == zip(keys, afters).map { "\($0) after \($1)" } + [row.children]
        + ["first \(keys[0])"])
  }

  @Test(
    "children that snapshots of events show have the default order; the value that of its query")
  func snapshotOrder() async throws {
    try await root.setValue(["x": ["a": ["n": 2], "b": ["n": 1]]])
    let recorder = Recorder(database)
    let order = { @Sendable (snapshot: DataSnapshot) in snapshot.map(\.key).joined(separator: " ") }
    root.queryOrdered(byChild: "n").observe(.childAdded) { recorder.note("child \(order($0))") }
    root.child("x").queryOrdered(byChild: "n").observe(.value) {
      recorder.note("value \(order($0))")
    }
    #expect(await recorder.take() == ["child a b", "value b a"])
    try await root.child("x/c").setValue(["n": 0])
    #expect(await recorder.take() == ["value c b a"])
  }
}
