import Dendro
import Foundation
import Synchronization

extension Workload {
  static let listeners = Workload(
    name: "listeners",
    sentence: "100,000 sets at 10,000 posts, each with its own value listener, and with none."
  ) { session in
    let postCount = session.scaled(10_000)
    let setCount = session.scaled(100_000)
    var generator = SeededGenerator(seed: 4)
    let values = (0..<setCount).map { _ in generator.text(20) }
    let paths = (0..<postCount).map { "posts/post-\($0)" }
    let targets = (0..<setCount).map { _ in Int.random(in: 0..<postCount, using: &generator) }

    var without: [Double] = []
    var with: [Double] = []
    var events: [Double] = []
    for _ in 0..<session.rounds {
      for isObserved in [false, true] {
        let database = Database.inMemory()
        let root = database.reference()
        for path in paths { root.child(path).child("title").setValue("the first") }
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
        for index in 0..<setCount {
          root.child(paths[targets[index]]).child("title").setValue(values[index])
        }
        let written = (ContinuousClock.now - start) / .seconds(1)
        // Completions come on the listeners' queue, after all events of earlier writes.
        await withCheckedContinuation { continuation in
          root.child("barrier").setValue(2) { _, _ in continuation.resume() }
        }
        let delivered = (ContinuousClock.now - start) / .seconds(1)
        if isObserved {
          with.append(Double(setCount) / written)
          events.append(Double(counter.total) / delivered)
          try expect(counter.total >= postCount, "every listener was told")
        } else {
          without.append(Double(setCount) / written)
        }
        try await database.close()
      }
    }
    session.record(Figure("listeners", "sets without listeners", "sets a second", without))
    session.record(Figure("listeners", "sets, each heard by one", "sets a second", with))
    session.record(Figure("listeners", "events delivered", "events a second", events))
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
