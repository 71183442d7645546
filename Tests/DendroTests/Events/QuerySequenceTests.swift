import Dendro
import DendroTree
import Dispatch
import Foundation
import DendroTestSupport
import Testing

@Suite("Queries as asynchronous sequences")
struct QuerySequenceTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  private func line(_ event: ChildEvent) -> String {
    Recorder.line("", event.type, event.snapshot, event.previousSiblingKey)
  }

  // MARK: What comes

  @Test("snapshots: what is here, then what it becomes, in the order of the query")
  func snapshots() async throws {
    try await root.setValue(["a": 3, "b": 1, "c": 2])
    var values = root.queryOrderedByValue().queryLimited(toLast: 2).snapshots.makeAsyncIterator()
    let first = try #require(try await values.next())
    #expect(first.map(\.key) == ["c", "a"] && first.ref == root)
    try await root.child("b").setValue(0)  // Outside of the window: no event.
    try await root.child("b").setValue(9)
    let second = try #require(try await values.next())
    #expect(second.map(\.key) == ["a", "b"])
    try await root.setValue(nil)
    #expect(try await values.next()?.exists() == false)
  }

  @Test("snapshots of an empty location begin with nothing")
  func nothing() async throws {
    for try await snapshot in root.child("x").snapshots {
      #expect(!snapshot.exists())
      break
    }
  }

  @Test("a slow consumer of snapshots gets the newest one")
  func coalescing() async throws {
    var values = root.child("n").snapshots.makeAsyncIterator()
    _ = try await values.next()
    plainly { for number in 1...10_000 { root.child("n").setValue(number) } }
    #expect(try await values.next()?.int == 10_000)
    try await root.child("n").setValue(0)
    #expect(try await values.next()?.int == 0)
  }

  @Test("child events: those that are here, then each change, in order")
  func childEvents() async throws {
    try await root.setValue(["a": 1, "b": 2])
    var events = root.queryOrderedByValue().childEvents().makeAsyncIterator()
    var lines: [String] = []
    func take(_ count: Int) async throws -> [String] {
      lines = []
      for _ in 0..<count {
        if let event = try await events.next() { lines.append(line(event)) }
      }
      return lines
    }
    #expect(try await take(2) == ["added a=1 after nil", "added b=2 after a"])
    try await root.updateChildValues(["a": NSNull(), "b": 3, "c": 1])
    try await root.child("c").setValue(4)
    #expect(
      try await take(6) == [
        "removed a=1", "added c=1 after nil", "moved b=3 after c", "changed b=3 after c",
        "moved c=4 after b", "changed c=4 after b",
      ])
  }

  @Test("up to 64 writes are delivered one by one, then the difference from the last state seen")
  func lag() async throws {
    var events = root.childEvents().makeAsyncIterator()
    try await root.child("k").setValue(0)
    #expect(try await events.next().map(line) == "added k=0 after nil")
    plainly { for number in 1...64 { root.child("k").setValue(number) } }
    for number in 1...64 {
      #expect(try await events.next().map(line) == "changed k=\(number) after nil")
    }
    plainly { for number in 0..<10_000 { root.child("k\(number % 10)").setValue(number) } }
    try await root.child("z").setValue(true)
    var list: [String: Int] = ["k": 64]
    var eventCount = 0
    while let event = try await events.next(), event.snapshot.key != "z" {
      eventCount += 1
      #expect(
        (list[event.snapshot.key] == nil) == (event.type == .childAdded),
        "each event fits the earlier ones")
      list[event.snapshot.key] = event.snapshot.int
    }
    #expect(eventCount < 200)
    var expected = ["k": 64]
    for number in 9_990..<10_000 { expected["k\(number % 10)"] = number }
    #expect(list == expected)
  }

  @Test("iterators and listeners of one order share one index, wherever each has got to")
  func sharedIndex() async throws {
    let count = 4_000
    var values: [String: Any] = [:]
    for number in 0..<count { values["k\(number)"] = ["rank": number * 7_919 % count] }
    try await root.setValue(values)
    let query = root.queryOrdered(byChild: "rank").queryLimited(toLast: 3)
    root.observe(.value) { _ in }  // It keeps the place, whose comparisons are counted.
    await settle(database)
    #expect(database.comparisonCount(at: .root) == 0)

    var events = query.childEvents().makeAsyncIterator()
    for _ in 0..<3 { _ = try await events.next() }
    let once = database.comparisonCount(at: .root)
    // Sorted once: n log n comparisons and a few more.
    #expect(once > count && once < 60 * count)

    var snapshots = query.snapshots.makeAsyncIterator()
    #expect(try await snapshots.next()?.map { $0["rank"].int } == [3997, 3998, 3999])
    var others = root.queryOrdered(byChild: "rank").queryLimited(toFirst: 2).childEvents()
      .makeAsyncIterator()
    for _ in 0..<2 { _ = try await others.next() }
    let recorder = Recorder(database)
    recorder.listen("", query, [.childAdded])
    #expect(await recorder.take().count == 3)
    try await root.child("new").setValue(["rank": count])
    #expect(await recorder.take() == ["added new={rank:4000} after \(key(rank: 3999, count))"])
    #expect(try await events.next()?.type == .childRemoved)
    #expect(try await events.next()?.snapshot.key == "new")
    #expect(try await snapshots.next()?.map { $0["rank"].int } == [3998, 3999, 4000])
    #expect(database.comparisonCount(at: .root) < once + 1_000)
    root.removeAllObservers()
  }

  private func key(rank: Int, _ count: Int) -> String {
    (0..<count).first { $0 * 7_919 % count == rank }.map { "k\($0)" } ?? ""
  }

  @Test("a callback queue that is held up does not hold them up")
  @concurrent func independence() async throws {
    let gate = DispatchSemaphore(value: 0)
    let queue = DispatchQueue(label: "held up")
    database.callbackQueue = queue
    queue.async { gate.wait() }
    var values = root.child("n").snapshots.makeAsyncIterator()
    var events = root.childEvents().makeAsyncIterator()
    #expect(try await values.next()?.exists() == false)
    async let next = values.next()
    plainly { root.child("n").setValue(1) }
    #expect(try await events.next().map(line) == "added n=1 after nil")
    plainly { root.child("n").setValue(2) }
    #expect(try await events.next().map(line) == "changed n=2 after nil")
    #expect([1, 2].contains(try await next?.int))
    gate.signal()
  }

  // MARK: The end

  @Test("a bad query throws its error, once, typed; so does a database that was closed")
  func errors() async throws {
    do {
      for try await _ in root.queryLimited(toFirst: 0).snapshots { Issue.record("a value") }
      Issue.record("no error")
    } catch {
      let typed: DatabaseError = error
      #expect(typed.code == .invalidQuery)
    }
    var events = root.child("#").childEvents().makeAsyncIterator()
    #expect(await failure { _ = try await events.next() }?.code == .invalidPath)
    #expect(try await events.next() == nil)
    try await database.close()
    var late = root.snapshots.makeAsyncIterator()
    #expect(await failure { _ = try await late.next() }?.code == .closed)
    #expect(try await late.next() == nil)
    #expect(database.listenedCount == 0)
  }

  @Test("closing ends them, after what happened before")
  func closing() async throws {
    var events = root.childEvents().makeAsyncIterator()
    var values = root.snapshots.makeAsyncIterator()
    try await root.child("a").setValue(1)
    _ = try await events.next()
    _ = try await values.next()
    async let waiting = Task { [root] in
      var count = 0
      for try await _ in root.child("other").snapshots { count += 1 }
      return count
    }.value
    while database.listenedCount < 3 { await Task.yield() }
    try await root.child("a").setValue(2)
    try await root.child("a").setValue(3)
    try await database.close()
    #expect(try await events.next().map(line) == "changed a=2 after nil")
    #expect(try await events.next().map(line) == "changed a=3 after nil")
    #expect(try await events.next() == nil)
    #expect(try await values.next()?["a"].int == 3)
    #expect(try await values.next() == nil)
    #expect(try await values.next() == nil)
    #expect(try await waiting <= 1)
    #expect(database.listenedCount == 0)
  }

  @Test("cancellation ends the loop, whether it waits or not yet began")
  func cancellation() async throws {
    let begun = Shared(0)
    let tasks = (0..<20).map { number in
      Task { [root] in
        var count = 0
        if number % 2 == 0 {
          for try await _ in root.snapshots {
            count += 1
            begun.withLock { $0 += 1 }
          }
        } else {
          for try await _ in root.childEvents() { count += 1 }
        }
        return count
      }
    }
    // Some are cancelled while they wait, some at any time before.
    while begun.withLock({ $0 }) < 5 { await Task.yield() }
    for task in tasks { task.cancel() }
    for (number, task) in tasks.enumerated() {
      #expect(try await task.value <= (number % 2 == 0 ? 1 : 0))
    }
    #expect(database.listenedCount == 0)
  }

  @Test("an iterator that is freed, with its loop or alone, stops listening")
  func deinitialization() async throws {
    try await root.setValue(["a": 1])
    for try await _ in root.snapshots { break }
    #expect(database.listenedCount == 0)
    do {
      var one = root.snapshots.makeAsyncIterator()
      var two = root.child("a").childEvents().makeAsyncIterator()
      let unused = root.snapshots.makeAsyncIterator()
      #expect(database.listenedCount == 0, "nothing was requested yet")
      _ = try await one.next()
      async let nothing = two.next()
      while database.listenedCount < 2 { await Task.yield() }
      try await root.child("a/b").setValue(1)
      _ = try await nothing
      withExtendedLifetime(unused) {}
    }
    #expect(database.listenedCount == 0)
  }

  @Test("the database is released with its last iterator")
  func lifetime() async throws {
    weak var gone: Database?
    do {
      var values: DatabaseQuery.Snapshots.Iterator? = {
        let database = Database.inMemory()
        gone = database
        return database.reference().snapshots.makeAsyncIterator()
      }()
      #expect(try await values?.next()?.exists() == false)
      #expect(gone != nil)
      values = nil
    }
    #expect(gone == nil)
  }

  @Test("on the main actor, beside other loops")
  @MainActor func mainActor() async throws {
    var keys: [String] = []
    try await root.setValue(["a": 1, "b": 2])
    for try await event in root.childEvents() {
      MainActor.assertIsolated()
      keys.append(event.snapshot.key)
      if keys.count == 2 { break }
    }
    #expect(keys == ["a", "b"])
  }

  // MARK: Load

  @Test("4 writers, 24 consumers: each ends up with what a read shows")
  func load() async throws {
    let list = root.child("list")
    let queries = [
      list, list.queryOrderedByValue().queryLimited(toLast: 5),
      list.queryOrderedByKey().queryStarting(atValue: "w1"),
    ]
    let violations = Shared<[String]>([])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for consumer in 0..<24 {
        let query = queries[consumer % 3]
        group.addTask {
          var mirror: [String: Int] = [:]
          var lastSum = 0
          if consumer % 2 == 0 {
            for try await event in query.childEvents() {
              let key = event.snapshot.key
              let fits = (mirror[key] == nil) == (event.type == .childAdded)
              if !fits { violations.withLock { $0.append("\(event.type) \(key)") } }
              mirror[key] = event.type == .childRemoved ? nil : event.snapshot.int
              if mirror["z"] != nil { break }
            }
          } else {
            for try await snapshot in query.snapshots {
              mirror = Dictionary(uniqueKeysWithValues: snapshot.map { ($0.key, $0.int ?? 0) })
              let sum = mirror.values.reduce(0, +)
              let isBack = sum < lastSum
              if isBack { violations.withLock { $0.append("back to the sum \(sum)") } }
              lastSum = sum
              if mirror["z"] != nil { break }
            }
          }
        }
      }
      try await withThrowingTaskGroup(of: Void.self) { writers in
        for writer in 0..<4 {
          writers.addTask {
            for number in 1...400 {
              try await list.child("w\(writer)-\(number % 7)").setValue(number)
            }
          }
        }
        try await writers.waitForAll()
      }
      // The greatest of all, in every window.
      try await list.child("z").setValue(1_000_000)
      try await group.waitForAll()
    }
    #expect(violations.value == [])
    #expect(database.listenedCount == 0)
  }
}
