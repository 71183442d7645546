import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// What an engine promises of single writes.
package enum Rules {
  package static let sweep = Sweep.cases(
    "rules",
    [
      Case("the clock is set back", clock),
      Case("a write over the limit", writeLimit),
      Case("a tree over the memory limit", memoryLimit),
      Case("a transaction that is overtaken", transaction),
      Case("a text that is refused, and comes again", refusedText),
      Case("a payload that nests without end", depth),
      Case("a payload with more than its writes", payloadEnd),
    ])

  /// Keeps the times of the commits.
  private final class Times: CommitObserver {
    let all = Mutex<[Int64]>([])

    func committed(_ commit: borrowing Commit, root: borrowing Node) {
      let time = commit.time
      all.withLock { $0.append(time) }
    }
  }

  @Sendable private static func clock() throws -> String? {
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
    return all == all.sorted() && all.count > 12 ? nil : "times of the writes: \(all)"
  }

  @Sendable private static func writeLimit() throws -> String? {
    var options = EngineRecording.options()
    options.writeByteLimit = 1000
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    let told = Mutex<[String]>([])
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
        told.withLock { $0.append(text) }
      }
    }
    engine.pump()
    let all = told.withLock { $0 }
    return all == ["too large", "done", "too large", "too large"] ? nil : "\(all)"
  }

  @Sendable private static func memoryLimit() throws -> String? {
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
    if size > 512 << 10 { return "the tree takes \(size) bytes" }
    return refused.withLock { $0 } > 100 ? nil : "hardly any was refused"
  }

  @Sendable private static func transaction() throws -> String? {
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1))
    let place = Path("n")
    var runCount = 0
    engine.transact(at: place, refused: { _ in }) { input in
      runCount += 1
      if runCount == 1 {
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
          engine.submit(Draft(.set(place, Node(.integer(10)))), completion: nil)
          done.signal()
        }
        done.wait()
      }
      guard case .integer(let value)? = input.scalar ?? .integer(0) else {
        return TransactionDecision(nil) { _ in }
      }
      return TransactionDecision(Draft(.set(place, Node(.integer(value + 1))))) { _ in }
    }
    engine.pump()
    let found = engine.head.root.node(at: place).scalar
    return found == .integer(11) && runCount == 2 ? nil : "\(found as Any) after \(runCount) runs"
  }

  /// What was compressed for a refused append is in no reader's history.
  @Sendable private static func refusedText() throws -> String? {
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
    if count != 2 && count != 3 { return "\(count) of 4 were taken" }
    try engine.close()
    return try EngineRecording.open(disk).head.root == root ? nil : "another tree"
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

  @Sendable private static func payloadEnd() throws -> String? {
    let two = payload([.set(Path("a"), Node(.integer(1))), .set(Path("b"), Node(.integer(2)))])
    if try EngineRecording.open(log(two, count: 2)).head.lsn != LogSequenceNumber(2) {
      return "the right one is not served"
    }
    return refusal(of: try log(two, count: 1))
  }

  @Sendable private static func depth() throws -> String? {
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
        if root.node(at: Path("a")) != nested(depth) { return "\(depth) levels: another tree" }
      } else if let problem = refusal(of: disk) {
        return "\(depth) levels: \(problem)"
      }
    }
    return nil
  }

  private static func nested(_ depth: Int) -> Node {
    var node = Node(.integer(1))
    for _ in 0..<depth {
      var builder = NodeBuilder()
      builder.append(Key(of: "k"), node)
      node = builder.finish(priority: nil)
    }
    return node
  }
}
