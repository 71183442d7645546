import Dendro
import DendroEngine
import DendroTree
import Foundation
import DendroTestSupport
import Testing

/// The engine's events beside those of the plain model, over random trees, writes, queries and listeners
/// that come and go.
@Suite("Events beside the plain model")
struct EventDifferentialTests {
  /// Runs of 5,000 writes: 400, or a share of them.
  static let seeds = 0..<UInt64(Scale.scaled(400))

  @Test("random writes, several listeners and queries at several depths", arguments: seeds)
  func writes(seed: UInt64) async throws {
    var run = Run(seed: seed)
    try await run.perform(writeCount: 5_000)
  }

  private struct Listener {
    let name: String
    let type: DataEventType
    let isSingle: Bool
    let handle: DatabaseHandle
  }

  /// What one query shows of a path, and who listens to it, in the order of registration.
  private struct ModelListenedQuery {
    let path: String
    let query: RandomQuery
    var listeners: [Listener]
  }

  private struct Run {
    static let keys = ["a", "b", "c", "10", "9"]

    let seed: UInt64
    var random: SeededGenerator
    let database: Database
    let recorder: Recorder
    /// In the order of their first registration.
    var queries: [ModelListenedQuery] = []
    var nameCount = 0

    init(seed: UInt64) {
      self.seed = seed
      random = SeededGenerator(seed: seed)
      var options = DatabaseOptions()
      options.errorHandler = { _ in }  // Updates that contradict themselves, priorities of nothing.
      database = Database.inMemory(options: options)
      recorder = Recorder(database)
    }

    mutating func perform(writeCount: Int) async throws {
      let root = try #require(database.engine).view(at:)
      var expected: [String] = []
      var before = try root(.root)
      for write in 0..<writeCount {
        if random.oneIn(25) || queries.isEmpty {
          guard await agrees(&expected, write) else { return }
          if queries.count > 7 || (!queries.isEmpty && random.oneIn(4)) {
            leave()
          } else {
            join(before, &expected)
          }
        }
        writeSomething()
        let after = try root(.root)
        expectEvents(before, after, &expected)
        before = after
        // At most as many wait as are delivered one by one.
        if write % 50 == 0 || random.oneIn(4) {
          guard await agrees(&expected, write) else { return }
        }
      }
      _ = await agrees(&expected, writeCount)
    }

    private func agrees(_ expected: inout [String], _ write: Int) async -> Bool {
      let received = await recorder.take().map { $0.replacingOccurrences(of: ".0", with: "") }
      if received == expected {
        expected = []
        return true
      }
      let queries = queries.map { listened in
        "\(listened.path) \(listened.query.parameters): \(listened.listeners.map { "\($0.name) \($0.type)" })"
      }
      Issue.record(
        "seed \(seed), write \(write): got \(received), not \(expected)\n\(queries.joined(separator: "\n"))"
      )
      return false
    }

    // MARK: Listeners

    private mutating func join(_ root: Node, _ expected: inout [String]) {
      let path = ["", "a", "b", "a/b", "a/10", "b/a/a"][random.below(6)]
      // Every fourth to a query that is there.
      let existing =
        random.oneIn(4) && !queries.isEmpty ? queries[random.below(queries.count)] : nil
      let query = existing?.query ?? RandomQuery(&random, keys: Self.keys)
      let place = existing?.path ?? path
      let index: Int
      if let known = queries.firstIndex(where: {
        $0.path == place && $0.query.parameters == query.parameters
      }) {
        index = known
      } else {
        index = queries.count
        queries.append(ModelListenedQuery(path: place, query: query, listeners: []))
      }
      let types =
        random.oneIn(2)
        ? DataEventType.allCases : [DataEventType.allCases[random.below(5)]]
      let isSingle = random.oneIn(6)
      let node = root.node(at: Self.path(place))
      for type in types {
        nameCount += 1
        let name = "\(nameCount)"
        let first = EventModel.initialEvents(of: node, query.parameters, type)
        expected += (isSingle ? first.prefix(1) : first[...]).map { "\(name):\($0.line)" }
        let handle = observe(query.query(of: ref(place)), type, name, isSingle)
        if isSingle && !first.isEmpty { continue }
        queries[index].listeners.append(
          Listener(name: name, type: type, isSingle: isSingle, handle: handle))
      }
      // All five at once, each of which may be gone again at once.
      if queries[index].listeners.isEmpty { queries.remove(at: index) }
    }

