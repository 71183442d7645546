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
        if case .increment(let path, let delta) = write {
          let outcome = path.storedBytes.withUnsafeBytes { bytes in
            log.append(bytes) { root.exchange(.increment(delta), at: bytes, replaced: $0) }
          }
          switch outcome {
          case .inserted, .replaced:
            count += 1
            continue
          case .unchanged: continue
          case .declined, .unloaded: break
          }
        }
        for change in root.apply(write) {
          log.append(change.path, change.replaced)
          #expect(change.replaced.isBranch || log.lastReplaced == change.replaced)
          count += 1
        }
      }
      let replaced = log.replaced
      #expect(replaced.count == count && (count == 0) == (log.byteCount == 0))
      for change in replaced.reversed() { root.graft(change.node, at: change.path) }
      try root.checkInvariants()
      try #require(ModelTree(root).description == before, "seed \(seed), round \(round)")
      log.removeAll()
      #expect(log.replaced.isEmpty && log.byteCount == 0)
    }
  }
}
