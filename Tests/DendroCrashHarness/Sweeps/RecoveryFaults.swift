import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// G6: calls fail while the engine recovers from a crash. It opens or refuses; refusing, it calls
/// nothing damaged and leaves everything there for the next opener, also after a second crash.
package enum RecoveryFaults {
  package static let sweep = Sweep(
    "G6", unit: "runs", stepCount: { CrashStates.steps($0).count }, judge: judge)

  /// Runs of one job at most.
  private static let runMax = 400

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally()
    guard let recording = place.record(&tally, { try CrashStates.recording(place) }) else {
      return tally
    }
    var random = SeededRandomness(seed: place.job)
    let points = recording.points.filter { $0.pendingCount > 0 }
    guard !points.isEmpty else { return tally }
    while tally.count < runMax, !tally.isHopeless {
      let point = points.randomElement(using: &random)!
      let state = point.randomState(using: &random)
      let judge = CrashJudge(recording, point)
      for fault in faults(of: point.disk(state, seed: place.job), using: &random) {
        guard tally.count < runMax, !tally.isHopeless else { break }
        tally.count += 1
        let disk = point.disk(state, seed: place.job)
        var random = random
        if let problem = problem(of: disk, fault, judge, using: &random, &tally) {
          tally.fail(
            place, "crashed after call \(point.operationCount) in \(state), \(fault): \(problem)")
        }
      }
    }
    return tally
  }

  /// One fault for each call of the recovery, of a kind that is drawn.
  private static func faults(of disk: SimulatedDisk, using random: inout SeededRandomness)
    -> [DiskFault]
  {
    _ = try? EngineRecording.open(disk)
    return (1...max(1, disk.operationCount)).map { number in
      DiskFault(
        Faults.effects.randomElement(using: &random)!, at: number,
        isPermanent: Bool.random(using: &random))
    }
  }

  private static func problem(
    of disk: SimulatedDisk, _ fault: DiskFault, _ judge: CrashJudge,
    using random: inout SeededRandomness, _ tally: inout Tally
  ) -> String? {
    disk.inject(fault)
    var bounds = judge.bounds
    var received: Int?
    do throws(EngineError) {
      let engine = try EngineRecording.open(disk)
      tally.details["opened", default: 0] += 1
      if let problem = wrongTree(of: engine, judge, bounds) { return "opened: \(problem)" }
      received = Int(engine.head.lsn.rawValue)
    } catch {
      tally.details["refused", default: 0] += 1
      if error.isDamage { return "a failing call was taken for damage: \(error)" }
      if fault.isUnseen { return "refused: \(error)" }
    }
    // What was read once it was open must stay.
    if let received { bounds = received...received }
    // A crash there and then, in some states; then the disk is well.
    let point = disk.crashPoint()
    let states =
      [point.allDropped, point.allKept]
      + (0..<3).map { _ in point.randomState(using: &random) }
    for state in states {
      do throws(EngineError) {
        let engine = try EngineRecording.open(point.disk(state))
        if let problem = wrongTree(of: engine, judge, bounds) {
          return "crashed again in \(state): \(problem)"
        }
      } catch {
        return "crashed again in \(state): refused: \(error)"
      }
    }
    // Without a crash: the next opener, and what it then writes, outlast one.
    disk.removeFaults()
    do throws(EngineError) {
      let engine = try EngineRecording.open(disk)
      if let problem = wrongTree(of: engine, judge, bounds) { return "reopened: \(problem)" }
      let session = Session(engine, disk)
      session.submit(.set(Path("after"), Node(.string("the fault"))), expecting: nil)
      engine.pump()
      for answer in session.takeAnswers() {
        if case .failure(let error) = answer.result { return "no write after reopening: \(error)" }
      }
      let expected = engine.head.root
      let lost = disk.crashPoint()
      let last = try EngineRecording.open(lost.disk(lost.allDropped))
      if last.head.root != expected { return "a write after reopening is lost" }
      return nil
    } catch {
      return "reopened: refused: \(error)"
    }
  }

  /// Like the judge of crashes, but a failing call may have kept a checkpoint from being read.
  private static func wrongTree(
    of engine: Engine, _ judge: CrashJudge, _ bounds: ClosedRange<Int>
  ) -> String? {
    let last = Int(engine.head.lsn.rawValue)
    if last < bounds.lowerBound {
      return "write \(bounds.lowerBound) was promised, \(last) is the last"
    }
    if last > bounds.upperBound {
      return "write \(last) is there, only \(bounds.upperBound) were begun"
    }
    return engine.head.root == judge.recording.trees[last] ? nil : "not the tree of write \(last)"
  }
}
