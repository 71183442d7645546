import Dendro
import DendroTestSupport
import Foundation
import Testing

@Suite("JSON")
struct JSONTests {
  private let directory = TemporaryDirectory()
  private let ref = Database.inMemory().reference().child("rooms/7")

  @Test("a snapshot as JSON, in every format")
  func formats() async throws {
    try await ref.setValue(["b": 1.5, "a": ["x", "y"], "c": ["d": true]])
    try await ref.child("b").setPriority(2)
    let snapshot = try await ref.queryOrderedByValue().getData()
    #expect(snapshot.json() == #"{"a":["x","y"],"b":1.5,"c":{"d":true}}"#)
    #expect(
      snapshot.json(.priorities)
        == #"{"a":["x","y"],"b":{".value":1.5,".priority":2},"c":{"d":true}}"#)
    #expect(snapshot["c"].json(.pretty) == "{\n  \"d\": true\n}")
    #expect(snapshot["nothing"].json() == "null")
    #expect(snapshot["a/0"].json() == "\"x\"")
  }

  @Test("what is written as JSON is read back, priorities included")
  func back() async throws {
    try await ref.setValue([
      "b": 1.5, "a": ["x", "y"], "n": 9_007_199_254_740_993, "é": "\u{1F600}\n",
    ])
    try await ref.child("b").setPriority(2)
    let snapshot = try await ref.getData()
    try await ref.setJSON(snapshot.json([.priorities, .pretty]))
    #expect(try await ref.getData() == snapshot)
    try await ref.setJSON("null")
    #expect(try await ref.getData().isEmpty)
  }

  @Test("an update by the paths of an object, and server values")
  func update() async throws {
    try await ref.setValue(["a": 1, "b": 2])
    try await ref.updateJSON(
      #"{"a/x": 5, "b": null, "at": {".sv": "timestamp"}, "n": {".sv": {"increment": 2}}}"#)
    let snapshot = try await ref.getData()
    #expect(snapshot["a/x"].int == 5 && !snapshot["b"].exists() && snapshot["n"].int == 2)
    #expect((snapshot["at"].int ?? 0) > 1_700_000_000_000)
    try ref.withoutWaiting { try $0.updateJSON(#"{"a": null}"#) }
    try ref.withoutWaiting { try $0.child("c").setJSON("[1]") }
    #expect(try await ref.getData()["c/0"].int == 1)
  }

  @Test(
    "what cannot be data is refused before anything is written, with line and column",
    arguments: [
      ("{\"a\":\n  x}", DatabaseError.Code.invalidArgument, "line 2, column 3 (byte 8)"),
      ("", .invalidArgument, "line 1, column 1 (byte 0)"),
      ("{\"a.b\": 1}", .invalidKey, "line 1, column 2 (byte 1)"),
      ("{\"a\": 1e999}", .invalidArgument, "line 1"),
      ("{\"a\": 1} 2", .invalidArgument, "line 1, column 10 (byte 9)"),
    ])
  func refused(text: String, code: DatabaseError.Code, place: String) async throws {
    try await ref.setValue("before")
    for write in [
      { ref, text in try await ref.setJSON(text) },
      { ref, text in try ref.withoutWaiting { try $0.setJSON(text) } },
    ] as [(DatabaseReference, String) async throws -> Void] {
      let error = await failure { try await write(ref, text) }
      #expect(error?.code == code, "\(text)")
      #expect(
        error?.message.hasPrefix("the JSON for /rooms/7: \(place)") == true,
        "\(String(describing: error))")
    }
    #expect(try await ref.getData().string == "before")
  }

  @Test("a file appears complete, and is read as one write")
  func files() async throws {
    let file = URL(fileURLWithPath: directory.path + ".json")
    defer { try? FileManager.default.removeItem(at: file) }
    let values = Dictionary(uniqueKeysWithValues: (0..<20_000).map { ("key\($0)", $0) })
    try await ref.setValue(values)
    let snapshot = try await ref.getData()
    try "old".write(to: file, atomically: true, encoding: .utf8)
    try snapshot.writeJSON(to: file)
    #expect(try String(contentsOf: file, encoding: .utf8) == snapshot.json() + "\n")
    let folder = file.deletingLastPathComponent()
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      .filter { $0.hasPrefix(file.lastPathComponent) }
    #expect(left == [file.lastPathComponent])
    let other = Database.inMemory()
    let last = other.statistics.lastWrite
    try await other.reference(withPath: "rooms/7").setJSON(contentsOf: file)
    #expect(other.statistics.lastWrite == last + 1)
    #expect(try await other.reference(withPath: "rooms/7").getData() == snapshot)
  }

  @Test("files that cannot be read or written are errors that name them")
  func badFiles() async throws {
    let missing = URL(fileURLWithPath: directory.path + "/missing/x.json")
    let reading = await failure { try await ref.setJSON(contentsOf: missing) }
    #expect(reading?.code == .inputOutput && reading?.file == missing.path)
    #expect(reading?.message == "cannot read \(missing.path): No such file or directory")
    let snapshot = try await ref.getData()
    let writing = await failure { try snapshot.writeJSON(to: missing) }
    #expect(writing?.message == "cannot write \(missing.path): No such file or directory")
    let elsewhere = try #require(URL(string: "https://example.org/x.json"))
    #expect(await failure { try snapshot.writeJSON(to: elsewhere) }?.code == .invalidArgument)
    #expect(
      await failure { try await ref.setJSON(contentsOf: elsewhere) }?.code == .invalidArgument)
    let file = URL(fileURLWithPath: directory.path + ".bad.json")
    defer { try? FileManager.default.removeItem(at: file) }
    try "{".write(to: file, atomically: true, encoding: .utf8)
    let syntax = await failure { try await ref.setJSON(contentsOf: file) }
    #expect(syntax?.code == .invalidArgument)
    #expect(
      syntax?.message.hasPrefix("\(file.path), the JSON for /rooms/7: line 1, column 2") == true)
  }

  @Test("a bad reference and .info are refused")
  func badReferences() async throws {
    let database = Database.inMemory()
    let info = database.reference(withPath: ".info/connected")
    #expect(await failure { try await info.setJSON("1") }?.code == .notWritable)
    let bad = database.reference(withPath: "a.b")
    #expect(await failure { try await bad.updateJSON("{}") }?.code == .invalidPath)
  }
}
