package import DendroEngine
import DendroStorage
package import DendroTesting
package import DendroTree

/// A database of a few segments and a checkpoint that was closed in order, to be damaged.
package struct ClosedDatabase: Sendable {
  package let disk: SimulatedDisk
  /// The tree that was closed.
  package let tree: Node
  /// All trees that ever were, oldest first.
  package let trees: [Node]
  package let files: [(path: String, byteCount: Int)]

  /// A database with that many bytes in all values together, spread over that many writes.
  package init(byteCount: Int, writes: Int) throws(EngineError) {
    var generator = SeededRandomness(seed: 4)
    var steps: [Step] = []
    for index in 0..<writes {
      // Letters at random: they neither compress away nor repeat.
      let value = String(
        (0..<byteCount / writes).map { _ in
          Character(Unicode.Scalar(UInt8.random(in: 0x21...0x7e, using: &generator)))
        })
      steps.append(.set("posts/p\(index)/text", .string(value)))
      if index == writes / 3 || index == writes * 2 / 3 { steps.append(.roll) }
      if index == writes / 2 { steps.append(.checkpoint) }
      if index % 7 == 3 { steps.append(.write([.remove(Path("posts/p\(index - 2)"))])) }
    }
    let recording = try EngineRecording(seed: 4, steps: steps)
    precondition(recording.problems.isEmpty, "\(recording.problems)")
    disk = recording.disk
    trees = recording.trees
    tree = trees.last!
    files = recording.disk.names(in: EngineRecording.directory).map { name in
      let path = EngineRecording.directory + "/" + name
      return (path, recording.disk.contents(of: path)?.count ?? 0)
    }
  }

  package var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

  package enum Outcome: Hashable, Sendable {
    case harmless
    case refused
    /// Without its last write, which is reported as undecidable.
    case undecidable
    case wrong(String)
  }

  /// What becomes of opening a damaged copy: the tree that was closed, a refusal that names the
  /// place, or else what must not be. If both the last record and the one that proves it are damaged,
  /// nothing distinguishes them from a torn tail.
  package func outcome(_ damaged: SimulatedDisk) -> Outcome {
    do throws(EngineError) {
      let engine = try EngineRecording.open(damaged)
      let root = engine.head.root
      if root == tree { return .harmless }
      // The last write alone, and only if the report says so.
      let before = trees.last { $0 != tree }
      return engine.report.lastBatchUndecidable && root == before
        ? .undecidable : .wrong("another tree")
    } catch {
      guard case .storage(let cause) = error else { return .wrong("refused as \(error)") }
      switch cause {
      case .corrupt(let path, let offset, let expected, let found):
        // With its place: the file and an offset in it, what was expected there and what stands.
        guard let size = damaged.contents(of: path)?.count, offset <= UInt64(size),
          !expected.isEmpty, !found.isEmpty
        else {
          return .wrong("refused without a place: \(cause)")
        }
        return .refused
      case .missing(EngineRecording.directory, let what, let reason):
        return what.isEmpty || reason.isEmpty
          ? .wrong("refused without a reason: \(cause)") : .refused
      default: return .wrong("refused as \(cause)")
      }
    }
  }
}
