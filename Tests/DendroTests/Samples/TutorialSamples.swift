import Dendro
import Foundation
import Testing

private func print(_ items: Any...) { SampleOutput.print(items) }

@Suite("Tutorial.md")
struct TutorialSamples {
  // sample
  struct Todo {
    let database: Database
    var items: DatabaseReference { database.reference(withPath: "items") }

    /// Adds an item at the end. Once this returns, no crash and no power loss takes it away.
    func add(_ text: String) async throws {
      let item = items.childByAutoId()
      try await item.setValue(["text": text, "done": false, "added": ServerValue.timestamp()])
    }

    /// Marks the item with this number, counted from 1, as done.
    func finish(_ number: Int) async throws {
      let keys = try await items.queryOrderedByKey().getData().map(\.key)
      guard keys.indices.contains(number - 1) else { throw TodoError.noSuchItem(number) }
      try await items.child("\(keys[number - 1])/done").setValue(true)
    }

    /// The list as lines.
    static func lines(_ list: DataSnapshot) -> [String] {
      list.enumerated().map { index, item in
        let mark = item["done"].bool == true ? "x" : " "
        return "\(index + 1). [\(mark)] \(item["text"].string ?? "")"
      }
    }
  }

  enum TodoError: Error {
    case noSuchItem(Int)
  }
  // end

  // sample
  func run(_ words: [String], in directory: String) async throws {
    let database = try await Database.open(at: directory)
    let todo = Todo(database: database)
    switch words.first {
    case "add": try await todo.add(words.dropFirst().joined(separator: " "))
    case "done": try await todo.finish(Int(words.last ?? "") ?? 0)
    default: for line in Todo.lines(try await todo.items.getData()) { print(line) }
    }
    try await database.close()
  }
  // end

  // sample
  func watch(_ directory: String) async throws {
    let database = try await Database.open(following: directory)
    for try await list in database.reference(withPath: "items").snapshots {
      print("--")
      for line in Todo.lines(list) { print(line) }
    }
  }
  // end

  @Test("the list, and a process that follows it")
  func everything() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("dendro-todo-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try await run(["add", "buy", "milk"], in: folder.path)
    let follower = try await Database.open(following: folder.path)
    var lists = follower.reference(withPath: "items").snapshots.makeAsyncIterator()
    #expect(Todo.lines(try #require(try await lists.next())) == ["1. [ ] buy milk"])
    try await run(["add", "plant", "a", "tree"], in: folder.path)
    let both = ["1. [ ] buy milk", "2. [ ] plant a tree"]
    #expect(Todo.lines(try #require(try await lists.next())) == both)
    try await run(["done", "1"], in: folder.path)
    let done = ["1. [x] buy milk", "2. [ ] plant a tree"]
    #expect(Todo.lines(try #require(try await lists.next())) == done)
    try await run([], in: folder.path)
    await #expect(throws: TodoError.self) { try await run(["done", "9"], in: folder.path) }
    try await follower.close()
    try await SampleOutput().run(until: "1. [x] buy milk") { try await watch(folder.path) }
  }
}
