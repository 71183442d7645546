import DendroTree
import Testing

@testable import DendroProtocol

@Suite("keeping in step with a server: a leaf above a write that waits for its answer")
struct SyncedLeafTests {
  private static let written = "/p/a/b"
  /// The root, and the locations above what is written.
  private static let above = ["/", "/p", "/p/a"]

  @Test(
    "once the write is accepted, listens show the leaf that the server has set meanwhile",
    arguments: above, above + [written])
  func accepted(leaf: String, listened: String) throws {
    for pendingBeside in [false, true] {
      for isUpdate in [false, true] {
        let target = QueryTarget(try Path(parsing: listened))
        var tree = SyncedTree()
        for case .listen(let target, let number, let tag, _, _) in tree.begin(target) {
          _ = tree.put(Node(.integer(0)), at: DataPlace(target.path), tag: tag)
          tree.noteNews(number: number)
          _ = tree.listened(number: number, target)
        }
        let place = DataPlace(try Path(parsing: Self.written))
        let seven = Node(.integer(7))
        let write =
          isUpdate
          ? PendingWrites.Write(
            updating: try Path(parsing: "/p"),
            [PendingWrites.Entry(DataPlace(try Path(parsing: "/a/b")), seven)])
          : PendingWrites.Write(setting: place, seven)
        _ = tree.write(write, number: 1)
        let beside = DataPlace(try Path(parsing: "/p/c"))
        if pendingBeside {
          _ = tree.write(PendingWrites.Write(setting: beside, seven), number: 2)
        }
        // The server tells of the write before it answers, and of a later one of another client.
        var server = Node.empty
        for (node, news) in [
          (seven, place), (Node(.integer(1)), DataPlace(try Path(parsing: leaf))),
        ] {
          server.put(node, at: news)
          guard news.path.relative(to: target.path) != nil else {
            _ = tree.put(server.node(at: target.path), at: DataPlace(target.path), tag: nil)
            continue
          }
          _ = tree.put(node, at: news, tag: nil)
        }
        let before = tree.visible(target)?.node
        let steps = tree.answered(number: 1, isAccepted: true)
        var expected = server
        if pendingBeside { expected.put(seven, at: beside) }
        let shown = tree.visible(target)?.node
        #expect(shown == expected.node(at: target.path), "update: \(isUpdate)")
        let seen = steps.last { $0.target == target }?.after.node ?? before
        #expect(seen == shown, "update: \(isUpdate)")
      }
    }
  }

  @Test("a query shows the leaf that a child has become, too")
  func query() throws {
    var parameters = QueryParameters()
    parameters.limit = .first(3)
    let target = QueryTarget(try Path(parsing: "/p"), parameters)
    var tree = SyncedTree()
    tree.isOurServer = true
    var start = Node.empty
    start.put(Node(.integer(0)), at: DataPlace(try Path(parsing: "/a/x")))
    start.put(Node(.integer(0)), at: DataPlace(try Path(parsing: "/k")))
    for case .listen(let target, let number, let tag, _, _) in tree.begin(target) {
      _ = tree.put(start, at: DataPlace(target.path), tag: tag)
      tree.noteNews(number: number)
      _ = tree.listened(number: number, target)
    }
    let tag = try #require(tree.tag(of: target))
    let seven = Node(.integer(7))
    let written = DataPlace(try Path(parsing: "/p/a/b"))
    _ = tree.write(PendingWrites.Write(setting: written, seven), number: 1)
    _ = tree.put(seven, at: written, tag: tag)
    _ = tree.put(Node(.integer(1)), at: DataPlace(try Path(parsing: "/p/a")), tag: tag)
    _ = tree.answered(number: 1, isAccepted: true)
    var expected = Node.empty
    expected.put(Node(.integer(1)), at: DataPlace(try Path(parsing: "/a")))
    expected.put(Node(.integer(0)), at: DataPlace(try Path(parsing: "/k")))
    #expect(tree.visible(target)?.node == expected)
  }
}
