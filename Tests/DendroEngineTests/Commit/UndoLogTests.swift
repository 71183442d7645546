import DendroTestSupport
import DendroTree
import Testing

@testable import DendroEngine

/// What is kept for undoing is exact.
@Suite("Undo log")
struct UndoLogTests {
  @Test(
    "grafting back what it has gives the tree before, after any writes",
    arguments: Scale.seeds(20))
  func exact(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    generator.stringByteCountMax = [10, 400][Int(seed % 2)]
    var root = Node.empty
    for _ in 0..<200 { _ = root.apply(generator.write()) }
    var log = UndoLog()
    for round in 0..<20 {
      let before = ModelTree(root).description
      var count = 0
      for _ in 0..<(10 * round) {
        let write = generator.write()
        let (first, expected) = (log.count, root)
        var editor = TreeEditor(root, remembersPlace: false)
        EncodedWrite(write).withView { view in
          editor.apply(view) { path, replaced in log.append(path, replaced) }
        }
        root = editor.finish()
        var copy = expected
        let changes = copy.apply(write)
        #expect(log.contents.paths(from: first) == changes.map(\.path))
        #expect(log.contents.replaced(from: first).map(\.node) == changes.map(\.replaced))
        count += changes.count
      }
      let replaced = log.contents.replaced()
      #expect(replaced.count == count && (count == 0) == (log.byteCount == 0))
      for change in replaced.reversed() { root.graft(change.node, at: change.path) }
      try root.checkInvariants()
      try #require(ModelTree(root).description == before, "seed \(seed), round \(round)")
      log.removeAll()
      #expect(log.contents.replaced().isEmpty && log.byteCount == 0)
    }
  }
}
