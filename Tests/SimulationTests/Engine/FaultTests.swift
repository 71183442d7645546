import DendroCrashHarness
import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import DendroTestSupport
import Testing

/// G5: every call of a workload fails in every way, once and for good. Then the disk works again,
/// and the next opening finds exactly the acknowledged writes, and later ones whole or not at all.
@Suite struct FaultTests {
  @Test func everyCallFailsInEveryWay() async {
    let sweep = Faults.everyCall()
    let stride = Scale.stride(23)
    await sweep.check(every: stride, goal: min(8000, sweep.jobs.count) / stride)
  }

  @Test func randomCallsFailInRandomWorkloads() async {
    await Faults.random.check(0..<UInt64(Scale.scaled(250)), goal: Scale.goal(8000))
  }

  /// G6: calls fail while the engine recovers from a crash.
  @Test func everyCallOfARecoveryFails() async {
    await RecoveryFaults.sweep.check(0..<UInt64(Scale.scaled(25)), goal: Scale.goal(2000))
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
    #expect(try run.session?.engine.view(at: Path("a")).scalar == .integer(1))
    run.drop()
    let isOpen = run.reopen()
    #expect(isOpen)
    #expect(run.problems == [])
    #expect(run.session?.engine.head.root == acknowledged)
    run.run([.set("d", .integer(4)), .close])
    #expect(run.problems == [])
    // What the reopened database returned must survive whatever the failed synchronize has left.
    let point = disk.crashPoint()
    point.forEachState { state in
      let root = try? EngineRecording.open(point.disk(state)).head.root
      #expect(root == run.tree, "\(state)")
    }
  }

  /// Any synchronize of an orderly end fails, and the system takes for clean what the disk never got: the
  /// idle record at the end, say, which the next opener's records follow.
  @Test(arguments: DiskFault.Pages.allCases, 1...3)
  func aFailedSynchronizeAtTheEnd(pages: DiskFault.Pages, number: Int) throws {
    let disk = SimulatedDisk()
    var run = FaultedRun(disk)
    run.run([.set("a", .integer(1))])
    disk.inject(.failedSynchronize(at: number, pages: pages))
    run.run([.close])
    run.drop()
    disk.removeFaults()
    let isOpen = run.reopen()
    #expect(isOpen)
    run.run([.set("b", .integer(2)), .set("c", .integer(3))])
    #expect(run.problems == [])
    expect(run.tree, afterEachCrashOf: disk)
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
    expect(run.tree, afterEachCrashOf: disk)
  }

  private func expect(_ tree: Node, afterEachCrashOf disk: SimulatedDisk) {
    let point = disk.crashPoint()
    point.forEachState { state in
      do throws(EngineError) {
        #expect(try EngineRecording.open(point.disk(state)).head.root == tree, "\(state)")
      } catch {
        Issue.record("\(state): \(error)")
      }
    }
  }

  /// At every size of a disk that is too small: what does not fit is refused and not half there,
  /// reads work, and once there is room writes do too, without reopening.
  @Test func aFullDisk() async {
    let sweep = FullDisks.sweep
    let stride = Scale.stride(7)
    await sweep.check(every: stride, goal: sweep.jobs.count / stride)
  }
}
