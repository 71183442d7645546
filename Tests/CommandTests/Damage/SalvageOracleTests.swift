import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Testing

/// Compares what a repair saves, and says, with a database of which everything is known.
@Suite("Salvage: random damage, held against every state of the database")
struct SalvageOracleTests {
  private static let damageCount = Scale.share < 1 ? 2_000 : 100_000
  private static let damagesPerSeed = 100
  private static let seeds = 0..<UInt64(damageCount / damagesPerSeed)

  @Test("everything that proves itself is saved, and what is said of it is true", arguments: seeds)
  func repair(seed: UInt64) throws { try repair(seed) { _ in true } }

  /// A record behind one that could not be read because of damage before it, and a file without header under the name of
  /// another one.
  @Test("so it is with damages that were judged wrongly once", arguments: [(756, 39), (765, 56)])
  func repairAgain(seed: UInt64, number: Int) throws { try repair(seed) { $0 == number } }

  private func repair(_ seed: UInt64, _ isWanted: (_ number: Int) -> Bool) throws {
    let folder = try Folder()
    let good = try LoggedDirectory(
      at: "\(folder.path)/good", seed: seed, keepsHistory: seed % 3 != 0)
    let none = Damage(of: good)
    var random = SeededGenerator(seed: seed &+ 77)
    for number in 0..<Self.damagesPerSeed {
      let damage = none.adding(1 + random.below(3), random: &random)
      let hint: Comment = "seed \(seed), damage \(number): \(damage.description)"
      let point = random.below(good.trees.count)
      guard isWanted(number) else { continue }
      try damage.write(to: "\(folder.path)/db")
      try checkOpening("\(folder.path)/db", good, at: point, hint)
      do {
        try checkRepair("\(folder.path)/db", to: "\(folder.path)/new", damage, good, hint)
      } catch {
        Issue.record("\(hint) \(error)")
      }
      try? FileManager.default.removeItem(atPath: "\(folder.path)/new")
    }
  }

  /// What opening gives, and what history gives, was there once; otherwise both refuse.
  private func checkOpening(
    _ path: String, _ good: LoggedDirectory, at point: Int, _ hint: Comment
  ) throws {
    guard let engine = try? Engine.open(at: path, mode: .readOnly) else { return }
    defer { try? engine.close() }
    if let head = try? engine.wholeHead() {
      expectEqual(head.root, good.trees[Int(head.lsn.rawValue)], hint)
    }
    let lsn = LogSequenceNumber(UInt64(point))
    if let state = try? engine.state(at: .lsn(lsn)) {
      expectEqual(state.root, good.trees[point], "\(hint) at write \(point)")
    }
  }

  private func expectEqual(_ found: Node, _ truth: Node, _ hint: Comment) {
    #expect(
      CheckpointCoding.contentHash(of: found) == CheckpointCoding.contentHash(of: truth), hint)
  }

  private func checkRepair(
    _ path: String, to target: String, _ damage: Damage, _ good: LoggedDirectory, _ hint: Comment
  ) throws {
    let directory = try DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
    defer { directory.close() }
    guard try !directory.contents().isEmpty else { return }
    let salvage = try Salvage(directory)
    let sure = damage.savable(of: good)
    let readable = Set(salvage.readable.flatMap { Array($0) })
    #expect(
      sure.isSubset(of: readable), "\(hint) not saved: \(sure.subtracting(readable).sorted())")
    if let checkpoint = damage.checkpoint(of: good) {
      #expect(salvage.newestCheckpoint.rawValue >= checkpoint, hint)
    }
    let plan = salvage.plan
    guard plan.last > .zero else { return }
    let outcome = try salvage.repair(plan, to: target)
    let engine = try Engine.open(at: target, mode: .readOnly)
    let head = try engine.wholeHead()
    try engine.close()
    #expect(head.lsn == plan.last, hint)
    #expect(CheckpointCoding.contentHash(of: head.root) == outcome.contentHash, hint)
    let last = Int(plan.last.rawValue)
    guard last < good.trees.count else {
      Issue.record("\(hint) saved up to write \(last) of \(good.trees.count - 1)")
      return
    }
    checkLost(salvage, plan, readable, good, hint)
    checkTree(head.root, outcome, of: good.trees[last], isComplete: salvage.missingEnd == nil, hint)
    if let before = salvage.planBeforeGap {
      let state = try #require(try salvage.state(at: before.last))
      expectEqual(state.root, good.trees[Int(before.last.rawValue)], "\(hint) before the gap")
    }
  }

  /// Each write that is known to have been there is saved or said to be lost.
  private func checkLost(
    _ salvage: Salvage, _ plan: Salvage.Plan, _ readable: Set<UInt64>, _ good: LoggedDirectory,
    _ hint: Comment
  ) {
    let lost = Set(plan.lost.flatMap { Array($0) })
    let newest = salvage.newestCheckpoint.rawValue
    #expect(lost.isDisjoint(with: readable.filter { $0 > newest }), hint)
    #expect(salvage.end.rawValue < UInt64(good.trees.count), hint)
    for lsn in (newest + 1)..<(max(newest, salvage.end.rawValue) + 1) where !readable.contains(lsn)
    {
      #expect(lost.contains(lsn), "\(hint) write \(lsn)")
    }
    #expect(salvage.provenUpTo <= salvage.end, hint)
  }

  /// Leaves that are not in doubt are as they were; those that are missing are said to be.
  private func checkTree(
    _ tree: Node, _ outcome: Salvage.Outcome, of truth: Node, isComplete: Bool, _ hint: Comment
  ) {
    if CheckpointCoding.contentHash(of: tree) == CheckpointCoding.contentHash(of: truth) { return }
    let found = leaves(of: tree)
    let truths = leaves(of: truth)
    func isInDoubt(_ path: Path) -> Bool { outcome.doubts.contains { $0.path.isPrefix(of: path) } }
    for (path, leaf) in found where truths[path] != leaf && !isInDoubt(path) {
      Issue.record("\(hint) \(path) is \(leaf), was \(String(describing: truths[path]))")
    }
    for path in truths.keys where found[path] == nil {
      let isExplained =
        !outcome.plan.lost.isEmpty || outcome.holes.contains { $0.covers(path) }
      #expect(isExplained, "\(hint) \(path) is missing")
    }
    if outcome.isWhole, isComplete { #expect(found == truths, hint) }
  }

  private func leaves(of node: Node) -> [Path: String] {
    var leaves: [Path: String] = [:]
    func visit(_ node: Node, _ path: Path) {
      if node.isLeaf {
        leaves[path] = "\(String(describing: node.scalar)) \(String(describing: node.priority))"
      }
      for (key, child) in node.children { visit(child, path.appending(key)) }
    }
    visit(node, .root)
    return leaves
  }
}

extension PartialTree.Hole {
  /// Whether a location is at the hole or below it.
  fileprivate func covers(_ location: Path) -> Bool {
    guard path.isPrefix(of: location) else { return false }
    guard location.count > path.count else { return true }
    let key = Array(location.keys)[path.count]
    return first.map { key >= $0 } ?? true && end.map { key < $0 } ?? true
  }
}
