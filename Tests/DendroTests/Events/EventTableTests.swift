import Dendro
import Foundation
import Testing

/// Writes one after the other, and the events of each for a listener at the root to everything.
@Suite("Events of plain writes, step by step")
struct EventTableTests {
  nonisolated(unsafe) private static let ranked: [String: Any] = [
    "a": [".value": 1, ".priority": 1], "b": [".value": 1, ".priority": 2],
    "c": [".value": 1, ".priority": 3],
  ]

  static let wholes = [
    QueryTrace(
      "a branch is replaced", ["b": 1, "d": 3, "g": 5, "h": 6],
      [
        .init(
          "/", .set(["b": 2, "bb": "x", "c": "y", "g": 5]), "removed d=3", "removed h=6",
          #"added bb="x" after b"#, #"added c="y" after bb"#, "changed b=2 after nil",
          #"value {b:2,bb:"x",c:"y",g:5}"#),
        .init("b", .set(2)),
        .init(
          "/", .set(nil), "removed b=2", #"removed bb="x""#, #"removed c="y""#, "removed g=5",
          "value null"),
      ]
    ) { $0 },
    QueryTrace(
      "leaf and branch take turns", 5,
      [
        .init("/", .set(["a": 1]), "added a=1 after nil", "value {a:1}"),
        .init("/", .set(7), "removed a=1", "value 7"),
        .init("q/r", .set(nil)),
      ]
    ) { $0 },
    QueryTrace(
      "the last leaf is removed", ["a": ["b": ["c": 1]]],
      [.init("a/b/c", .set(nil), "removed a={b:{c:1}}", "value null")]
    ) { $0 },
    QueryTrace(
      "updates", ["p": ["x": 1, "y": 2], "q": ["z": 3]],
      [
        .init(
          "/", .update(["p/x": NSNull(), "q/w": 5, "r/s/t": true]),
          "added r={s:{t:true}} after q", "changed p={y:2} after nil",
          "changed q={w:5,z:3} after p", "value {p:{y:2},q:{w:5,z:3},r:{s:{t:true}}}"),
        .init(
          "p", .update(["y": NSNull()]), "removed p={y:2}", "value {q:{w:5,z:3},r:{s:{t:true}}}"),
        .init(
          "/", .update(["q/.priority": 7]), "moved q={.priority:7,w:5,z:3} after r",
          "changed q={.priority:7,w:5,z:3} after r",
          "value {q:{.priority:7,w:5,z:3},r:{s:{t:true}}}"),
        .init("/", .update([:])),
      ]
    ) { $0 },
    QueryTrace(
      "a new node and its priority in one update", nil,
      [
        .init(
          "/", .update(["m/x": 1, "m/.priority": 3]), "added m={.priority:3,x:1} after nil",
          "value {m:{.priority:3,x:1}}"),
        .init("/", .update(["gone/.priority": 3])),
      ]
    ) { $0 },
  ]

  static let leaves = [
    QueryTrace(
      "priorities", ranked,
      [
        .init(
          "a", .priority(4), "moved a={.priority:4,.value:1} after c",
          "changed a={.priority:4,.value:1} after c",
          "value {a:{.priority:4,.value:1},b:{.priority:2,.value:1},c:{.priority:3,.value:1}}"),
        .init(
          "b", .set([".value": 2, ".priority": 5]), "moved b={.priority:5,.value:2} after a",
          "changed b={.priority:5,.value:2} after a",
          "value {a:{.priority:4,.value:1},b:{.priority:5,.value:2},c:{.priority:3,.value:1}}"),
        .init(
          "c", .set("z"), #"moved c="z" after nil"#, #"changed c="z" after nil"#,
          #"value {a:{.priority:4,.value:1},b:{.priority:5,.value:2},c:"z"}"#),
        .init(
          "/", .priority("p"),
          #"value {.priority:"p",a:{.priority:4,.value:1},b:{.priority:5,.value:2},c:"z"}"#),
      ]
    ) { $0 },
    QueryTrace(
      "types of one leaf", 1,
      [
        .init("/", .set(1.0)), .init("/", .set(true), "value true"),
        .init("/", .set("1"), #"value "1""#), .init("/", .set(1), "value 1"),
        .init("/", .set(NSNumber(value: true)), "value true"),
        .init("/", .set(NSNumber(value: 1)), "value 1"),
        .init("/", .set(NSNumber(value: 1.0))),
        .init(
          "/", .set(NSNumber(value: 9_007_199_254_740_993)), "value 9007199254740993"),
        .init(
          "/", .set(NSNumber(value: 9_007_199_254_740_992.0)), "value 9007199254740992.0"),
        .init("/", .set(9_007_199_254_740_992)),
        .init("/", .set(0), "value 0"), .init("/", .set(-0.0)),
      ]
    ) { $0 },
  ]

  @Test("every row", arguments: wholes + leaves)
  func traces(_ trace: QueryTrace) async throws {
    let database = Database.inMemory()
    let root = database.reference()
    try await root.setValue(trace.before)
    let recorder = Recorder(database)
    recorder.listen("", trace.query(root))
    _ = await recorder.take()
    for (index, step) in trace.steps.enumerated() {
      try await Trace(nil, step.path, step.write, []).perform(at: root)
      #expect(await recorder.take() == step.events, "step \(index)")
    }
  }

  // MARK: First events

  /// A state, and the first events of a listener to everything at a place.
  struct Beginning: CustomTestStringConvertible, @unchecked Sendable {
    let state: Any?
    let path: String
    let events: [String]

    init(_ state: Any?, _ path: String, _ events: String...) {
      (self.state, self.path, self.events) = (state, path, events)
    }

    var testDescription: String { "\(path) of \(shown(state))" }
  }

  @Test(
    "the first events of listeners of every kind",
    arguments: [
      Beginning(nil, "/", "value null"), Beginning(5, "/", "value 5"),
      Beginning(
        ["b": 1, "a": 2], "/", "added a=2 after nil", "added b=1 after a", "value {a:2,b:1}"),
      Beginning(["x": 1], "y", "value null"), Beginning(["a": ["b": 1]], "a/b", "value 1"),
    ])
  func first(_ beginning: Beginning) async throws {
    let database = Database.inMemory()
    let root = database.reference()
    try await root.setValue(beginning.state)
    let recorder = Recorder(database)
    recorder.listen("", root.child(beginning.path))
    #expect(await recorder.take() == beginning.events)
  }

  @Test(
    "the first events of queries",
    arguments: [
      QueryRow("limitToLast(2) of nothing", "value null", of: nil) { $0.queryLimited(toLast: 2) },
      QueryRow(
        "by a/b", "added r|added q|added p|value",
        of: ["p": ["a": ["b": 2]], "q": ["a": ["b": 1]], "r": ["a": 5]]
      ) { $0.queryOrdered(byChild: "a/b") },
      QueryRow("a range of a leaf", "value null", of: 5) { $0.queryStarting(atValue: nil) },
    ])
  func firstOfQueries(_ row: QueryRow) async throws {
    let database = Database.inMemory()
    let root = database.reference()
    try await root.setValue(row.data)
    let recorder = Recorder(database)
    recorder.listen("", row.query(root))
    let expected = row.children.split(separator: "|").map(String.init)
    let received = await recorder.take()
    #expect(received.count == expected.count)
    #expect(zip(received, expected).allSatisfy { $0.hasPrefix($1) }, "\(received)")
  }

  @Test("one block registered twice is two listeners with two handles")
  func twice() async throws {
    let database = Database.inMemory()
    let ref = database.reference()
    let recorder = Recorder(database)
    let block: @Sendable (DataSnapshot) -> Void = { recorder.note("\(shown($0.value))") }
    let handles = [ref.observe(.value, with: block), ref.observe(.value, with: block)]
    let other = Database.inMemory().reference()
    let elsewhere = other.observe(.value) { _ in }
    other.removeObserver(withHandle: elsewhere)
    #expect(Set(handles + [elsewhere]).count == 3, "one counter for the process")
    #expect(await recorder.take() == ["null", "null"])
    ref.removeObserver(withHandle: handles[0])
    try await ref.setValue(1)
    #expect(await recorder.take() == ["1"])
    ref.removeObserver(withHandle: handles[1])
    try await ref.setValue(2)
    #expect(await recorder.take() == [])
  }
}

/// Writes that raise no event, but complete.
@Suite("No events")
struct NoEventTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let body: @Sendable (DatabaseReference) async throws -> Void

    init(_ name: String, _ body: @escaping @Sendable (DatabaseReference) async throws -> Void) {
      (testDescription, self.body) = (name, body)
    }
  }

  @Test(
    "of what changes nothing",
    arguments: [
      Row("keepSynced") { $0.keepSynced(true) },
      Row("onDisconnect…, registered") {
        try await $0.child("a").onDisconnectSetValue(9)
        try await $0.child("b").onDisconnectRemoveValue()
        try await $0.onDisconnectUpdateChildValues(["c": 1])
        try await $0.cancelDisconnectOperations()
      },
      Row("an onDisconnect update of nothing, and going offline") { ref in
        try await ref.onDisconnectUpdateChildValues([:])
        plainly { ref.database.goOffline() }
      },
      Row("going offline and online") { ref in
        plainly {
          ref.database.goOffline()
          ref.database.goOnline()
        }
      },
      Row("purgeOutstandingWrites") { $0.database.purgeOutstandingWrites() },
      Row("a read") {
        _ = try await $0.getData()
        _ = try await $0.queryOrderedByValue().queryLimited(toLast: 1).getData()
      },
      Row("equal data") {
        try await $0.setValue(["a": 1, "b": [".value": 2, ".priority": 3]])
        try await $0.child("a").setValue(1.0)
      },
      Row("an equal update") { try await $0.updateChildValues(["a": 1, "b/.priority": 3.0]) },
      Row("an empty update") { try await $0.updateChildValues([:]) },
      Row("an equal priority") { try await $0.child("b").setPriority(3) },
      Row("the priority of nothing, in an update") {
        try await $0.updateChildValues(["gone/.priority": 3])
      },
      Row("removing what is not there") {
        try await $0.child("none").removeValue()
        try await $0.child("none/deep").setValue(nil)
        try await $0.child("none").setValue([String: Any]())
        try await $0.updateChildValues(["none/a": NSNull()])
      },
      Row("removing below a leaf") { try await $0.child("a/below").removeValue() },
      Row("an increment by 0") { try await $0.child("a").setValue(ServerValue.increment(0)) },
      Row("a transaction that gives up") {
        let (committed, _) = try await $0.runTransactionBlock { data in
          data.value = 5
          return .abort()
        }
        #expect(!committed)
      },
      Row("a transaction without a change") {
        let (committed, _) = try await $0.runTransactionBlock { .success(withValue: $0) }
        #expect(committed)
      },
      Row("a transaction that fails") { ref in
        let error = await failure {
          try await ref.transaction { data in
            data.childData(byAppendingPath: "a").value = 7
            data.value = Date()
          }
        }
        #expect(error != nil)
      },
      Row("refused writes") { ref in
        #expect(await failure { try await ref.setValue(["a": Date()]) } != nil)
        #expect(await failure { try await ref.updateChildValues(["a": 5, "a/b": 1]) } != nil)
        #expect(await failure { try await ref.child("none").setPriority(1) } != nil)
      },
      Row("childByAutoId") { _ = $0.childByAutoId() },
      Row("synchronizing") { try await $0.database.synchronize() },
    ])
  func table(_ row: Row) async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("here")
    try await ref.setValue(["a": 1, "b": [".value": 2, ".priority": 3]])
    let recorder = Recorder(database)
    recorder.listen("", ref)
    recorder.listen("root", database.reference())
    recorder.listen("by value", ref.queryOrderedByValue().queryLimited(toLast: 1))
    _ = await recorder.take()
    try await row.body(ref)
    #expect(await recorder.take() == [])
    // And the listeners are there still.
    try await ref.child("a").setValue("told")
    #expect(await recorder.take().count == 7)
  }

  @Test("withLocalEvents: false shows the outcome once, and nothing before")
  func withoutLocalEvents() async throws {
    let database = Database.inMemory()
    let ref = database.reference()
    let recorder = Recorder(database)
    recorder.listen("", ref, [.value])
    _ = await recorder.take()
    await withCheckedContinuation { continuation in
      ref.runTransactionBlock(
        { data in
          data.value = 1
          data.value = 2
          return .success(withValue: data)
        }, andCompletionBlock: { _, _, _ in continuation.resume() }, withLocalEvents: false)
    }
    #expect(await recorder.take() == ["value 2"])
  }
}
