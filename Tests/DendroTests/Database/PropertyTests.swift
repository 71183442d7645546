import Dendro
import DendroTestSupport
import Foundation
import Testing

@Suite("Properties")
struct PropertyTests {
  private let directory = TemporaryDirectory()

  @Test("a reference knows its path, which makes the same reference")
  func path() {
    let database = Database.inMemory()
    for path in ["/", "/users/ada", "/a b/é", "/.info/connected"] {
      let ref = database.reference(withPath: path)
      #expect(ref.path == path)
      #expect(database.reference(withPath: ref.path) == ref)
    }
    #expect(database.reference().child("a").queryLimited(toLast: 1).ref.path == "/a")
  }

  @Test("a database knows where it is, and what it can do")
  func database() async throws {
    let memory = Database.inMemory()
    #expect(memory.directory == nil && !memory.isReadOnly && !memory.isClosed)
    let writer = try await Database.open(at: directory.path)
    #expect(writer.directory == directory.path && !writer.isReadOnly && !writer.isClosed)
    let url = URL(fileURLWithPath: directory.path)
    let reader = try await Database.open(readOnly: url)
    let follower = try await Database.open(following: url)
    #expect(reader.isReadOnly && follower.isReadOnly)
    #expect(follower.directory == directory.path)
    for database in [reader, follower, writer] { try await database.close() }
    #expect(writer.isClosed)
    let other = try #require(URL(string: "https://example.org/db"))
    #expect(
      await failure { _ = try await Database.open(readOnly: other) }?.code == .invalidArgument)
    #expect(
      await failure { _ = try await Database.open(following: other) }?.code == .invalidArgument)
    #expect(
      await failure { _ = try await Database.open(at: other, waitingFor: .zero) }?.code
        == .invalidArgument)
  }

  @Test("snapshots are equal if they show the same")
  func snapshots() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("a")
    try await ref.setValue(["x": 2, "y": 1])
    let first = try await ref.getData()
    #expect(first == first && first.count == 2 && !first.isEmpty)
    #expect(try await ref.getData() == first)
    #expect(try await ref.queryOrderedByValue().getData() != first)
    #expect(first["x"] == first.childSnapshot(forPath: "x"))
    #expect(first["x"] != first["y"])
    try await ref.child("x").setPriority(1)
    #expect(try await ref.getData() != first)
    try await ref.setValue(["x": 2, "y": 1])
    #expect(try await ref.getData() == first)
    // A copy of another database.
    let copy = Database.inMemory()
    try await copy.reference().child("a").setValue(["x": 2, "y": 1])
    #expect(try await copy.reference().child("a").getData() == first)
    try await ref.removeValue()
    let nothing = try await ref.getData()
    #expect(nothing.isEmpty && nothing.count == 0 && nothing != first)
  }

  @Test("a clock and push ids of a test's own")
  func clock() async throws {
    let time = Shared(Date(timeIntervalSince1970: 1_000))
    let number = Shared(0)
    var options = DatabaseOptions()
    options.clock = { time.value }
    options.pushID = {
      number.withLock {
        $0 += 1
        return "id\($0)"
      }
    }
    let database = try await Database.open(at: directory.path, options: options)
    let ref = database.reference().child("a")
    try await ref.setValue(ServerValue.timestamp())
    #expect(try await ref.getData().int == 1_000_000)
    time.withLock { $0 += 0.25 }
    try await ref.setValue(ServerValue.timestamp())
    #expect(try await ref.getData().int == 1_000_250)
    #expect(database.reference().childByAutoId().key == "id1")
    #expect(try await ref.addChild(from: 5) == "id2")
    #expect(try await database.historyRange().newestTime == time.value)
    // One that goes wrong.
    time.withLock { $0 = Date(timeIntervalSince1970: .nan) }
    try await ref.setValue(1)
    try await database.close()
    options.pushID = { "a.b" }
    let memory = Database.inMemory(options: options)
    let error = await failure { try await memory.reference().childByAutoId().setValue(1) }
    #expect(error?.code == .invalidKey)
  }
}
