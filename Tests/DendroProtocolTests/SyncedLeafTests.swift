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
        let steps = tree.answered(number: 1, isAccepted: true)
        var expected = server
        if pendingBeside { expected.put(seven, at: beside) }
        let shown = tree.visible(target)?.node
        #expect(shown == expected.node(at: target.path), "update: \(isUpdate)")
        if let last = steps.last(where: { $0.target == target }) {
          #expect(last.after.node == shown)
        }
      }
    }
  }
}
