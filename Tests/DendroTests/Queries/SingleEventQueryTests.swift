import Dendro
import DendroTree
import Dispatch
import Foundation
import Testing

/// One event of a query: read once, without what a listener that stays has to keep.
@Suite("Single events of queries")
struct SingleEventQueryTests {
  let database = Database.inMemory()
  var posts: DatabaseReference { database.reference(withPath: "posts") }
  static let count = 5_000

  private func fill() async throws {
    var values: [String: Any] = [:]
    for number in 0..<Self.count {
      values["k\(100_000 + number)"] = [
        "rank": number * 7_919 % Self.count, "even": number % 2 == 0,
      ]
    }
    try await posts.setValue(values)
  }

  private func single(_ query: DatabaseQuery, _ type: DataEventType) async -> String {
    let (snapshot, previous) = await query.observeSingleEventAndPreviousSiblingKey(of: type)
    let keys = type == .value ? snapshot.map(\.key) : [snapshot.key]
    return "\(keys) after \(previous ?? "nil")"
  }

  static let queries: [(String, @Sendable (DatabaseReference) -> DatabaseQuery)] = [
    ("last by child", { $0.queryOrdered(byChild: "rank").queryLimited(toLast: 3) }),
    ("first by child", { $0.queryOrdered(byChild: "rank").queryLimited(toFirst: 3) }),
    (
      "range by child",
      { $0.queryOrdered(byChild: "rank").queryStarting(atValue: 10).queryEnding(atValue: 12) }
    ),
    (
      "equal",
      { $0.queryOrdered(byChild: "even").queryEqual(toValue: true).queryLimited(toFirst: 2) }
    ),
    ("by key", { $0.queryOrderedByKey().queryLimited(toLast: 3) }),
    ("by value", { $0.queryOrderedByValue().queryLimited(toLast: 2) }),
  ]

  @Test(
    "a single event compares nothing, and is what a listener gets first", arguments: queries.indices
  )
  func comparesNothing(index: Int) async throws {
    try await fill()
    let query = Self.queries[index].1(posts)
    // It keeps the place, whose comparisons are counted.
    let handle = posts.observe(.value) { _ in }
    await settle(database)
    let path = try Path(parsing: "posts")
    let value = await single(query, .value)
    let child = await single(query, .childAdded)
    await settle(database)
    #expect(database.comparisonCount(at: path) == 0)

    let first = Shared<[String]>([])
    query.observe(.value) { snapshot in
      first.withLock { $0.append("\(snapshot.map(\.key)) after nil") }
    }
    query.observe(
      .childAdded,
      andPreviousSiblingKeyWith: { snapshot, previous in
        first.withLock { $0.append("\([snapshot.key]) after \(previous ?? "nil")") }
      })
    await settle(database)
    #expect([value, child] == Array(first.value.prefix(2)))
    query.removeAllObservers()
    posts.removeObserver(withHandle: handle)
  }

  @Test("if nothing is shown, the first child that comes is the event")
  func waits() async throws {
    try await fill()
    let query = posts.queryOrdered(byChild: "rank").queryStarting(atValue: Self.count + 5)
    let received = Shared<[String]>([])
    query.observeSingleEvent(of: .childAdded) { snapshot in
      received.withLock { $0.append(snapshot.key) }
    }
    await settle(database)
    try await posts.child("x").setValue(["rank": Self.count + 6])
    try await posts.child("y").setValue(["rank": Self.count + 7])
    while received.withLock({ $0.isEmpty }) { await settle(database) }
    await settle(database)
    #expect(received.value == ["x"])
  }

  @Test("a single event that is being worked out when the database is closed still comes")
  func closing() async throws {
    try await fill()
    let query = posts.queryOrdered(byChild: "rank").queryLimited(toLast: 1)
    let received = Shared<[String]>([])
    for _ in 0..<10 {
      query.observeSingleEvent(of: .value) { snapshot in
        received.withLock { $0.append("value \(snapshot.childrenCount)") }
      } withCancel: { error in
        received.withLock { $0.append("\(error)") }
      }
    }
    posts.observe(.childRemoved) { _ in
    } withCancel: { _ in
      received.withLock { $0.append("cancelled") }
    }
    try await database.close()
    while received.withLock({ $0.count }) < 11 { await Task.yield() }
    #expect(received.value == Array(repeating: "value 1", count: 10) + ["cancelled"])
  }
}