    private func observe(
      _ query: DatabaseQuery, _ type: DataEventType, _ name: String, _ isSingle: Bool
    ) -> DatabaseHandle {
      let recorder = recorder
      let block: @Sendable (DataSnapshot, String?) -> Void = { snapshot, previous in
        recorder.note(Recorder.line(name, type, snapshot, previous))
      }
      guard isSingle else { return query.observe(type, andPreviousSiblingKeyWith: block) }
      query.observeSingleEvent(of: type, andPreviousSiblingKeyWith: block)
      return 0
    }

    private mutating func leave() {
      let index = random.below(queries.count)
      let listened = queries[index]
      let query = listened.query.query(of: ref(listened.path))
      switch random.below(3) {
      case 0:
        query.removeAllObservers()
        let standsForAll = listened.query.parameters == QueryParameters()
        queries.removeAll {
          $0.path == listened.path
            && (standsForAll || $0.query.parameters == listened.query.parameters)
        }
      case 1 where random.oneIn(3):
        ref(listened.path).removeAllObservers()
        queries.removeAll { $0.path == listened.path }
      default:
        let listener = listened.listeners[random.below(listened.listeners.count)]
        guard listener.handle != 0 else { return }
        query.removeObserver(withHandle: listener.handle)
        queries[index].listeners.removeAll { $0.handle == listener.handle }
        if queries[index].listeners.isEmpty { queries.remove(at: index) }
      }
    }

    private func ref(_ path: String) -> DatabaseReference {
      path.isEmpty ? database.reference() : database.reference(withPath: path)
    }

    private static func path(_ text: String) -> Path {
      (try? Path(parsing: text)) ?? .root
    }

    // MARK: Expected events

    private mutating func expectEvents(_ before: Node, _ after: Node, _ expected: inout [String]) {
      // Descendants before ancestors, siblings in plain string order, then as registered.
      let order = queries.indices.sorted { a, b in
        let (p, q) = (queries[a].path.split(separator: "/"), queries[b].path.split(separator: "/"))
        if let (x, y) = zip(p, q).first(where: { $0 != $1 }) {
          return x.utf16.lexicographicallyPrecedes(y.utf16)
        }
        return p.count == q.count ? a < b : p.count > q.count
      }
      for index in order {
        let path = Self.path(queries[index].path)
        let events = EventModel.events(
          from: before.node(at: path), to: after.node(at: path), queries[index].query.parameters)
        for event in events {
          for listener in queries[index].listeners where listener.type == event.type {
            expected.append("\(listener.name):\(event.line)")
          }
          queries[index].listeners.removeAll { $0.isSingle && $0.type == event.type }
        }
      }
      queries.removeAll { $0.listeners.isEmpty }
    }

    // MARK: Writes

    private mutating func writeSomething() {
      let path = (0..<random.below(4)).map { _ in key() }.joined(separator: "/")
      switch random.below(10) {
      case 0: ref(path).removeValue()
      case 1: ref(path).setPriority(priority())
      case 2, 3:
        let entries = (0..<1 + random.below(3)).map { _ in
          let below = (0...random.below(2)).map { _ in key() }.joined(separator: "/")
          return (below, random.oneIn(4) ? NSNull() : data(height: 1))
        }
        ref(path).updateChildValues(Dictionary(entries) { $1 })
      default: ref(path).setValue(data(height: random.below(4)))
      }
    }

    private mutating func key() -> String { Self.keys[random.below(Self.keys.count)] }

    private mutating func priority() -> Any? {
      switch random.below(6) {
      case 0: 1
      case 1: "s"
      case 2: 1.5
      default: nil
      }
    }

    private mutating func data(height: Int) -> Any {
      var data: [String: Any] = [:]
      if height == 0 || random.oneIn(4) {
        data[".value"] = [0, 1, 1.0, 1.5, 2, true, false, "s", "t"][random.below(9)] as Any
      } else {
        for _ in 0..<1 + random.below(4) { data[key()] = self.data(height: height - 1) }
      }
      if random.oneIn(4), let priority = priority() { data[".priority"] = priority }
      return data
    }
  }
}
