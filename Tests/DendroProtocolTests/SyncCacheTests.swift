import DendroProtocol
import DendroTestSupport
import DendroTree
import Testing

/// What a client keeps of its server's data, against a model that looks at all of it.
@Suite("keeping in step with a server: what is kept")
struct SyncCacheTests {
  private static let keys = ["a", "b", "c", "d", "e"].map { key($0) }
  private static func key(_ text: String) -> Key {
    guard let key = try? Key(text) else { preconditionFailure("\(text) is a key") }
    return key
  }

  /// Locations and windows that overlap.
  private static let targets: [QueryTarget] = {
    func path(_ text: String) -> Path {
      guard let path = try? Path(parsing: text) else { preconditionFailure("\(text) is a path") }
      return path
    }
    func window(_ text: String, _ limit: QueryParameters.Limit) -> QueryTarget {
      var parameters = QueryParameters()
      parameters.order = .key
      parameters.limit = limit
      return QueryTarget(path(text), parameters)
    }
    return [
      QueryTarget(path("/a")), QueryTarget(path("/a/b")), QueryTarget(path("/b/c")),
      window("/", .first(2)), window("/", .last(2)), window("/a", .first(2)),
      window("/a", .last(1)), window("/b", .first(1)), window("/b/c", .last(2)),
      QueryTarget(path("/c")),
    ]
  }()

  @Test(
    "a listen begins with what was kept when it ended, and nothing is kept that no target shows",
    arguments: Scale.seeds(200))
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var tree = SyncedTree()
    tree.cache = SyncCache()
    var server = Node.empty
    /// The listens at the server, with their tags.
    var listens: [QueryTarget: Int?] = [:]
    var shown: Set<QueryTarget> = []

    func answer(_ requests: [SyncedTree.Request]) {
      for request in requests {
        switch request {
        case .listen(let target, let number, let tag, _, _):
          listens[target] = .some(tag)
          let node = server.node(at: target.path).filtered(by: target.parameters)
          _ = tree.put(node, at: DataPlace(target.path), tag: tag)
          tree.noteNews(number: number)
          _ = tree.listened(number: number, target)
        case .stop(let target, _): listens[target] = nil
        }
      }
    }
    func check(_ step: Int) {
      for target in shown {
        let expected = server.node(at: target.path).filtered(by: target.parameters)
        #expect(tree.shown(by: target) == expected, "seed \(seed), step \(step): \(target)")
      }
      let cache = tree.cache
      let known = Self.targets.filter { cache?[$0] != nil }
      // Nothing but what tracked targets show.
      var all = Node.empty
      for target in known {
        guard let item = cache?[target], let data = cache?.data else { continue }
        if target.parameters.showsAll {
          all.graft(data.node(at: target.path), at: target.path)
        } else {
          for key in item.keys {
            let path = target.path.appending(key)
            all.graft(data.node(at: path), at: path)
          }
        }
      }
      #expect(cache?.data == all, "seed \(seed), step \(step): more is kept than is shown")
    }
    for step in 0..<120 {
      switch generator.below(8) {
      case 0, 1:
        let target = Self.targets[generator.below(Self.targets.count)]
        if shown.insert(target).inserted { answer(tree.begin(target)) }
      case 2:
        if let target = shown.sorted(by: { "\($0)" < "\($1)" }).randomElement(using: &generator) {
          shown.remove(target)
          answer(tree.end(target))
        }
      case 3:
        let listening = tree
        _ = tree.cache?.prune(to: 0) { listening.isListened($0) }
        if tree.cache?.data.isEmpty == false {
          #expect(Self.targets.contains { tree.isListened($0) && tree.cache?[$0] != nil })
        }
      default:
        var path = Path.root
        for _ in 0..<1 + generator.below(3) {
          path = path.appending(Self.keys[generator.below(Self.keys.count)])
        }
        let node = generator.oneIn(3) ? Node.empty : Node(.integer(Int64(generator.below(100))))
        let old = server
        server.graft(node, at: path)
        for (target, tag) in listens {
          let before = old.node(at: target.path).filtered(by: target.parameters)
          let after = server.node(at: target.path).filtered(by: target.parameters)
          if before != after { _ = tree.put(after, at: DataPlace(target.path), tag: tag) }
        }
      }
      check(step)
      // What is not listened to is there as it was, or fresher.
      for target in Self.targets where !shown.contains(target) && tree.cache?[target] != nil {
        #expect(tree.kept(target) != nil, "seed \(seed), step \(step)")
      }
    }
    // Without a network, all that was kept is there.
    for target in Self.targets where tree.cache?[target] != nil && !shown.contains(target) {
      // A listen that goes on knows better.
      let kept = tree.shown(by: target) ?? tree.kept(target)
      _ = tree.begin(target)
      #expect(tree.shown(by: target) == kept, "seed \(seed): \(target)")
    }
  }
}
