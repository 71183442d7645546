import Dendro
import DendroTestSupport
import DendroTree
import Testing

/// Whom a write concerns, and at what cost.
@Suite("Who listens where")
struct ListenerTreeTests {
  private func path(_ text: String) throws -> Path { try Path(parsing: text) }

  private func tree(_ paths: [String]) throws -> ListenerTree {
    let tree = ListenerTree()
    for text in paths { tree.insert(SyncPoint(path: try path(text), node: .empty)) }
    return tree
  }

  private func concerned(_ tree: ListenerTree, _ paths: [String]) throws -> [String] {
    var names: [String] = []
    let paths = try paths.map(path)
    tree.forEachAffected(by: paths[0], and: Array(paths.dropFirst()), root: .empty) { place, _, _ in
      if let location = place.syncPoint { names.append("\(location.path)") }
    }
    return names
  }

  /// How many places of the tree a commit looks at.
  private func visitCount(_ tree: ListenerTree, _ paths: [String]) throws -> Int {
    var count = 0
    let paths = try paths.map(path)
    tree.forEachAffected(by: paths[0], and: Array(paths.dropFirst()), root: .empty) { _, _, _ in
      count += 1
    }
    return count
  }

  @Test(
    "those above, at and below, descendants first",
    arguments: [
      (["u/a"], ["/u/a/n", "/u/a", "/u", "/"]),
      (["u/a/n/x"], ["/u/a/n", "/u/a", "/u", "/"]),
      (["u/b"], ["/u", "/"]),
      (["o"], ["/o", "/"]),
      (["none"], ["/"]),
      (["/"], ["/o", "/u/a/n", "/u/a", "/u", "/"]),
      (["u/a/n", "o"], ["/o", "/u/a/n", "/u/a", "/u", "/"]),
      (["u/a", "u/a/n"], ["/u/a/n", "/u/a", "/u", "/"]),
      (["u/x", "u/y", "v"], ["/u", "/"]),
      (["u", "/"], ["/o", "/u/a/n", "/u/a", "/u", "/"]),
    ])
  func concern(_ changed: [String], _ expected: [String]) throws {
    let tree = try tree(["/", "u", "u/a", "u/a/n", "o"])
    #expect(try concerned(tree, changed) == expected)
  }

  @Test("each location is visited once, whatever the update")
  func once() throws {
    let tree = try tree(["10", "9", "a", "a/b"])
    #expect(try concerned(tree, ["9", "10", "a/b/c", "a/b/d"]) == ["/10", "/9", "/a/b", "/a"])
  }

  @Test("a write visits the same places with 0 and with 100,000 listeners elsewhere")
  func independence() throws {
    let few = try tree(["here/a"])
    let many = try tree(["here/a"] + (0..<100_000).map { "elsewhere/\($0 % 1000)/\($0)" })
    for paths in [
      ["here/a"], ["here"], ["here/a/b/c"], ["here/b"], ["here/a", "here/b"], ["there"],
    ] {
      #expect(try concerned(few, paths) == concerned(many, paths))
      #expect(try visitCount(few, paths) == visitCount(many, paths))
    }
  }

  @Test("removed locations leave nothing behind")
  func removal() throws {
    let tree = ListenerTree()
    let locations = try ["a/b/c", "a", "a/b/d"].map {
      SyncPoint(path: try path($0), node: .empty)
    }
    for location in locations { tree.insert(location) }
    let subscription = Subscription(path: try path("a/b/c/e"), keepsStates: true)
    tree.insert(subscription)
    tree.remove(subscription)
    tree.remove(locations[0])
    #expect(try concerned(tree, ["/"]) == ["/a/b/d", "/a"])
    tree.remove(locations[1])
    tree.remove(locations[1])
    #expect(try concerned(tree, ["a/b"]) == ["/a/b/d"])
    tree.remove(locations[2])
    #expect(try concerned(tree, ["/"]) == [])
    #expect(tree.isEmpty)
  }

  @Test("as a set of paths, while few and many siblings come and go", arguments: 0..<6)
  func model(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let tree = ListenerTree()
    var model: [String: SyncPoint] = [:]
    for step in 0..<600 {
      let text = ["", "a/", "a/b/"][random.below(3)] + "k\(random.below(step < 300 ? 4 : 12))"
      if let syncPoint = model.removeValue(forKey: text) {
        tree.remove(syncPoint)
      } else {
        let syncPoint = SyncPoint(path: try path(text), node: .empty)
        model[text] = syncPoint
        tree.insert(syncPoint)
      }
      #expect(try concerned(tree, ["/"]).sorted() == model.keys.map { "/\($0)" }.sorted())
      let probe = "a/b/k\(random.below(12))"
      #expect(
        tree.syncPoint(at: try path(probe)) === model[probe], "seed \(seed), step \(step)")
    }
    for syncPoint in model.values { tree.remove(syncPoint) }
    #expect(tree.isEmpty)
  }

  @Test("a write of one path names the child above it, an update of several paths none")
  func changedKey() throws {
    let tree = try tree(["/", "u", "u/a"])
    func keys(_ texts: [String]) throws -> [String] {
      var keys: [String] = []
      let paths = try texts.map(path)
      tree.forEachAffected(by: paths[0], and: Array(paths.dropFirst()), root: .empty) {
        place, _, key in
        if let location = place.syncPoint {
          keys.append("\(location.path) \(key?.string ?? "any")")
        }
      }
      return keys
    }
    #expect(try keys(["u/a/n"]) == ["/u/a n", "/u a", "/ u"])
    #expect(try keys(["u/a"]) == ["/u/a any", "/u a", "/ u"])
    #expect(try keys(["u/b/c"]) == ["/u b", "/ u"])
    #expect(try keys(["u/b", "u/c"]) == ["/u any", "/ any"])
    #expect(try keys(["/"]) == ["/u/a any", "/u any", "/ any"])
  }
}

@Suite("First in, first out")
struct QueueTests {
  @Test("like an array, for every pattern of putting in and taking out", arguments: 0..<8)
  func model(pattern: UInt64) {
    var queue = Queue<Int>()
    var model: [Int] = []
    var next = 0
    var state = pattern &+ 1
    for _ in 0..<5_000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      if state >> 60 < 8 + pattern / 2 {
        queue.append(next)
        model.append(next)
        next += 1
      } else {
        #expect(queue.first == model.first)
        #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
      }
      #expect(queue.count == model.count && queue.isEmpty == model.isEmpty)
    }
    queue.removeAll()
    #expect(queue.popFirst() == nil)
  }
}
