import DendroTree
import Testing

@Suite("DendroTree.md")
struct DendroTreeSamples {
  @Test("a write and its undoing")
  func undo() throws {
    // sample
    var root = Node.empty
    let path = try Path(parsing: "posts/-NjEtLV-abcdefghijkl/title")
    let view = root
    let changes = root.apply(.set(path, Node(.string("Tree rings"))))
    for change in changes.reversed() { root.graft(change.replaced, at: change.path) }
    assert(root == view)
    // end
  }
}
