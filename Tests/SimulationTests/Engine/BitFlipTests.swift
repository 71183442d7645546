import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import Testing

/// G4: every single bit of a database, flipped. It is refused with the file and the offset, or it
/// does no harm; never is a wrong tree served.
@Suite struct BitFlipTests {
  struct Database: Sendable {
    let disk: SimulatedDisk
    /// The tree that was closed.
    let tree: Node
    /// All trees that ever were, oldest first.
    let trees: [Node]
    let files: [(path: String, byteCount: Int)]

    /// - Parameter byteCount: of all values together.
    init(byteCount: Int, writes: Int) throws(EngineError) {
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

    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }
  }

  enum Outcome: Hashable {
    case harmless
    case refused
    case wrong(String)
  }

  static func outcome(_ disk: SimulatedDisk, _ database: Database) -> Outcome {
    do throws(EngineError) {
      let engine = try EngineRecording.open(disk)
      return engine.head.root == database.tree ? .harmless : .wrong("another tree")
    } catch {
      guard case .storage(let cause) = error else { return .wrong("refused as \(error)") }
      switch cause {
      case .corrupt(let path, let offset, let expected, let found):
        // With its place: the file and an offset in it, what was expected there and what stands.
        // Of a missing file the place is the directory.
        let size = path == EngineRecording.directory ? 0 : disk.contents(of: path)?.count
        guard let size, offset <= UInt64(size), !expected.isEmpty, !found.isEmpty else {
          return .wrong("refused without a place: \(cause)")
        }
        return .refused
      case .unsupportedVersion: return .refused
      default: return .wrong("refused as \(cause)")
      }
    }
  }

  @Test func everyBit() async throws {
    if Reproduction.isOnlyOne { return }
    let database = try Database(byteCount: 46_000, writes: 60)
    let segments = database.files.filter { $0.path.hasSuffix(".log") }
    let checkpoints = database.files.filter { $0.path.hasSuffix(".checkpoint") }
    #expect(segments.count >= 3)
    #expect(checkpoints.count >= 1)
    #expect(Self.outcome(database.disk.copy(), database) == .harmless)
    // Chunks of bits, each a job.
    var jobs: [(path: String, bits: StrideTo<Int>)] = []
    let stride = Sweep.scale < 1 ? 53 : 1
    for (path, byteCount) in database.files {
      for start in Swift.stride(from: 0, to: byteCount * 8, by: 4096) {
        let end = min(byteCount * 8, start + 4096)
        jobs.append((path, Swift.stride(from: start, to: end, by: stride)))
      }
    }
    let total = database.byteCount * 8
    await Sweep.run("G4", jobs, unit: "bit flips", goal: stride == 1 ? max(total, 524_288) : 1000) {
      path, bits in
      var tally = Sweep.Tally()
      for bit in bits where !tally.isHopeless {
        let disk = database.disk.copy()
        disk.flipBit(bit, of: path)
        tally.count += 1
        switch Self.outcome(disk, database) {
        case .harmless: tally.details["harmless", default: 0] += 1
        case .refused: tally.details["refused", default: 0] += 1
        case .wrong(let problem):
          tally.failures.append("G4: bit \(bit) (byte \(bit / 8)) of \(path) flipped: \(problem)")
        }
      }
      return tally
    }
  }

  /// A file that lost its end shows a tree that once was, or is refused.
  @Test func everyTruncation() async throws {
    if Reproduction.isOnlyOne { return }
    let database = try Database(byteCount: 4000, writes: 12)
    var jobs: [(path: String, size: Int)] = []
    for (path, byteCount) in database.files {
      for size in 0..<byteCount { jobs.append((path, size)) }
    }
    await Sweep.run("truncation", jobs, unit: "truncations", goal: jobs.count) { path, size in
      let disk = database.disk.copy()
      disk.resize(path, to: size)
      var tally = Sweep.Tally(count: 1)
      do throws(EngineError) {
        let engine = try EngineRecording.open(disk)
        if !database.trees.contains(engine.head.root) {
          tally.failures.append("\(path) cut to \(size) bytes: a tree that never was")
        }
      } catch {
        if case .storage(.corrupt) = error { return tally }
        tally.failures.append("\(path) cut to \(size) bytes: refused as \(error)")
      }
      return tally
    }
  }

  /// Any missing file does no harm or is noticed, a segment that the newest checkpoint does not
  /// make up for always: the last one too.
  @Test func everyMissingFile() throws {
    let database = try Database(byteCount: 4000, writes: 12)
    let segments = database.files.map(\.path).filter { $0.hasSuffix(".log") }.sorted()
    for (path, _) in database.files {
      let disk = database.disk.copy()
      disk.erase(path)
      switch Self.outcome(disk, database) {
      case .harmless: #expect(path != segments.last, "\(path)")
      case .refused: #expect(path.hasSuffix(".log"), "\(path)")
      case .wrong(let problem): Issue.record("\(path): \(problem)")
      }
    }
  }
}

extension Sequence<Node> {
  fileprivate func contains(_ node: Node) -> Bool { contains { $0 == node } }
}
