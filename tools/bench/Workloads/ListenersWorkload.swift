import Dendro
import Foundation
import Synchronization

extension Workload {
  static let listeners = Workload(
    "listeners", row: "W9",
    """
    Deliveries to one listener and to 1,000 listeners at a place, at most 32 writes ahead of them; the time \
    from a write to its event; and sets in a list of 100,000 children beside listeners of several kinds.
    """,
    [
      Comparison(
        "1 listener, 32 writes ahead", "deliveries",
        [delivery(listenerCount: 1, writeCount: 200_000), PeerListeners.delivery(1, 200_000)]),
      Comparison(
        "1 listener, one write at a time", "deliveries", [oneByOne, PeerListeners.oneByOne]),
      Comparison(
        "1,000 listeners, 32 writes ahead", "deliveries",
        [
          delivery(listenerCount: 1_000, writeCount: 4_000),
          PeerListeners.delivery(1_000, 4_000),
        ]),
      Comparison("sets in a list", "sets", Audience.allCases.map(sets)),
    ])

  /// How many writes may be ahead of the listeners, in which each write is then an event of its own.
  static let writesAhead = 32

  // MARK: Deliveries

  private static func delivery(listenerCount: Int, writeCount: Int) -> Contestant {
    Contestant("dendro, observe(.value)") { turn in
      let writeCount = turn.scaled(writeCount)
      return try await turn.withDatabase { database in
        let place = database.reference(withPath: "rooms/1/message")
        let eventCount = Atomic<Int>(0)
        let lastValue = Atomic<Int>(0)
        let places = DispatchSemaphore(value: writesAhead)
        let isRunning = Atomic<Bool>(false)
        for _ in 0..<listenerCount {
          place.observe(.value) { snapshot in
            guard isRunning.load(ordering: .relaxed) else { return }
            lastValue.store(snapshot.int ?? 0, ordering: .relaxed)
            // The callback queue is serial, and all listeners get one event before any gets the next.
            if eventCount.add(1, ordering: .relaxed).newValue % listenerCount == 0 {
              places.signal()
            }
          }
        }
        await eventsDelivered(at: place)
        isRunning.store(true, ordering: .relaxed)
        let measurement = try Measurement.blocking(writeCount * listenerCount) {
          for number in 1...writeCount {
            places.wait()
            place.setValue(number)
          }
          for _ in 0..<writesAhead { places.wait() }
        }
        for _ in 0..<writesAhead { places.signal() }
        try expect(
          eventCount.load(ordering: .relaxed) == writeCount * listenerCount
            && lastValue.load(ordering: .relaxed) == writeCount,
          "every listener gets an event of every write")
        return measurement
      }
    }
  }

  /// From the call that writes to the beginning of the listener's block.
  private static let oneByOne = Contestant("dendro, observe(.value)") { turn in
    let writeCount = turn.scaled(40_000)
    return try await turn.withDatabase { database in
      let place = database.reference(withPath: "rooms/1/message")
      let latencies = Latencies(writeCount)
      let starts = Mutex(ContinuousClock.now)
      let arrived = DispatchSemaphore(value: 0)
      place.observe(.value) { snapshot in
        guard let number = snapshot.int else { return }
        latencies.record(number - 1, since: starts.withLock { $0 })
        arrived.signal()
      }
      await eventsDelivered(at: place)
      var measurement = try Measurement.blocking(writeCount) {
        for number in 1...writeCount {
          starts.withLock { $0 = .now }
          place.setValue(number)
          arrived.wait()
        }
      }
      try expect(!latencies.all.contains(0), "every write is delivered")
      measurement.addLatencies(latencies.all)
      return measurement
    }
  }

  /// Returns when all queued events have been delivered, since completions come after them.
  static func eventsDelivered(at place: DatabaseReference) async {
    await withCheckedContinuation { continuation in
      place.getData { _, _ in continuation.resume() }
    }
  }

  // MARK: Sets beside listeners

  /// The listeners that exist while a list is written to.
  private enum Audience: String, CaseIterable {
    case empty = "no listener"
    case elsewhere = "100,000 listeners elsewhere"
    case value = "a value listener at one child"
    case everywhere = "a value listener at each of 10,000 children"
    case window = "limitToLast(100) by rank"

    /// Adds the listeners.
    func listen(
      to list: DatabaseReference, _ keys: [String], _ count: @escaping @Sendable () -> Void
    ) {
      switch self {
      case .empty: break
      case .elsewhere:
        for number in 0..<keys.count {
          list.root.child("elsewhere/\(number % 1_000)/\(number)").observe(.value) { _ in }
        }
      case .value: list.child(keys[0]).observe(.value) { _ in count() }
      case .everywhere:
        for key in keys.prefix(10_000) { list.child(key).observe(.value) { _ in count() } }
      case .window:
        list.queryOrdered(byChild: "rank").queryLimited(toLast: 100)
          .observe(.childAdded) { _ in count() }
      }
    }
  }

  private static func sets(_ audience: Audience) -> Contestant {
    Contestant("dendro, \(audience.rawValue)") { turn in
      let keys = (0..<turn.scaled(100_000)).map { "post-\(1_000_000 + $0)" }
      // One set in a hundred moves a child into the last hundred.
      let sets = (0..<turn.scaled(200_000)).map { number in
        (
          path: "\(keys[number * 7_907 % keys.count])/rank",
          rank: number % 100 == 0 ? keys.count + number : number * 613 % keys.count
        )
      }
      return try await turn.withDatabase { database in
        let list = database.reference(withPath: "posts")
        var content: [String: Any] = [:]
        for (number, key) in keys.enumerated() {
          content[key] = ["rank": number * 7_919 % keys.count]
        }
        try await list.setValue(content)
        let eventCount = Atomic<Int>(0)
        audience.listen(to: list, keys) { eventCount.add(1, ordering: .relaxed) }
        await eventsDelivered(at: list.child(keys[0]))
        let before = eventCount.load(ordering: .relaxed)
        let start = ContinuousClock.now
        var measurement = try Measurement.blocking(sets.count) {
          for set in sets { list.child(set.path).setValue(set.rank) }
        }
        await eventsDelivered(at: list.child(keys[0]))
        let delivered = (ContinuousClock.now - start) / .seconds(1)
        let expectsEvents = audience != .empty && audience != .elsewhere
        try expect(
          expectsEvents == (eventCount.load(ordering: .relaxed) > before),
          "exactly the listeners of the list get events")
        if expectsEvents {
          measurement.add("sets until all is delivered", "a second", Double(sets.count) / delivered)
        }
        let rank = try database.read { try $0.int(at: "posts/\(sets[sets.count - 1].path)") }
        try expect(rank == sets[sets.count - 1].rank, "the last set shows")
        return measurement
      }
    }
  }
}
