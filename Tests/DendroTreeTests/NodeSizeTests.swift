import DendroTree
import Testing

@Suite("nodes: their size")
struct NodeSizeTests {
  /// A branch of `count` strings of `length` bytes, in groups of `width`.
  private func tree(_ count: Int, length: Int, width: Int) throws -> Node {
    let text = String(repeating: "x", count: length)
    var groups = NodeBuilder()
    for start in stride(from: 0, to: count, by: width) {
      var group = NodeBuilder()
      for index in start..<min(count, start + width) {
        group.append(try Key("k\(index + 1_000_000)"), Node(.string(text)))
      }
      groups.append(try Key("g\(start + 1_000_000)"), group.finish())
    }
    return groups.finish()
  }

  @Test(
    "it is about that of the keys and values, whether they are short or long, flat or deep",
    arguments: [
      (3_000, 5, 3_000), (3_000, 5, 3), (300, 200, 300), (300, 1_000, 10), (3, 100_000, 1),
    ])
  func size(count: Int, length: Int, width: Int) throws {
    let node = try tree(count, length: length, width: width)
    let groupCount = (count + width - 1) / width
    let data = count * (length + 8) + groupCount * 8
    #expect(node.isLarger(than: data * 9 / 10))
    #expect(!node.isLarger(than: data * 13 / 10 + 1_000))
    #expect(node.isLarger(than: 0))
  }

  @Test("a leaf is as large as its text, and nothing as nothing")
  func leaves() {
    let leaf = Node(.string(String(repeating: "ä", count: 1_000)))
    #expect(leaf.isLarger(than: 1_999))
    #expect(!leaf.isLarger(than: 2_000))
    #expect(!Node(.integer(7)).isLarger(than: 8))
    #expect(!Node.empty.isLarger(than: 0))
  }
}
