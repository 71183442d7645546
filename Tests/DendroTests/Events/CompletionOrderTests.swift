import Dendro
import Dispatch
import DendroTestSupport
import Testing

/// Events of a write come before its completion, also if listeners lag and states are left out.
@Suite("Events before completions")
struct CompletionOrderTests {
  let database = Database.inMemory()
  var list: DatabaseReference { database.reference(withPath: "list") }

  @Test("for every listener, while the queue is held up again and again", arguments: 0..<6)
  func callbacks(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let queue = DispatchQueue(label: "callbacks")
    database.callbackQueue = queue
    let list = list
    let names = ["value above", "value", "child", "window", "limit"]
    /// The newest number that each listener got.
    let received = Shared([Int](repeating: -1, count: names.count))
    @Sendable func number(_ snapshot: DataSnapshot) -> Int {
      snapshot.int ?? snapshot["n"].int ?? -1
    }
    let queries: [DatabaseQuery] = [
      list, list.child("n"), list, list.queryOrderedByValue().queryLimited(toLast: 1),
      list.queryLimited(toLast: 2),
    ]
    for (index, query) in queries.enumerated() {
      let types: [DataEventType] = index == 2 ? [.childAdded, .childChanged] : [.value]
      for type in types {
        query.observe(type) { snapshot in
          let number = number(snapshot)
          received.withLock { $0[index] = max($0[index], number) }
        }
      }
    }
    let violations = Shared<[String]>([])
    let completed = Shared<[Int]>([])
    var isHeldUp = false
    for number in 0..<600 {
      if random.oneIn(isHeldUp ? 120 : 25) {
        if isHeldUp { queue.resume() } else { queue.suspend() }
        isHeldUp.toggle()
      }
      list.child("n").setValue(number) { _, _ in
        completed.withLock { $0.append(number) }
        for (name, seen) in zip(names, received.value) where seen < number {
          violations.withLock { $0.append("\(name) had \(seen) when \(number) was done") }
        }
      }
      // The others get it too, but it is not theirs.
      plainly { if random.oneIn(3) { list.child("a").setValue(-2 - number) } }
    }
    if isHeldUp { queue.resume() }
    try await list.child("last").setValue(-1)
    await settle(database)
    #expect(completed.value == Array(0..<600), "seed \(seed)")
    #expect(violations.value.prefix(5) == [], "seed \(seed)")
    list.removeAllObservers()
    list.child("n").removeAllObservers()
  }

  @Test("a sequence that is asked after a write's await shows it, however far it lags")
  func snapshots() async throws {
    var values = list.child("n").snapshots.makeAsyncIterator()
    _ = try await values.next()
    var number = 0
    for lag in [1, 2, 63, 64, 65, 200] {
      for _ in 0..<lag {
        number += 1
        try await list.child("n").setValue(number)
      }
      #expect(try await values.next()?.int == number)
    }
  }

  @Test("children's events of a sequence end with the newest state, however far it lags")
  func childEvents() async throws {
    var events = list.childEvents().makeAsyncIterator()
    var number = 0
    for lag in [1, 2, 63, 64, 65, 200] {
      for _ in 0..<lag {
        number += 1
        try await list.child("n").setValue(number)
      }
      // None is left out up to 64, and none comes twice.
      var last = 0
      var count = 0
      while last < number {
        last = try #require(try await events.next()?.snapshot.int)
        count += 1
      }
      #expect(
        last == number && count == (number == 1 || lag <= 64 ? lag : lag - 64 * ((lag - 1) / 64)))
    }
  }
}
