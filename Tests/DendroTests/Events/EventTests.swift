import Dendro
import Foundation
import Testing

/// A state, a write, and the events of a listener at the root, in order.
struct Trace: CustomTestStringConvertible, @unchecked Sendable {
  let before: Any?
  let path: String
  let write: Write
  let events: [String]

  enum Write {
    case set(Any?)
    case update([AnyHashable: Any])
    case priority(Any?)
  }

  init(_ before: Any?, _ path: String, _ write: Write, _ events: [String]) {
    self.before = before
    self.path = path
    self.write = write
    self.events = events
  }

  var testDescription: String {
    switch write {
    case .set(let value): "set \(path) \(shown(value)) on \(shown(before))"
    case .update(let values): "update \(path) \(shown(values)) on \(shown(before))"
    case .priority(let priority): "set \(path)/.priority \(shown(priority)) on \(shown(before))"
    }
  }

  func perform(at root: DatabaseReference) async throws {
    let ref = root.child(path)
    switch write {
    case .set(let value): try await ref.setValue(value)
    case .update(let values): try await ref.updateChildValues(values)
    case .priority(let priority): try await ref.setPriority(priority)
    }
  }
}

@Suite("Events")
struct EventTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  nonisolated(unsafe) static let ranked: [String: Any] = [
    "a": [".value": 1, ".priority": 1], "b": [".value": 1, ".priority": 2],
    "c": [".value": 1, ".priority": 3],
  ]

  @Test(
    "plain writes, seen from the root",
    arguments: [
      Trace(
        ["b": 1, "d": 3, "g": 5, "h": 6], "/", .set(["b": 2, "bb": "x", "c": "y", "g": 5]),
        [
          "removed d=3", "removed h=6", #"added bb="x" after b"#, #"added c="y" after bb"#,
          "changed b=2 after nil", #"value {b:2,bb:"x",c:"y",g:5}"#,
        ]),
      Trace(["b": 2], "b", .set(2), []),
      Trace(["b": 1, "c": 2], "/", .set(nil), ["removed b=1", "removed c=2", "value null"]),
      Trace(5, "/", .set(["a": 1]), ["added a=1 after nil", "value {a:1}"]),
      Trace(["a": 1], "/", .set(7), ["removed a=1", "value 7"]),
      Trace(7, "q/r", .set(nil), []),
      Trace(
        ["a": ["b": ["c": 1]]], "a/b/c", .set(nil), ["removed a={b:{c:1}}", "value null"]),
      Trace(
        ["p": ["x": 1, "y": 2], "q": ["z": 3]], "/",
        .update(["p/x": NSNull(), "q/w": 5, "r/s/t": true]),
        [
          "added r={s:{t:true}} after q", "changed p={y:2} after nil",
          "changed q={w:5,z:3} after p", "value {p:{y:2},q:{w:5,z:3},r:{s:{t:true}}}",
        ]),
      Trace(
        ["q": ["w": 5], "r": 1], "/", .update(["q/.priority": 7]),
        [
          "moved q={.priority:7,w:5} after r", "changed q={.priority:7,w:5} after r",
          "value {q:{.priority:7,w:5},r:1}",
        ]),
      Trace(["a": 1], "/", .update([:]), []),
      Trace(
        ranked, "a", .priority(4),
        [
          "moved a={.priority:4,.value:1} after c", "changed a={.priority:4,.value:1} after c",
          "value {a:{.priority:4,.value:1},b:{.priority:2,.value:1},c:{.priority:3,.value:1}}",
        ]),
      Trace(
        ranked, "c", .set("z"),
        [
          #"moved c="z" after nil"#, #"changed c="z" after nil"#,
          #"value {a:{.priority:1,.value:1},b:{.priority:2,.value:1},c:"z"}"#,
        ]),
      Trace(["a": 1], "/", .priority("p"), [#"value {.priority:"p",a:1}"#]),
      Trace(
        ["a": 1], "/", .set(["b": 2, ".priority": 1]),
        ["removed a=1", "added b=2 after nil", "value {.priority:1,b:2}"]),
      Trace(1, "/", .set(1.0), []),
      Trace(1, "/", .set(true), ["value true"]),
      Trace(
        ["a": 1], "a", .priority(1),
        [
          "moved a={.priority:1,.value:1} after nil", "changed a={.priority:1,.value:1} after nil",
          "value {a:{.priority:1,.value:1}}",
        ]),
    ])
  func traces(_ trace: Trace) async throws {
    try await root.setValue(trace.before)
    let recorder = Recorder(database)
    recorder.listen("", root)
    _ = await recorder.take()
    try await trace.perform(at: root)
    #expect(await recorder.take() == trace.events)
  }

  @Test("across locations: descendants first, siblings in plain string order")
  func acrossLocations() async throws {
    try await root.setValue(["u": ["a": ["n": 1], "b": ["n": 2]], "o": 1])
    let recorder = Recorder(database)
    for (name, path) in [("root", "/"), ("u", "u"), ("ua", "u/a"), ("un", "u/a/n"), ("o", "o")] {
      recorder.listen(name, root.child(path))
    }
    _ = await recorder.take()
    try await root.updateChildValues(["u/a/n": 9, "o": 2])
    #expect(
      await recorder.take() == [
        "o:value 2", "un:value 9", "ua:changed n=9 after nil", "ua:value {n:9}",
        "u:changed a={n:9} after nil", "u:value {a:{n:9},b:{n:2}}", "root:changed o=2 after nil",
        "root:changed u={a:{n:9},b:{n:2}} after o", "root:value {o:2,u:{a:{n:9},b:{n:2}}}",
      ])
    try await root.child("u").setValue(nil)
    #expect(
      await recorder.take() == [
        "un:value null", "ua:removed n=9", "ua:value null", "u:removed a={n:9}",
        "u:removed b={n:2}", "u:value null", "root:removed u={a:{n:9},b:{n:2}}",
        "root:value {o:2}",
      ])
  }

  @Test("siblings in plain string order, not in the order of keys")
  func siblings() async throws {
    let recorder = Recorder(database)
    for (name, key) in [("nine", "9"), ("a", "a"), ("ten", "10")] {
      recorder.listen(name, root.child(key), [.value])
    }
    _ = await recorder.take()
    try await root.updateChildValues(["9": 1, "a": 1, "10": 1])
    #expect(await recorder.take() == ["ten:value 1", "nine:value 1", "a:value 1"])
    try await root.setValue(["9": 2, "a": 2, "10": 2])
    #expect(await recorder.take() == ["ten:value 2", "nine:value 2", "a:value 2"])
  }

  @Test("at one location in the order of registration, one change after the other")
  func sameLocation() async throws {
    try await root.setValue(["a": 1, "b": 2, "c": 3])
    let recorder = Recorder(database)
    recorder.listen("first", root, [.value])
    recorder.listen("all", root)
    recorder.listen("again", root, [.childRemoved, .childChanged])
    _ = await recorder.take()
    try await root.setValue(["b": 2, "c": 4])
    #expect(
      await recorder.take() == [
        "all:removed a=1", "again:removed a=1", "all:changed c=4 after b",
        "again:changed c=4 after b", "first:value {b:2,c:4}", "all:value {b:2,c:4}",
      ])
  }

  @Test("listeners above and below what is not there yet")
  func emptyLocations() async throws {
    let recorder = Recorder(database)
    recorder.listen("v", root.child("x"))
    recorder.listen("deep", root.child("x/y"))
    #expect(await recorder.take() == ["v:value null", "deep:value null"])
    try await root.child("x/y").setValue(1)
    #expect(
      await recorder.take() == ["deep:value 1", "v:added y=1 after nil", "v:value {y:1}"])
    try await root.child("x").setValue(["y": 1])
    #expect(await recorder.take() == [])
    try await root.child("x").setValue(["y": ["z": 1]])
    #expect(
      await recorder.take() == [
        "deep:added z=1 after nil", "deep:value {z:1}", "v:changed y={z:1} after nil",
        "v:value {y:{z:1}}",
      ])
    try await root.child("x/y/z").setValue(nil)
    #expect(
      await recorder.take() == [
        "deep:removed z=1", "deep:value null", "v:removed y={z:1}", "v:value null",
      ])
  }

  @Test("a write elsewhere raises no event")
  func elsewhere() async throws {
    let recorder = Recorder(database)
    recorder.listen("a", root.child("a/b"))
    _ = await recorder.take()
    try await root.child("a/c").setValue(1)
    try await root.child("b").setValue(1)
    try await root.child("a").updateChildValues(["d": 1])
    #expect(await recorder.take() == [])
  }
}
