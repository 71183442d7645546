import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// G5: every call of a workload fails in every way, once and for good. Then the disk is well again,
/// and whoever opens it finds exactly what was acknowledged, or what was begun after it in whole.
@Suite struct FaultTests {
  static let workload: [Step] = [
    .set("a", .integer(1)),
    .write([.set(Path("b"), Node(.string("two"))), .increment(Path("n"), .integer(1))]), .roll,
    .write([
      .update(
        .root,
        [
          Write.Entry(path: Path("a/c"), action: .set(Node(.integer(3)))),
          Write.Entry(path: Path("b"), action: .remove),
        ])
    ]), .checkpoint, .write([.remove(Path("a"))]), .synchronize, .close,
    .set("d", .string("five")), .checkpoint, .set("e", .integer(6)),
    .write([.increment(Path("n"), .integer(1)), .set(Path("e"), Node(.integer(7)))]),
  ]

  static let effects: [DiskFault.Effect] = [
    .error(EIO), .error(ENOSPC), .error(EDQUOT), .error(EINTR), .short(1), .short(7),
    .partial(5, EIO), .partial(30, ENOSPC), .failedSynchronize(.kept),
    .failedSynchronize(.reverted),
  ]

  struct Case: Sendable, CustomStringConvertible {
    var fault: DiskFault
    var durability: Durability

    var description: String { "\(fault), \(durability)" }
  }

  @Test func everyCallFailsInEveryWay() async throws {
    if Reproduction.isOnlyOne { return }
    var cases: [Case] = []
    for durability in [Durability.everyCommit, .none, .interval(.seconds(3600))] {
      let disk = SimulatedDisk(seed: 5)
      var run = FaultedRun(disk, durability: durability)
      run.run(Self.workload)
      #expect(run.problems.isEmpty && run.refusedCount == 0, "\(run.problems)")
      for number in 1...disk.operationCount {
        for effect in Self.effects {
          for isPermanent in [false, true] {
            cases.append(
              Case(
                fault: DiskFault(effect, at: number, isPermanent: isPermanent),
                durability: durability))
          }
        }
      }
    }
    await Sweep.run("G5", cases, unit: "runs", goal: min(8000, cases.count)) { one in
      var tally = Sweep.Tally(count: 1)
      for problem in Self.problems(one, &tally) {
        tally.failures.append("G5 \(one): \(problem)")
      }
      return tally
    }
  }

  static func problems(_ one: Case, _ tally: inout Sweep.Tally) -> [String] {
    let disk = SimulatedDisk(seed: 5)
    var run = FaultedRun(disk, durability: one.durability)
    disk.inject(one.fault)
    run.run(workload)
    var problems = run.problems
    // What nobody sees fail must not make anything fail.
    switch (one.fault.effect, one.fault.isPermanent) {
    case (.error(EINTR), false), (.short, _):
      if run.refusedCount > 0 { problems.append("\(run.refusedCount) writes were refused") }
    default: break
    }
    guard problems.isEmpty else { return problems }
    // A crash there and then.
    let point = disk.crashPoint()
    var random = SeededRandomness(seed: UInt64(one.fault.number))
    let states =
      [point.allDropped, point.allKept]
      + (0..<4).map { _ in
        point.randomState(using: &random)
      }
    for state in states {
      tally.details["crashes after", default: 0] += 1
      do throws(EngineError) {
        let root = try EngineRecording.open(point.disk(state)).head.root
        // Under a weaker durability a crash may take back what was acknowledged, the last first.
        if !run.mayBe(root) {
          problems.append("crashed in \(state): another tree")
        }
      } catch {
        problems.append("crashed in \(state): \(error)")
      }
    }
    // The process goes, the disk is well again, the next one opens it and writes.
    run.drop()
    disk.removeFaults()
    run.run([.set("z", .integer(1)), .checkpoint, .close])
    problems += run.problems
    if problems.isEmpty, !run.reopen() { problems.append("not reopened") }
    problems += run.problems
    return Array(Set(problems))
  }

