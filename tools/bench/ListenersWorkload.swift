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

/// Without waiting for any of them, hence in a function that is not `async`.
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
