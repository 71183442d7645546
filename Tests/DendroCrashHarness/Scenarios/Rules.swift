import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import DendroTestSupport
import Foundation
import Synchronization

/// What an engine promises of single writes.
package enum Rules {
  package static let scenarios = [
    Scenario("the clock is set back", clock),
    Scenario("a write over the limit", writeLimit),
    Scenario("a tree over the memory limit", memoryLimit),
    Scenario("a text that is refused, and comes again", refusedText),
    Scenario("a payload that nests without end", depth),
    Scenario("a payload with a path without end", pathDepth),
    Scenario("a payload with more than its writes", payloadEnd),
    Scenario("a payload with a branch that has nothing", emptyNodes),
    Scenario("a payload with a priority that is none", priorityKind),
    Scenario("a damaged last record", lastRecord),
  ]

  /// Keeps the times of the commits.
  private final class Times: CommitObserver {
    let all = Mutex<[Int64]>([])

    func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
      let time = commit.time
      all.withLock { $0.append(time) }
      return false
    }
  }

  @Sendable private static func clock() throws {
    let disk = SimulatedDisk(seed: 1)
    let times = Times()
    for round in 0..<3 {
      let engine = try EngineRecording.open(disk)
      engine.setObserver(times)
      for step in 0..<4 {
        let draft = Draft(
          .set(Path("t"), Node(.integer(0))), deferred: [.init(path: .root, value: .timestamp)])
        engine.submit(draft, completion: nil)
        engine.submit(
          Draft(.set(Path("n"), Node(.integer(Int64(round * 4 + step))))), completion: nil)
        engine.pump()
        disk.clock.advance(by: step == 1 ? -100_000 : 1000)
      }
      try engine.close()
    }
    let all = times.all.withLock { $0 }
    try require(all == all.sorted() && all.count > 12, "times of the writes: \(all)")
  }

  @Sendable private static func writeLimit() throws {
    var options = EngineRecording.options()
    options.writeByteLimit = 1000
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    let notes = Mutex<[String]>([])
    let large = Node(.string(String(repeating: "x", count: 5000)))
    let small = Node(.string(String(repeating: "x", count: 500)))
    let writes: [Write] = [
      .set(Path("a"), large), .set(Path("b"), small),
      .update(.root, [.init(path: Path("c"), action: .set(large))]),
      .setPriority(Path("b"), .string(String(repeating: "p", count: 3000))),
    ]
    for write in writes {
      engine.submit(Draft(write)) { result in
        let text =
          switch result {
          case .success: "done"
          case .failure(.writeTooLarge): "too large"
          case .failure(let error): "\(error)"
          }
        notes.withLock { $0.append(text) }
      }
    }
    engine.pump()
    let all = notes.withLock { $0 }
    try require(all == ["too large", "done", "too large", "too large"], "\(all)")
  }

  @Sendable private static func memoryLimit() throws {
    var options = EngineRecording.options()
    options.memoryByteLimit = 256 << 10
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    let refused = Mutex(0)
    for index in 0..<200 {
      let text = String(repeating: "\(index % 10)", count: 8 << 10)
      engine.submit(Draft(.set(Path("a/\(index)"), Node(.string(text))))) { result in
        if case .failure(.memoryLimit) = result { refused.withLock { $0 += 1 } }
      }
      engine.pump()
    }
    let size = engine.head.root.memory().byteCount
    if size > 512 << 10 { throw Violation("the tree takes \(size) bytes") }
    if refused.withLock({ $0 }) < 100 { throw Violation("hardly any was refused") }
    let notes = Notes()
    engine.submit(Draft(.remove(Path("a"))), completion: notes.completion)
    engine.pump()
    try require(notes.all == ["done"], "a removal was refused")
  }

  /// What was compressed for a refused append is in no reader's history.
  @Sendable private static func refusedText() throws {
    var random = SeededRandomness(seed: 5)
    let text = String(
      (0..<3000).map { _ in
        Character(Unicode.Scalar(UInt8.random(in: 0x21...0x7e, using: &random)))
      })
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    engine.pump()
    disk.inject(.failure(of: .write, at: 1, with: ENOSPC))
    for round in 0..<4 {
      engine.submit(Draft(.set(Path("t/\(round)"), Node(.string(text)))), completion: nil)
      engine.pump()
    }
    let root = engine.head.root
    let count = root.node(at: Path("t")).childCount
    if count != 2 && count != 3 { throw Violation("\(count) of 4 were taken") }
    try engine.close()
    try require(try EngineRecording.open(disk).head.root == root, "another tree")
  }

  // MARK: Payloads under right checksums

  /// A log of one record with that payload.
  private static func log(_ payload: [UInt8], count: Int) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 1)
    let directory = try DatabaseDirectory.open(
      EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
    let writer = try LogWriter.create(directory, databaseID: DatabaseID(disk.randomness), time: 1)
    try writer.append(payload, count: count)
    try writer.close()
    directory.close()
    return disk
  }

  private static func payload(_ writes: [Write]) -> [UInt8] {
    let buffer = PayloadBuffer()
    var previous = Path.root
    for write in writes {
      WriteCoding.encodeHead(of: write, timeDelta: 0, previousPath: previous, into: buffer)
      WriteCoding.encodeBody(of: write, into: buffer)
      previous = write.path
    }
    return buffer.withBytes { [UInt8]($0) }
  }

  @Sendable private static func payloadEnd() throws {
    let two = payload([.set(Path("a"), Node(.integer(1))), .set(Path("b"), Node(.integer(2)))])
    if try EngineRecording.open(log(two, count: 2)).head.lsn != LogSequenceNumber(2) {
      throw Violation("the right one is not served")
    }
    try requireRefusal(of: try log(two, count: 1))
  }

  /// The payload of a set up to where its node begins, and that node.
  private static func set(_ node: Node) -> (head: [UInt8], node: [UInt8]) {
    let leaf = payload([.set(Path("a"), Node(.integer(1)))])
    let whole = payload([.set(Path("a"), node)])
    let begin = zip(leaf, payload([.set(Path("a"), nested(1))])).prefix { $0 == $1 }.count
    return (Array(whole[..<begin]), Array(whole[begin...]))
  }

  @Sendable private static func emptyNodes() throws {
    let (head, branch) = set(nested(1))
    let leafByteCount = set(Node(.integer(1))).node.count
    let nodes: [[UInt8]] = [[0x41, 0], branch.dropLast(leafByteCount) + [0x40]]
    for node in nodes {
      try requireRefusal(of: try log(head + node, count: 1), "\(node)")
    }
  }

  @Sendable private static func priorityKind() throws {
    let whole = payload([
      .set(Path("a"), Node(.integer(1))), .setPriority(Path("a"), .integer(1)),
    ])
    var (number, bool): ([UInt8], [UInt8]) = ([], [])
    PackedScalar.append(.integer(1), to: &number)
    PackedScalar.append(.bool(true), to: &bool)
    guard whole.suffix(number.count) == number[...] else {
      throw Violation("no priority at the end")
    }
    try requireRefusal(of: try log(whole.dropLast(number.count) + bool, count: 2))
  }

  /// Nothing says that the last record was durable: damaged, it is cut, and the report says that it may
  /// have been acknowledged; cut short, it was not.
  @Sendable private static func lastRecord() throws {
    let recording = try EngineRecording(
      seed: 1, steps: [.set("a", .integer(1)), .set("b", .string("the last one"))])
    // Before the idle record of the orderly end.
    guard
      let point = recording.points.first(where: {
        recording.durability.legalWrites(at: $0.operationCount).lowerBound == 2
      }),
      let path = recording.disk.segmentPaths.last
    else { throw Violation("no such moment") }
    for isCut in [false, true] {
      let disk = point.disk(point.allKept)
      let end = ((disk.contents(of: path) ?? []).lastIndex { $0 != 0 } ?? 0) + 1
      if isCut { disk.resize(path, to: end - 3) } else { disk.flipBit((end - 3) * 8, of: path) }
      let engine = try EngineRecording.open(disk)
      if engine.head.lsn != LogSequenceNumber(1) {
        throw Violation("served up to \(engine.head.lsn)")
      }
      if engine.report.lastBatchUndecidable == isCut {
        throw Violation(
          isCut ? "cut short, it is reported as damaged" : "damaged, it is not reported")
      }
    }
  }

  @Sendable private static func depth() throws {
    // A set of a leaf ends with the leaf: branches of one child are put before it.
    let leaf = payload([.set(Path("a"), Node(.integer(1)))])
    let node = payload([.set(Path("a"), Self.nested(1))])
    let begin = zip(leaf, node).prefix { $0 == $1 }.count
    let branch = Array(node[begin..<node.count - (leaf.count - begin)])
    for (depth, isGood) in [(1, true), (3, true), (200, false), (20_000, false)] {
      let bytes = leaf[..<begin] + Array(repeating: branch, count: depth).joined() + leaf[begin...]
      let disk = try log(Array(bytes), count: 1)
      if isGood {
        let root = try EngineRecording.open(disk).head.root
        if root.node(at: Path("a")) != nested(depth) {
          throw Violation("\(depth) levels: another tree")
        }
      } else {
        try requireRefusal(of: disk, "\(depth) levels")
      }
    }
  }

  @Sendable private static func pathDepth() throws {
    for (count, isGood) in [(32, true), (33, false), (5000, false)] {
      let path = Path(keys: Array(repeating: Key(of: "k"), count: count))
      for write in [Write.remove(path), .increment(path, .integer(1)), .update(path, [])] {
        let disk = try log(payload([write]), count: 1)
        if isGood {
          _ = try EngineRecording.open(disk)
        } else {
          try requireRefusal(of: disk, "\(count) keys")
        }
      }
    }
  }

  static func nested(_ depth: Int) -> Node {
    var node = Node(.integer(1))
    for _ in 0..<depth {
      var builder = NodeBuilder()
      builder.append(Key(of: "k"), node)
      node = builder.finish(priority: nil)
    }
    return node
  }
}
