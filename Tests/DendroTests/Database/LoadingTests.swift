import Dendro
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

/// What an app sees of data that is read from a checkpoint when it is used.
@Suite("Data that is read on demand")
struct LoadingTests {
  private static func open(
    _ disk: SimulatedDisk, _ loading: DatabaseOptions.Loading = .onDemand
  ) throws -> Database {
    var options = DatabaseOptions()
    options.loading = loading
    return try Database.open(at: "/db", on: disk, options: options)
  }

  /// A closed database of so many posts that its checkpoint has several chunks.
  private static func database(_ disk: SimulatedDisk) async throws {
    let database = try open(disk)
    let posts = database.reference(withPath: "posts")
    for group in 0..<30 {
      try await posts.update { update in
        for number in 0..<100 {
          let key = "p\(group * 100 + number)"
          update.set("\(key)/title", "The title of post \(key), \(UUID().uuidString)")
          update.set("\(key)/stars", number)
        }
      }
    }
    try await database.checkpoint()
    try await database.close()
  }

  @Test("every way of reading, writing and listening")
  func onDemand() async throws {
    let disk = SimulatedDisk(seed: 1)
    try await Self.database(disk)
    let database = try Self.open(disk)
    let engine = try #require(database.engine)
    #expect(engine.statistics().unreadChunkCount > 1)
    let posts = database.reference(withPath: "posts")
    // By key: only the pages of the window are read.
    let last = try await posts.queryOrderedByKey().queryLimited(toLast: 2).getData()
    #expect(last.children.compactMap { ($0 as? DataSnapshot)?.key } == ["p998", "p999"])
    #expect(engine.statistics().unreadChunkCount > 0)
    #expect(try await posts.child("p7/stars").getData().value as? Int == 7)
    try await posts.child("p8/stars").increment(by: 5)
    let stars = try database.read { try $0.int(at: "posts/p8/stars") }
    #expect(stars == 13)
    let (_, result) = try await posts.child("p9/stars").runTransactionBlock { data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    }
    #expect(result.value as? Int == 10)
    let top = try await posts.queryOrdered(byChild: "stars").queryLimited(toLast: 1).getData()
    #expect(top.childrenCount == 1)
    #expect(engine.statistics().unreadChunkCount == 0)
    try await database.close()

    let again = try Self.open(disk)
    for try await snapshot in again.reference(withPath: "posts/p8").snapshots {
      #expect((snapshot.value as? [String: Any])?["stars"] as? Int == 13)
      break
    }
    let postsAgain = again.reference(withPath: "posts")
    let (all, _) = await postsAgain.observeSingleEventAndPreviousSiblingKey(of: .value)
    #expect(all.childrenCount == 3_000)
    try await again.close()
  }

  /// The key of a post that is in a damaged chunk.
  private static func unreadablePost(_ disk: SimulatedDisk) async throws -> String {
    let database = try open(disk)
    for number in stride(from: 0, to: 3_000, by: 25) {
      let post = database.reference(withPath: "posts/p\(number)")
      if (try? await post.getData()) == nil { return "p\(number)" }
    }
    throw DatabaseTestFailure.noUnreadablePost
  }

  private enum DatabaseTestFailure: Error { case noUnreadablePost }

