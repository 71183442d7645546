import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import DendroTestSupport

/// An engine on a simulated disk, driven with random writes, and the oracle of all its states.
final class HistoryModel {
  let disk: SimulatedDisk
  var options: EngineOptions
  private(set) var engine: Engine
  /// After each write; the first is the empty tree.
  private(set) var models: [ModelTree] = [.empty]
  private(set) var trees: [Node] = [.empty]
  /// Milliseconds since 1970; the first stands for no write.
  private(set) var times: [Int64] = [0]
  private(set) var writes: [Write?] = [nil]
  private(set) var checkpoints: [Int] = []
  private var generator: WriteGenerator
  private var random: SeededGenerator

  var last: Int { models.count - 1 }

  static func options(_ history: HistoryRetention) -> EngineOptions {
    var options = EngineOptions.inline
    options.history = history
    options.segmentByteLimit = 3000
    options.checkpointByteMin = 4000
    return options
  }

  init(seed: UInt64, _ history: HistoryRetention) throws {
    disk = SimulatedDisk(seed: seed)
    options = Self.options(history)
    engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    generator = WriteGenerator(seed: seed)
    generator.wideOneIn = 30
    random = SeededGenerator(seed: seed &+ 1)
  }

  /// Admits a random write that changes something, if it is accepted; not pumped.
  func submit() {
    let write = generator.write()
    guard (try? write.validate()) != nil else { return }
    if case .setPriority(let path, _) = write, trees[last].node(at: path).isEmpty { return }
    var tree = trees[last]
    if random.oneIn(3) { disk.clock.advance(by: Int64(random.below(4))) }
    if !tree.apply(write).isEmpty {
      var model = models[last]
      model.apply(write)
      models.append(model)
      trees.append(tree)
      times.append(max(times[times.count - 1], disk.clock.now()))
      writes.append(write)
    }
    engine.submit(Draft(write), completion: nil)
  }

  func reopen() throws {
    try engine.close()
    engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  func step() throws {
    switch random.below(40) {
    case 0: try reopen()
    case 1, 2:
      try engine.checkpoint()
      if last > 0, checkpoints.last != last { checkpoints.append(last) }
    case 3: try engine.roll()
    case 4..<14: for _ in 0..<random.below(6) { submit() }
    default: submit()
    }
    engine.pump()
  }

  func run(_ count: Int) throws { for _ in 0..<count { try step() } }

  /// What is wrong with the past of `engine`, whose head is one of the states.
  ///
  /// - Parameter stride: every how manieth state is looked at.
  func problem(of engine: Engine, stride: Int = 1) throws -> String? {
    let range = try engine.historyRange()
    let oldest = Int(range.oldest.rawValue)
    let newest = Int(range.newest.rawValue)
    guard newest <= last, engine.head.lsn == range.newest else { return "the range is \(range)" }
    guard range.oldestTime ?? 0 == times[oldest], range.newestTime ?? 0 == times[newest] else {
      return "the times of \(range): \(range.oldestTime ?? 0), \(range.newestTime ?? 0)"
    }
    for lsn in Swift.stride(from: oldest, through: newest, by: stride) {
      let root = try engine.root(at: .lsn(LogSequenceNumber(UInt64(lsn))))
      guard let root, root == trees[lsn] else { return "another tree at write \(lsn)" }
      // The oracle is slow.
      guard lsn % 5 == 0 else { continue }
      guard ModelTree(root) == models[lsn] else { return "not the oracle's tree at write \(lsn)" }
      let time = times[lsn]
      let latest = times[...newest].lastIndex { $0 <= time } ?? 0
      guard try engine.root(at: .time(time)) == trees[latest] else {
        return "another tree at the time of write \(lsn)"
      }
    }
    for lsn in [oldest - 1, newest + 1] where lsn >= 0 {
      guard Self.isRefused(try engine.root(at: .lsn(LogSequenceNumber(UInt64(lsn)))), range) else {
        return "write \(lsn) is outside \(range)"
      }
    }
    if oldest > 0, times[oldest - 1] < times[oldest] {
      guard Self.isRefused(try engine.root(at: .time(times[oldest] - 1)), range) else {
        return "the time before \(range)"
      }
    }
    return nil
  }

  private static func isRefused(_ read: @autoclosure () throws -> Node?, _ range: HistoryBounds)
    -> Bool
  {
    do {
      _ = try read()
      return false
    } catch EngineError.outOfHistory(_, range) {
      return true
    } catch {
      return false
    }
  }

  /// What is wrong with what follows write `start` in the log, or nil.
  func problem(ofChangesSince start: Int, in engine: Engine, at path: Path = .root) throws
    -> String?
  {
    let reader = try engine.changes(since: LogSequenceNumber(UInt64(start)), at: path)
    let durable = engine.statistics().durableLSN
    var found: [LoggedWrite] = []
    var pageCount = 0
    while pageCount < 10_000 {
      pageCount += 1
      found += try reader.page(upTo: durable)
      if reader.position >= durable { break }
    }
    var tree = trees[start]
    var expected = (start + 1...max(start + 1, Int(durable.rawValue))).filter {
      $0 <= Int(durable.rawValue)
    }
    if !path.isRoot { expected.removeAll { !writes[$0]!.concerns(path) } }
    guard found.map({ Int($0.lsn.rawValue) }) == expected else {
      return "since \(start) the writes \(found.map(\.lsn)) instead of \(expected)"
    }
    for write in found {
      let lsn = Int(write.lsn.rawValue)
      guard write.time == times[lsn] else { return "the time of write \(lsn)" }
      guard path.isRoot else { continue }
      _ = tree.apply(write.write)
      guard tree == trees[lsn] else { return "write \(lsn) leads to another tree" }
    }
    return nil
  }
}
