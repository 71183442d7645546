import DendroTestSupport
import DendroTree
import Testing

@Suite("The order of an update's entries")
struct WriteOrderTests {
  @Test("by path, a priority after the data of its path; what is in order stays", arguments: 0..<40)
  func inOrder(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var entries: [Write.Entry] = []
    for _ in 0..<random.below(60) {
      let keys = (0..<1 + random.below(3)).map { _ in
        ["a", "b", "10", "9", "a-longer-key"][random.below(5)]
      }
      entries.append(
        Write.Entry(
          path: try Path(parsing: keys.joined(separator: "/")),
          action: random.oneIn(4) ? .setPriority(.integer(1)) : .set(Node(.integer(2)))))
    }
    func shown(_ entries: [Write.Entry]) -> [String] {
      entries.map { entry in
        if case .setPriority = entry.action { "\(entry.path)/.priority" } else { "\(entry.path)" }
      }
    }
    let ordered = entries.inOrder
    #expect(shown(ordered).sorted() == shown(entries).sorted(), "seed \(seed)")
    #expect(shown(ordered.inOrder) == shown(ordered), "seed \(seed)")
    for (a, b) in zip(ordered, ordered.dropFirst()) {
      #expect(a.path < b.path || a.path == b.path, "seed \(seed)")
      if a.path == b.path, case .setPriority = a.action {
        guard case .setPriority = b.action else {
          Issue.record("seed \(seed): a priority before its data")
          return
        }
      }
    }
  }
}
