import DendroProtocol
import DendroTestSupport
import DendroTree
import Testing

@testable import DendroServer

@Suite("commits that are merged while they wait")
struct MergedCommitsTests {
  private func path(_ generator: inout SeededGenerator, _ width: Int) throws -> Path {
    let keys = (0..<generator.below(4)).map { _ in "k\(generator.below(width))" }
    return try Path(parsing: "/" + keys.joined(separator: "/"))
  }

  /// A value as a client has it that gets a change.
  private func applied(_ change: PlaceChange?, to node: Node) -> Node {
    var node = node
    switch change {
    case .put(let path, let new)?: node.graft(new, at: path)
    case .patch(let path, let parts)?:
      for (part, new) in parts { node.graft(new, at: Path(keys: Array(path.keys) + part.keys)) }
    case nil: break
    }
    return node
  }

  @Test(
    "every listener has the state after them", arguments: [(1, 3, 200), (2, 40, 10_000), (3, 4, 1)])
  func states(seed: UInt64, width: Int, count: Int) throws {
    var generator = SeededGenerator(seed: seed)
    var root = Node.empty
    for number in 0..<500 {
      _ = root.apply(.set(try path(&generator, width), Node(.integer(Int64(number)))))
    }
    let old = root
    var merged: MergedCommits?
    for number in 0..<count {
      let place = try path(&generator, width)
      // The root alone would stand for all others.
      if place.isRoot { continue }
      let changes = root.apply(
        generator.oneIn(5) ? .remove(place) : .set(place, Node(.integer(Int64(1_000 + number)))))
      if changes.isEmpty { continue }
      if merged == nil {
        merged = MergedCommits(changes, root, lsn: UInt64(number))
      } else {
        merged?.add(changes, root, lsn: UInt64(number))
      }
    }
    guard let commit = merged?.commit else { return }
    #expect(commit.changes.count <= 4096)
    for _ in 0..<500 {
      let place = try path(&generator, width)
      #expect(
        applied(commit.change(at: place), to: old.node(at: place)) == root.node(at: place),
        "\(seed) \(place)")
      var node = old.node(at: place)
      commit.apply(to: &node, at: place)
      #expect(node == root.node(at: place), "\(seed) \(place)")
    }
  }

  @Test("a listener beside all changes gets nothing")
  func beside() throws {
    var root = Node.empty
    var merged: MergedCommits?
    for number in 0..<10_000 {
      let place = try Path(parsing: "/list/\(number)")
      let changes = root.apply(.set(place, Node(.integer(1))))
      if merged == nil {
        merged = MergedCommits(changes, root, lsn: 1)
      } else {
        merged?.add(changes, root, lsn: 1)
      }
    }
    let commit = try #require(merged?.commit)
    #expect(commit.change(at: try Path(parsing: "/other")) == nil)
    #expect(commit.change(at: try Path(parsing: "/list")) != nil)
  }
}
