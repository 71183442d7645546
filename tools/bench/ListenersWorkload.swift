import Dendro
import DendroTesting
import Foundation
import Synchronization

extension Workload {
  static let listeners = Workload(
    name: "listeners",
    sentence: """
      100,000 sets of ranks in a list of 100,000 children, with various listeners, and 100,000 sets of \
      titles of 10,000 posts, with a listener at each.
      """
  ) { session in
    try await runList(session)
    try await runPosts(session)
  }

  // MARK: One list

  /// The listeners that exist while the list is written to.
  private enum Audience: String, CaseIterable {
    case empty = "0 listeners"
    case elsewhere = "100,000 listeners elsewhere"
    case value = "a value listener to one child"
    case window = "limitToLast(100) by rank"

    /// Adds the listeners.
    func listen(to list: DatabaseReference, _ count: Int, _ counter: EventCounter) {
      switch self {
      case .empty: break
      case .elsewhere:
        for number in 0..<count {
          list.root.child("elsewhere/\(number % 1_000)/\(number)").observe(.value) { _ in }
        }
      case .value:
        list.child("post-1000000").observe(.value) { counter.count($0.childrenCount) }
      case .window:
        list.queryOrdered(byChild: "rank").queryLimited(toLast: 100)
          .observe(.childAdded) { counter.count($0.childrenCount) }
      }
    }
  }

  private static func runList(_ session: Session) async throws {
    let childCount = session.scaled(100_000)
    let setCount = session.scaled(100_000)
    let children = Dictionary(
      uniqueKeysWithValues: (0..<childCount).map { number in
        ("post-\(1_000_000 + number)", ["rank": number * 7_919 % childCount])
      })
    var written: [Audience: [Double]] = [:]
    var delivered: [Audience: [Double]] = [:]
    var attached: [Double] = []
    for _ in 0..<session.rounds {
      for audience in Audience.allCases {
        let database = Database.inMemory()
        let list = database.reference(withPath: "posts")
        try await list.setValue(children)
        let counter = EventCounter()
        let attach = ContinuousClock.now
        audience.listen(to: list, childCount, counter)
        await deliverEvents(of: list)
        if audience == .window {
          attached.append((ContinuousClock.now - attach) / .milliseconds(1))
        }
        let start = ContinuousClock.now
        setRanks(of: list, childCount, setCount)
        written[audience, default: []].append(
          Double(setCount) / ((ContinuousClock.now - start) / .seconds(1)))
        await deliverEvents(of: list)
        delivered[audience, default: []].append(
          Double(setCount) / ((ContinuousClock.now - start) / .seconds(1)))
        let expectsEvents = audience == .value || audience == .window
        try expect(
          expectsEvents == (counter.total > 0), "exactly the listeners of the list get events")
        try await database.close()
      }
    }
    for audience in Audience.allCases {
      session.record(
        Figure("listeners", audience.rawValue, "sets a second", written[audience] ?? []))
    }
    for audience in [Audience.value, .window] {
      session.record(
        Figure(
          "listeners", "the same, all events delivered", "sets a second",
          delivered[audience] ?? []))
    }
    session.record(Figure("listeners", "limitToLast(100): first events", "ms", attached))
  }

  /// Returns when all queued events have been delivered, since completions come after them.
  private static func deliverEvents(of list: DatabaseReference) async {
    await withCheckedContinuation { continuation in
      list.child("post-1000000").getData { _, _ in continuation.resume() }
    }
  }

  // MARK: Many posts

  private static func runPosts(_ session: Session) async throws {
    let postCount = session.scaled(10_000)
    let setCount = session.scaled(100_000)
    var generator = SeededRandomness(seed: 4)
    let values = (0..<setCount).map { _ in generator.text(20) }
    let paths = (0..<postCount).map { "posts/post-\($0)" }
    let targets = (0..<setCount).map { _ in paths.randomElement(using: &generator)! }

    var without: [Double] = []
    var with: [Double] = []
    var events: [Double] = []
    for _ in 0..<session.rounds {
      for isObserved in [false, true] {
        let database = Database.inMemory()
        let root = database.reference()
        setTitles(of: root, at: paths, to: ["the first"])
        let counter = EventCounter()
        if isObserved {
          for path in paths {
            root.child(path).observe(.value) { snapshot in
              counter.count(snapshot.childrenCount)
            }
          }
          try await root.child("barrier").setValue(1)
        }
        let start = ContinuousClock.now
        setTitles(of: root, at: targets, to: values)
        let written = (ContinuousClock.now - start) / .seconds(1)
        // The completion comes after all events of earlier writes, on the same queue.
        await withCheckedContinuation { continuation in
          root.child("barrier").setValue(2) { _, _ in continuation.resume() }
        }
        let delivered = (ContinuousClock.now - start) / .seconds(1)
        if isObserved {
          with.append(Double(setCount) / written)
          events.append(Double(counter.total) / delivered)
          try expect(counter.total >= postCount, "every listener got an event")
        } else {
          without.append(Double(setCount) / written)
        }
        try await database.close()
      }
    }
    session.record(Figure("listeners", "sets without listeners", "sets a second", without))
    session.record(Figure("listeners", "sets, each with one listener", "sets a second", with))
    session.record(Figure("listeners", "events delivered", "events a second", events))
  }
}

/// Sets ranks without waiting for completions. The function is not `async`, so that the overloads without
/// `await` are called. One set in a hundred moves a child into the last hundred.
private func setRanks(of list: DatabaseReference, _ childCount: Int, _ setCount: Int) {
  for number in 0..<setCount {
    let rank = number % 100 == 0 ? childCount + number : number * 613 % childCount
    list.child("post-\(1_000_000 + number * 7_907 % childCount)").child("rank").setValue(rank)
  }
}

/// Sets titles without waiting for completions; not `async` for the same reason.
private func setTitles(of root: DatabaseReference, at paths: [String], to values: [String]) {
  for (index, path) in paths.enumerated() {
    root.child(path).child("title").setValue(values[index % values.count])
  }
}

private final class EventCounter: Sendable {
  private let events = Atomic<Int>(0)

  var total: Int { events.load(ordering: .relaxed) }

  func count(_ children: some BinaryInteger) {
    Sink.take(Int(children))
    events.wrappingAdd(1, ordering: .relaxed)
  }
}
