import DendroEngine
import DendroTesting
import DendroTree
import Testing

/// G2: every workload of up to three steps, crashed after every call in every listed state, the last
/// write torn at every byte. Most crash bugs need no more than that (CrashMonkey, OSDI 2018).
@Suite struct ShortWorkloadTests {
  enum Kind: CaseIterable { case set, update, remove, checkpoint, roll, close }

  struct Workload: Sendable, CustomStringConvertible {
    var kinds: [Kind]
    /// On a database that has something in it already.
    var isPrepared: Bool

    var description: String {
      (isPrepared ? "a database, " : "") + kinds.map { "\($0)" }.joined(separator: ", ")
    }
  }

  static let workloads: [Workload] = {
    var all: [[Kind]] = [[]]
    var last = all
    for _ in 0..<3 {
      last = last.flatMap { kinds in Kind.allCases.map { kinds + [$0] } }
      all += last
    }
    return all.dropFirst().flatMap { kinds in
      [false, true].map { Workload(kinds: kinds, isPrepared: $0) }
    }
  }()

  static func step(_ kind: Kind, _ place: Int) -> Step {
    switch kind {
    case .set: .set("a/\(place)", .string("value \(place)"))
    case .update:
      .write([
        .update(
          .root,
          [
            Write.Entry(path: Path("a/1"), action: .set(Node(.integer(Int64(place))))),
            Write.Entry(path: Path("b"), action: .increment(.integer(1))),
            Write.Entry(path: Path("c"), action: .remove),
          ])
      ])
    case .remove: .write([.remove(Path("a"))])
    case .checkpoint: .checkpoint
    case .roll: .roll
    case .close: .close
    }
  }

  static func prepared() throws(EngineError) -> EngineRecording {
    try EngineRecording(
      seed: 7, steps: [.set("a/0", .bool(true)), .roll, .set("c", .double(0.5)), .checkpoint])
  }

  @Test func everyShortWorkload() async throws {
    if Reproduction.isOnlyOne { return }
    let prepared = try Self.prepared()
    #expect(prepared.problems.isEmpty)
    let workloads = Self.workloads.filter { Sweep.scale >= 1 || $0.kinds.count < 3 }
    #expect(Self.workloads.count == 2 * (6 + 36 + 216))
    await Sweep.run("G2", workloads, goal: 5000) { workload in
      let recording: EngineRecording
      do {
        recording = try EngineRecording(
          seed: 1, steps: workload.kinds.enumerated().map { Self.step($1, $0) },
          after: workload.isPrepared ? prepared : nil)
      } catch {
        return Sweep.Tally(failures: ["G2 \(workload): \(error)"])
      }
      var tally = Sweep.Tally(details: ["workloads": 1])
      tally.failures += recording.problems.map { "G2 \(workload): \($0)" }
      var options = CrashEnumeration()
      options.onlyNew = true
      options.subsetLimit = 6
      options.sampleCount = 20
      for point in recording.points {
        let judge = CrashJudge(recording, point)
        point.forEachState(options) { state in
          guard !tally.isHopeless else { return }
          tally.count += 1
          if let problem = judge.problem(of: state, isThorough: tally.count % 64 == 0) {
            tally.failures.append(
              "G2 \(workload), crashed after call \(point.operationCount) in \(state): \(problem)")
          }
        }
      }
      return tally
    }
  }
}
