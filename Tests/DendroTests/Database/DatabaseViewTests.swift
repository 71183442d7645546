import Dendro
import DendroTestSupport
import Foundation
import Testing

/// Reading in place: what a view shows is what a snapshot shows.
@Suite("Views")
struct DatabaseViewTests {
  /// Values of every kind and length, with and without priorities, which are stored in different ways.
  static func value(_ random: inout SeededGenerator, depth: Int = 3) -> Any {
    var value: Any =
      switch random.below(depth == 0 ? 5 : 8) {
      case 0: random.below(1_000_000) - 500_000
      case 1: Double(random.below(4_000)) / 4
      case 2: random.oneIn(2)
      case 3: String(repeating: "ä", count: random.below(20))
      case 4: String(repeating: "x", count: 200 + random.below(400))
      default:
        Dictionary(
          uniqueKeysWithValues: (0..<1 + random.below(12)).map {
            ("k\($0)", Self.value(&random, depth: depth - 1))
          })
      }
    let priority: Any? =
      switch random.below(6) {
      case 0: random.below(10)
      case 1: String(repeating: "p", count: random.below(400))
      default: nil
      }
    if let priority {
      if var branch = value as? [String: Any] {
        branch[".priority"] = priority
        value = branch
      } else {
        value = [".value": value, ".priority": priority]
      }
    }
    return value
  }

  /// What a snapshot shows, here and below.
  private func expect(
    _ view: borrowing DatabaseView, shows snapshot: DataSnapshot, _ seed: UInt64
  ) {
    let (exists, int, double) = (view.exists, view.int, view.double)
    let (string, bool, count) = (view.string, view.bool, view.childrenCount)
    #expect(exists == snapshot.exists(), "seed \(seed)")
    #expect(int == snapshot.int && double == snapshot.double, "seed \(seed)")
    #expect(string == snapshot.string && bool == snapshot.bool, "seed \(seed)")
    #expect(count == Int(snapshot.childrenCount), "seed \(seed)")
    var keys: [String] = []
    view.forEachChild { key, child in
      keys.append(key)
      expect(child, shows: snapshot[key], seed)
    }
    let children = snapshot.ref.queryOrderedByKey()
    #expect(keys.count == count && keys == keys.sorted(), "seed \(seed), \(children)")
  }

  @Test("a view shows what a snapshot shows, here and at every path", arguments: 0..<20)
  func asSnapshot(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let database = Database.inMemory()
    let root = database.reference()
    try await root.setValue(["a": Self.value(&random), "b": ["c": Self.value(&random, depth: 2)]])
    let snapshot = try await root.getData()
    try database.read { view in
      expect(view, shows: snapshot, seed)
      for path in ["a", "/", "b/c", "b//c/", "a/k0", "a/k1/k2", "none", "a/k0/k0/k0/none/x"] {
        let there = snapshot[path]
        let (int, double) = (try view.int(at: path), try view.double(at: path))
        let (string, bool) = (try view.string(at: path), try view.bool(at: path))
        let (exists, count) = (try view.exists(at: path), try view.childrenCount(at: path))
        #expect(int == there.int && double == there.double, "seed \(seed), \(path)")
        #expect(string == there.string && bool == there.bool, "seed \(seed), \(path)")
        #expect(exists == there.exists() && count == Int(there.childrenCount), "seed \(seed)")
        try view.child(path) { expect($0, shows: there, seed) }
      }
    }
  }

  @Test("a leaf and nothing at the root")
  func root() async throws {
    let database = Database.inMemory()
    let isThere = try database.read { $0.exists }
    #expect(!isThere)
    for text in ["short", String(repeating: "long", count: 200)] {
      try await database.reference().setValue(text)
      let shown = try database.read { $0.string }
      #expect(shown == text)
      let below = try database.read { try $0.string(at: "a") }
      #expect(below == nil)
    }
  }

  @Test("a view is of one moment: what is written meanwhile does not show")
  func oneMoment() async throws {
    let database = Database.inMemory()
    let count = database.reference(withPath: "a/count")
    try await count.setValue(1)
    try database.read { view in
      for number in 2...100 {
        count.increment(by: 1)
        let shown = try view.int(at: "a/count")
        let newest = try database.read { try $0.int(at: "a/count") }
        #expect(shown == 1 && newest == number)
      }
      database.reference().removeValue()
      let shown = try view.int(at: "a/count")
      #expect(shown == 1)
    }
  }

  @Test(
    "paths that cannot be, and a database that is closed, are errors; a block's error comes out")
  func errors() async throws {
    let database = Database.inMemory()
    for path in ["", "a.b", "a/#", ".info", "a/\u{7f}"] {
      let error = await failure { try database.read { _ = try $0.int(at: path) } }
      let expected = await failure {
        _ = try await database.reference().child(path).getData()
      }
      #expect(error?.code == expected?.code && error?.name == expected?.name, "\(path)")
      let inChild = await failure { try database.read { try $0.child(path) { _ in } } }
      #expect(inChild?.code == expected?.code)
    }
    #expect(throws: CancellationError.self) {
      try database.read { _ in throw CancellationError() }
    }
    try await database.close()
    #expect(await failure { try database.read { _ in } }?.code == .closed)
  }
}
