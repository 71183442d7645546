import Dendro
import Foundation
import Testing

@Suite("Updates of several paths")
struct UpdateTests {
  struct Case: CustomTestStringConvertible, @unchecked Sendable {
    let before: Any?
    let path: String
    let update: [AnyHashable: Any]
    let after: String

    init(_ before: Any?, _ path: String, _ update: [AnyHashable: Any], _ after: String) {
      self.before = before
      self.path = path
      self.update = update
      self.after = after
    }

    var testDescription: String { "\(path) \(shown(update)) on \(shown(before))" }
  }

  @Test(
    "what stands there after",
    arguments: [
      Case(nil, "/", ["a": 1, "b/c": 2], "{a:1,b:{c:2}}"),
      Case(nil, "/", ["/a/b/": 1], "{a:{b:1}}"),
      Case(["x": 1, "y": 2], "/", ["y": 3], "{x:1,y:3}"),
      Case(["x": ["p": 1, "q": 2]], "/", ["x": ["q": 3]], "{x:{q:3}}"),
      Case(["x": ["p": 1, "q": 2]], "/", ["x/q": 3], "{x:{p:1,q:3}}"),
      Case(["x": 1, "y": 2], "/", ["y": NSNull()], "{x:1}"),
      Case(["x": 1, "y": 2], "/", ["y": Optional<Int>.none as Any], "{x:1}"),
      Case(["x": 1], "/", [:], "{x:1}"),
      Case(["x": 1], "/", ["/": ["y": 2]], "{y:2}"),
      Case(nil, "/", ["a": 1, "ab": 2], "{a:1,ab:2}"),
      Case(nil, "/", ["a/b": 1, "a/c": 2], "{a:{b:1,c:2}}"),
      Case(nil, "/", ["m/x": 1, "m/.priority": 3], "{m:{.priority:3,x:1}}"),
      Case(["x": 1], "/", ["gone/.priority": 3], "{x:1}"),
      Case(["n": 1], "/n", ["a": 1, "b": 2], "{n:{a:1,b:2}}"),
      // The last child is removed before the new one is set, and the priority with it; or after it.
      Case(["m": ["x": 1, ".priority": 3]], "/m", ["x": NSNull(), "y": 2], "{m:{y:2}}"),
      Case(
        ["m": ["x": 1, ".priority": 3]], "/m", ["x": NSNull(), "a": 2], "{m:{.priority:3,a:2}}"),
      Case(["k": 5], "/k", ["a": NSNull()], "{k:5}"),
      Case(["k": 5], "/k", ["a": NSNull(), "b": 1], "{k:{b:1}}"),
      Case(
        ["m": ["x": 1, ".priority": 3]], "/", ["m/x": 2], "{m:{.priority:3,x:2}}"),
      Case(["a": 1], "/", ["a/.priority": "p"], "{a:{.priority:\"p\",.value:1}}"),
      Case(
        ["a": [".value": 1, ".priority": 2]], "/", ["a/.priority": NSNull()], "{a:1}"),
      Case(["q": ["w": 5]], "/", ["q/.priority": 7], "{q:{.priority:7,w:5}}"),
      Case(
        ["n": 1], "/", ["n": ServerValue.increment(2), "m": ServerValue.increment(3)],
        "{m:3,n:3}"),
    ])
  func cases(_ example: Case) async throws {
    let root = Database.inMemory().reference()
    try await root.setValue(example.before)
    try await root.child(example.path).updateChildValues(example.update)
    #expect(shown(try await root.getData().valueInExportFormat()) == example.after)
  }

  static let refused: [Case] = [
    Case(nil, "/", ["a": 1, "a/b": 2], "one path is above another"),
    Case(nil, "/", ["a": 1, "/a": 2], "one path twice"),
    Case(nil, "/", ["/": 1, "a": 2], "the location itself is above all"),
    Case(nil, "/", ["a/b": 1, "a/b/.priority": 2], "a priority is below its node"),
    Case(nil, "/", ["a.b": 1], "key"),
    Case(nil, "/", ["a/$b": 1], "key"),
    Case(nil, "/", ["a/.value": 1], "key"),
    Case(nil, "/", ["a/.sv": 1], "key"),
    Case(nil, "/", ["a/b.priority": 1], "key"),
    Case(nil, "/", ["a/.priority": true], "priority"),
    Case(nil, "/", ["a/.priority": ["x": 1]], "priority"),
    Case(nil, "/", ["a": Date()], "type"),
    Case(nil, "/", [1: 1], "path"),
    Case(nil, "/", ["a": 1, "b": ["c.d": 1]], "key in the value"),
  ]

  @Test("contradictions and bad paths are refused whole", arguments: refused)
  func refusals(_ example: Case) async throws {
    let root = Database.inMemory().reference()
    try await root.setValue(["kept": 1])
    let error = await failure { try await root.updateChildValues(example.update) }
    #expect(error?.name == "InvalidFirebaseData", "\(example.after)")
    #expect(shown(try await root.getData().value) == "{kept:1}")
  }

  @Test("an update is one transition: one batch of events")
  func oneTransition() async throws {
    let database = Database.inMemory()
    let root = database.reference()
    let recorder = Recorder(database)
    recorder.listen("", root, [.value])
    try await root.updateChildValues(["a/x": 1, "b/y": 2, "b/.priority": 4])
    #expect(
      await recorder.take() == ["value null", "value {a:{x:1},b:{.priority:4,y:2}}"])
  }
}