  @Test("a damaged part fails all that needs it, with file and offset, and nothing else")
  func damage() async throws {
    let disk = SimulatedDisk(seed: 1)
    try await Self.database(disk)
    let name = try #require(disk.names(in: "/db").first { $0.hasSuffix(".checkpoint") })
    // In the first chunk.
    disk.flipBit(8 * 200, of: "/db/" + name)
    let key = try await Self.unreadablePost(disk.copy())
    let database = try Self.open(disk)
    let posts = database.reference(withPath: "posts")
    let bad = posts.child(key)
    func expect(_ error: (any Error)?, _ what: String) {
      let error = error as? DatabaseError
      #expect(error?.code == .corrupt && error?.file == "/db/" + name, "\(what)")
      #expect(error?.offset.map { $0 < 300 } == true, "\(what)")
    }
    func failure(_ what: String, _ body: () async throws -> Void) async {
      do {
        try await body()
        Issue.record("\(what) has found no damage")
      } catch {
        expect(error, what)
      }
    }
    await failure("getData") { _ = try await bad.getData() }
    await failure("getData of all") { _ = try await posts.getData() }
    await failure("a query") {
      _ = try await posts.queryOrderedByKey().queryStarting(atValue: key).queryLimited(toFirst: 3)
        .getData()
    }
    await failure("read") { _ = try database.read { try $0.int(at: "posts/\(key)/stars") } }
    await failure("set") { try await bad.child("title").setValue("new") }
    await failure("increment") { try await bad.child("stars").increment(by: 1) }
    await failure("update") { try await posts.updateChildValues(["\(key)/stars": 2, "z": 1]) }
    await failure("transaction") {
      _ = try await bad.runTransactionBlock { .success(withValue: $0) }
    }
    await failure("snapshots") { for try await _ in bad.snapshots {} }
    // What a server's authorizer asks for.
    let place = try Path(parsing: "posts/\(key)/stars")
    let pinned = try database.servedEngine().pin()
    #expect(throws: EngineError.self) { _ = try pinned.node.whole { $0.node(at: place) } }
    let increment = EncodedWrite(Draft(.increment(place, .integer(1))))
    #expect(throws: EngineError.self) {
      _ = try pinned.node.applying(increment, time: 0)
    }
    let other = try Path(parsing: "posts/p999/stars")
    _ = try pinned.node.whole { $0.node(at: other) }
    let (called, received) = AsyncStream<(any Error)?>.makeStream()
    bad.getData { error, _ in received.yield(error) }
    bad.observe(.value) { _ in
      received.yield(nil)
    } withCancel: { error in
      received.yield(error)
    }
    var calls = called.makeAsyncIterator()
    for what in ["getData with a block", "observe"] {
      expect(await calls.next() ?? nil, what)
    }
    // Everything else goes on.
    #expect(try await posts.child("p999/stars").getData().value as? Int == 99)
    try await posts.child("p999/stars").setValue(1)
    try await database.reference(withPath: "new").setValue(true)
    try await database.close()
  }

  // MARK: Damage and borrowed views

  private static let noteCount = 200
  private static let text = String(repeating: "lorem ipsum ", count: 300)

  /// A closed database of notes with long strings, one chunk of whose checkpoint is damaged.
  ///
  /// - Returns: the disk, and the notes whose strings cannot be read.
  private static func damagedNotes() async throws -> (SimulatedDisk, [String]) {
    let disk = SimulatedDisk(seed: 1)
    let database = try open(disk)
    try await database.reference(withPath: "notes").update { update in
      for number in 0..<noteCount {
        update.set("n\(1_000 + number)/text", "\(number) " + text)
        update.set("n\(1_000 + number)/title", "note \(number)")
      }
    }
    try await database.checkpoint()
    try await database.close()
    let name = try #require(disk.names(in: "/db").first { $0.hasSuffix(".checkpoint") })
    let byteCount = try #require(disk.contents(of: "/db/" + name)).count
    disk.flipBit(8 * (byteCount / 2), of: "/db/" + name)
    let trial = try open(disk.copy())
    var unreadable: [String] = []
    for number in 0..<noteCount {
      let text = trial.reference(withPath: "notes/n\(1_000 + number)/text")
      if (try? await text.getData()) == nil { unreadable.append("n\(1_000 + number)") }
    }
    try await trial.close()
    #expect(!unreadable.isEmpty && unreadable.count < noteCount)
    return (disk, unreadable)
  }

  @Test("a borrowed view never shows as missing what cannot be read")
  func damagedView() async throws {
    let (disk, unreadable) = try await Self.damagedNotes()
    let key = try #require(unreadable.first)
    let database = try Self.open(disk)
    func expectFailure(_ what: String, _ body: (borrowing DatabaseView) throws -> Void) {
      var hasReturned = false
      let error = #expect(throws: DatabaseError.self, "\(what)") {
        try database.read { view in
          try body(view)
          hasReturned = true
        }
      }
      #expect(error?.code == .corrupt, "\(what)")
      #expect(!hasReturned, "\(what)")
    }
    expectFailure("string") { _ = try $0.string(at: "notes/\(key)/text") }
    expectFailure("int") { _ = try $0.int(at: "notes/\(key)/text") }
    expectFailure("exists") { _ = try $0.exists(at: "notes/\(key)/text/below") }
    expectFailure("child") {
      try $0.child("notes/\(key)/text") { _ in _ = Issue.record("was called") }
    }
    expectFailure("in a child") {
      try $0.child("notes") { _ = try $0.string(at: "\(key)/text") }
    }
    expectFailure("after an error that was caught") {
      _ = try? $0.string(at: "notes/\(key)/text")
      _ = try $0.string(at: "notes/\(key)/title")
    }
    // Children: those before the first that cannot be read, each as it is.
    var seen: [String] = []
    let error = #expect(throws: DatabaseError.self) {
      try database.read { view in
        try view.child("notes") { notes in
          notes.forEachChild { key, note in
            note.forEachChild { field, value in
              guard field == "text" else { return }
              #expect(value.string?.hasSuffix(Self.text) == true)
              seen.append(key)
            }
          }
        }
      }
    }
    #expect(error?.code == .corrupt)
    #expect(Set(seen).isDisjoint(with: unreadable))
    #expect(!seen.isEmpty && seen == (0..<seen.count).map { "n\(1_000 + $0)" })
    // What can be read is as before.
    let readable = try #require(
      (0..<Self.noteCount).map { "n\(1_000 + $0)" }.last { !unreadable.contains($0) })
    let isThere = try database.read {
      try $0.string(at: "notes/\(readable)/text")?.hasSuffix(Self.text)
    }
    #expect(isThere == true)
    try await database.close()
  }

  @Test(
    "an empty string over a long one that cannot be read is refused, and not taken for no change")
  func emptyOverUnreadable() async throws {
    let (disk, unreadable) = try await Self.damagedNotes()
    let key = try #require(unreadable.last)
    let database = try Self.open(disk)
    let note = database.reference(withPath: "notes/\(key)")
    func expectRefusal(_ what: String, _ body: () async throws -> Void) async {
      #expect(await failure(body)?.code == .corrupt, "\(what)")
    }
    let nothing: Any = ""
    await expectRefusal("set") { try await note.child("text").setValue(nothing) }
    await expectRefusal("a typed set") { try await note.child("text").setValue("") }
    await expectRefusal("update") { try await note.updateChildValues(["text": ""]) }
    await expectRefusal("a typed update") { try await note.update { $0.set("text", "") } }
    await expectRefusal("transaction") {
      _ = try await note.child("text").runTransactionBlock { data in
        data.value = ""
        return .success(withValue: data)
      }
    }
    try await database.close()
  }
}