  /// The completions get the error, the listeners the corrective events, reads go on, writes are
  /// refused, reopening gives exactly the acknowledged state.
  @Test(arguments: DiskFault.Pages.allCases)
  func aFailedSynchronize(pages: DiskFault.Pages) throws {
    let disk = SimulatedDisk()
    var run = FaultedRun(disk)
    run.run([.set("a", .integer(1)), .set("b", .integer(2))])
    let acknowledged = run.tree
    disk.inject(.failedSynchronize(at: 1, pages: pages))
    run.run([.write([.set(Path("a"), Node(.integer(9))), .set(Path("c"), Node(.integer(3)))])])
    #expect(run.refusedCount == 2)
    #expect(run.isPoisoned)
    #expect(run.problems == [])
    #expect(run.session?.engine.head.root == acknowledged)
    #expect(run.session?.replica.tree == acknowledged)
    #expect(run.session?.engine.head.lsn == LogSequenceNumber(2))
    // The disk is well, but what it holds is not known: refused until reopened.
    run.run([.set("d", .integer(4)), .checkpoint, .roll, .synchronize])
    #expect(run.refusedCount == 3)
    #expect(run.session?.engine.view(at: Path("a")).scalar == .integer(1))
    run.drop()
    let isOpen = run.reopen()
    #expect(isOpen)
    #expect(run.problems == [])
    #expect(run.session?.engine.head.root == acknowledged)
    run.run([.set("d", .integer(4)), .close])
    #expect(run.problems == [])
    // What the reopened database told must survive what the failed synchronize left in doubt.
    let point = disk.crashPoint()
    point.forEachState { state in
      let root = try? EngineRecording.open(point.disk(state)).head.root
      #expect(root == run.tree, "\(state)")
    }
  }

  /// Killed right after the failed synchronize, before anything could be cut: the system takes for
  /// clean what the disk never got, and the next opener must not believe it.
  @Test(arguments: DiskFault.Pages.allCases, [false, true])
  func aKillAfterAFailedSynchronize(pages: DiskFault.Pages, thenCheckpoint: Bool) throws {
    let disk = SimulatedDisk()
    var run = FaultedRun(disk)
    run.run([.set("a", .integer(1)), .set("b", .integer(2))])
    disk.inject(.failedSynchronize(at: 1, pages: pages))
    disk.inject(
      DiskFault(.error(EIO), of: [.write, .truncate, .synchronize], at: 3, isPermanent: true))
    run.run([.set("c", .integer(3))])
    #expect(run.refusedCount == 1)
    run.drop()
    disk.removeFaults()
    let isOpen = run.reopen()
    #expect(isOpen)
    #expect(run.problems == [])
    run.run([.set("d", .integer(4))])
    if thenCheckpoint { run.run([.checkpoint, .set("e", .integer(5))]) }
    let point = disk.crashPoint()
    point.forEachState { state in
      do throws(EngineError) {
        #expect(try EngineRecording.open(point.disk(state)).head.root == run.tree, "\(state)")
      } catch {
        Issue.record("\(state): \(error)")
      }
    }
  }

  /// More than what is preallocated at first, and not to be compressed.
  static let large: [Step] = {
    var random = SeededRandomness(seed: 8)
    return (0..<8).map { index in
      let text = String(
        (0..<12_000).map { _ in
          Character(Unicode.Scalar(UInt8.random(in: 0x21...0x7e, using: &random)))
        })
      return .set("large/\(index)", .string(text))
    }
  }()

  /// At every size of a disk that is too small: what does not fit is refused and not half there,
  /// reads go on, and once there is room work goes on, without reopening.
  @Test func aFullDisk() async throws {
    if Reproduction.isOnlyOne { return }
    let sizes = Array(0..<120) + stride(from: 120, to: 200_000, by: 512)
    await Sweep.run("full disk", sizes, unit: "sizes", goal: sizes.count) { size in
      var tally = Sweep.Tally(count: 1)
      let disk = SimulatedDisk(seed: 6)
      var run = FaultedRun(disk)
      run.run([.set("first", .integer(1))])
      disk.freeSpace = size
      let open = Self.workload.filter { if case .close = $0 { false } else { true } }
      run.run(open + Self.large + [.checkpoint] + open)
      if run.isPoisoned { tally.failures.append("room for \(size) bytes: poisoned") }
      let refused = run.refusedCount
      disk.freeSpace = nil
      // The first one may still be refused: it is what looks for room.
      run.run([.set("look", .integer(1)), .set("for", .integer(2)), .set("room", .integer(3))])
      if run.refusedCount > refused + 1 {
        tally.failures.append("room for \(size) bytes: refused when there was room again")
      }
      run.run([.checkpoint, .set("z", .integer(4)), .close])
      if !run.reopen() { tally.failures.append("room for \(size) bytes: not reopened") }
      tally.failures += run.problems.map { "room for \(size) bytes: \($0)" }
      tally.details["refusals", default: 0] += refused
      return tally
    }
  }
}
