package import DendroEngine
import DendroTesting
import DendroTree

/// G2: every workload of a few steps, crashed after every call in every listed state, the last
/// write torn at every byte. Most crash bugs need no more than three (CrashMonkey, OSDI 2018).
package enum ShortWorkloads {
  package enum Kind: CaseIterable, Sendable { case set, update, remove, checkpoint, roll, close }

  package struct Workload: Sendable {
    package var kinds: [Kind]
    /// On a database that has something in it already.
    package var isPrepared: Bool
  }

  /// How many workloads have at most so many steps: each once on nothing and once on a database.
  package static func count(ofLengthUpTo length: Int) -> Int {
    var all = 0
    var power = 1
    for _ in 0..<length {
      power *= Kind.allCases.count
      all += power
    }
    return 2 * all
  }

  /// The workloads in the order of their lengths.
  package static func workload(_ number: UInt64) -> Workload {
    var rest = Int(number / 2)
    var length = 1
    var power = Kind.allCases.count
    while rest >= power {
      rest -= power
      power *= Kind.allCases.count
      length += 1
    }
    let kinds = (0..<length).map { _ in
      power /= Kind.allCases.count
      return Kind.allCases[rest / power % Kind.allCases.count]
    }
    return Workload(kinds: kinds, isPrepared: number % 2 == 1)
  }

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

  /// The sweep over all workloads of at most so many steps.
  package static func sweep(length: Int) throws(EngineError) -> Sweep {
    let prepared = try EngineRecording(
      seed: 7, steps: [.set("a/0", .bool(true)), .roll, .set("c", .double(0.5)), .checkpoint])
    precondition(prepared.problems.isEmpty, "\(prepared.problems)")
    return Sweep(
      "G2", jobs: 0..<UInt64(count(ofLengthUpTo: length)),
      stepCount: { workload($0).kinds.count }
    ) { judge($0, prepared) }
  }

  private static func judge(_ place: Reproduction, _ prepared: EngineRecording) -> Tally {
    var tally = Tally(details: ["workloads": 1])
    let workload = workload(place.job)
    let recording = place.record(&tally) {
      try EngineRecording(
        seed: 1, steps: place.kept(of: workload.kinds.enumerated().map { step($1, $0) }),
        after: workload.isPrepared ? prepared : nil)
    }
    guard let recording else { return tally }
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 6
    options.sampleCount = 20
    CrashStates.judge(recording, place, options, thoroughStride: 64, &tally)
    return tally
  }
}
