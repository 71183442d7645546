import DendroEngine
import DendroPlatform
import DendroStorage
package import DendroTesting
import DendroTree

/// G5: calls fail. Then the disk works again, and the next opening finds exactly the acknowledged writes,
/// and later ones whole or not at all.
package enum Faults {
  package static let workload: [Step] = [
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

  package static let effects: [DiskFault.Effect] = [
    .error(EIO), .error(ENOSPC), .error(EDQUOT), .error(EINTR), .short(1), .short(7),
    .partial(5, EIO), .partial(30, ENOSPC), .failedSynchronize(.kept),
    .failedSynchronize(.reverted),
  ]

  static let durabilities: [Durability] = [.everyCommit, .none, .interval(.seconds(3600))]

  private struct Case: Sendable {
    var fault: DiskFault
    var durability: Durability
    /// Whether each write is made to both roots.
    var mirrors: Bool
  }

  /// Every call of one workload, in every way, once and for good, under every durability: a job each.
  package static func everyCall() -> Sweep {
    var cases: [Case] = []
    // A workload on both roots is the same to the log: under the default durability alone.
    for (durability, mirrors) in durabilities.map({ ($0, false) }) + [(.everyCommit, true)] {
      for number in 1...max(1, callCount(of: workload, durability, mirrors)) {
        for effect in effects {
          for isPermanent in [false, true] {
            let fault = DiskFault(effect, at: number, isPermanent: isPermanent)
            cases.append(Case(fault: fault, durability: durability, mirrors: mirrors))
          }
        }
      }
    }
    let all = cases
    return Sweep(
      "G5", unit: "runs", jobs: 0..<UInt64(all.count), stepCount: { _ in workload.count }
    ) { place in
      var tally = Tally(count: 1)
      judge(all[Int(place.job)], place.kept(of: workload), place, &tally)
      return tally
    }
  }

  /// G5 beyond what can be listed: each job draws a workload, and 32 faults in it.
  package static let random = Sweep(
    "G5-random", name: "G5, random", unit: "runs", stepCount: { randomSteps($0).count }
  ) { place in
    var random = SeededRandomness(seed: place.job &* 0x9e37_79b9)
    let steps = place.kept(of: randomSteps(place.job))
    let durability = durabilities.randomElement(using: &random)!
    let mirrors = EngineRecording.mirrors(place.job)
    let calls = callCount(of: steps, durability, mirrors)
    var tally = Tally()
    guard calls > 0 else { return tally }
    for _ in 0..<32 where !tally.isHopeless {
      tally.count += 1
      let fault = DiskFault(
        effects.randomElement(using: &random)!, at: Int.random(in: 1...calls, using: &random),
        isPermanent: Bool.random(using: &random))
      judge(
        Case(fault: fault, durability: durability, mirrors: mirrors), steps, place, &tally)
    }
    return tally
  }

  private static func randomSteps(_ seed: UInt64) -> [Step] {
    var generator = StepGenerator(seed: seed)
    return generator.steps(12, kills: false)
  }

  /// How many calls the workload makes when none fails.
  private static func callCount(
    of steps: [Step], _ durability: Durability, _ mirrors: Bool
  ) -> Int {
    let disk = SimulatedDisk(seed: 5)
    var run = FaultedRun(disk, durability: durability, mirrors: mirrors)
    run.run(steps)
    precondition(run.problems.isEmpty && run.refusedCount == 0, "\(run.problems)")
    return disk.operationCount
  }

  private static func judge(
    _ one: Case, _ steps: [Step], _ place: Reproduction, _ tally: inout Tally
  ) {
    let problems = problems(one, steps, &tally)
    for problem in problems {
      tally.fail(place, "\(one.fault), \(one.durability): \(problem)")
    }
    if place.isExplained, !problems.isEmpty { explain(one, steps) }
  }

  private static func explain(_ one: Case, _ steps: [Step]) {
    print("\(one.fault), \(one.durability):")
    let disk = SimulatedDisk(seed: 5)
    var run = FaultedRun(disk, durability: one.durability, mirrors: one.mirrors)
    disk.inject(one.fault)
    for step in steps {
      let first = disk.operationCount
      run.run([step])
      print("\(step)")
      for (index, operation) in disk.trace.enumerated().dropFirst(first) {
        print("  \(index + 1). \(operation)")
      }
    }
    let point = disk.crashPoint()
    print("pending:")
    for text in point.pendingDescriptions { print("  \(text)") }
  }

  private static func problems(_ one: Case, _ steps: [Step], _ tally: inout Tally) -> [String] {
    let disk = SimulatedDisk(seed: 5)
    var run = FaultedRun(disk, durability: one.durability, mirrors: one.mirrors)
    disk.inject(one.fault)
    run.run(steps)
    var problems = run.problems
    // A failure that no caller gets must not make anything fail.
    if one.fault.isUnseen, run.refusedCount > 0 {
      problems.append("\(run.refusedCount) writes were refused")
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
        if !run.mayBe(root) { problems.append("crashed in \(state): another tree") }
      } catch {
        problems.append("crashed in \(state): \(error)")
      }
    }
    // The process ends, the disk works again, the next process opens it and writes.
    run.drop()
    disk.removeFaults()
    let received = run.tree
    if !run.reopen() { problems.append("not reopened") }
    // What a failed synchronize refused was taken out of the file, if that did not fail as well.
    if case .failedSynchronize = one.fault.effect, !one.fault.isPermanent, run.tree != received {
      problems.append("a refused write is back")
    }
    // What is acknowledged now survives a crash, whatever the first process left in the system's memory.
    let reopened = disk.crashPoint()
    for state in [reopened.allDropped, reopened.allKept] {
      do throws(EngineError) {
        if try EngineRecording.open(reopened.disk(state)).head.root != run.tree {
          problems.append("reopened, crashed in \(state): another tree")
        }
      } catch {
        problems.append("reopened, crashed in \(state): \(error)")
      }
    }
    run.run([.set("z", .integer(1)), .checkpoint, .close])
    problems += run.problems
    if problems.isEmpty, !run.reopen() { problems.append("not reopened") }
    problems += run.problems
    return Array(Set(problems)).sorted()
  }
}

extension DiskFault {
  /// Whether a program that loops as it should never notices.
  var isUnseen: Bool {
    switch (effect, isPermanent) {
    case (.error(EINTR), false), (.short, _): true
    default: false
    }
  }
}
