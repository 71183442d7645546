import DendroTesting
import DendroTree
import DendroTestSupport

/// G11: random operations, transactions and queries with listeners that come and go, held against the
/// oracle, reopened about every thousand operations; with the threads, the queues and the automatic
/// checkpoints of real use.
package enum Soak {
  package static let sweep = Sweep(
    "G11", unit: "operations", trialCount: 2000, stepCount: { steps($0).count }, judge: judge)

  enum Step: Sendable {
    case write(Write)
    /// Adds one to a counter that listeners must never see fall.
    case tick
    /// Adds one to another counter, which nothing else writes, beside whatever else is written.
    case transact
    /// The children that a query shows.
    case query(Path, QueryParameters)
    case listen(Path, QueryParameters, SoakListener.Kind)
    /// The one that listens longest.
    case removeListener
    /// All that was written has arrived everywhere: listeners, completions, the oracle.
    case compare
    case synchronize
    case checkpoint
    case backup
    /// In order, and opened again.
    case close
    /// Without closing: the last reference is released.
    case abandon
  }

  /// About as many as lie between two reopenings, some times over.
  private static let stepCount = 5000

  private static func steps(_ seed: UInt64) -> [Step] {
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = seed % 3 == 0 ? 3 : 20
    generator.wideKeyCount = 100
    // Some release the database without closing it all the time.
    let abandonOneIn = seed % 8 == 7 ? 100 : 4000
    return (0..<stepCount).map { _ in
      generator.random.oneIn(abandonOneIn) ? .abandon : step(&generator)
    }
  }

  private static func step(_ generator: inout WriteGenerator) -> Step {
    switch generator.random.below(1000) {
    case 0: .close
    case 1: .checkpoint
    case 2, 3: .synchronize
    case 4..<8: .compare
    case 12..<20:
      // Half of them at all children, half at those that a query shows.
      .listen(
        listenerPath(&generator),
        generator.random.oneIn(2) ? QueryParameters() : parameters(&generator),
        SoakListener.Kind.allCases[generator.random.below(2)])
    case 20..<27: .removeListener
    case 27..<35: .query(listenerPath(&generator), parameters(&generator))
    case 35..<60: .transact
    case 60..<200: .tick
    case 200 where generator.random.oneIn(10): .backup
    default: .write(write(&generator))
    }
  }

  /// One that leaves the counter of the transactions alone: it may not touch the root itself.
  private static func write(_ generator: inout WriteGenerator) -> Write {
    while true {
      let write = generator.write()
      switch write {
      case .update(let base, let entries):
        if !entries.contains(where: { base.appending($0.path).count == 0 }) { return write }
      default: if write.path.count > 0 { return write }
      }
    }
  }

  private static func parameters(_ generator: inout WriteGenerator) -> QueryParameters {
    var parameters = QueryParameters()
    switch generator.random.below(4) {
    case 0: parameters.order = .key
    case 1: parameters.order = .value
    case 2: parameters.order = .child(Path(keys: [generator.key()]))
    default: break
    }
    let count = 1 + generator.random.below(6)
    switch generator.random.below(3) {
    case 0: parameters.limit = .first(count)
    case 1: parameters.limit = .last(count)
    default: break
    }
    return parameters
  }

  private static func listenerPath(_ generator: inout WriteGenerator) -> Path {
    generator.random.oneIn(4) ? .root : generator.path(maxCount: 2)
  }

  private static func judge(_ place: Reproduction) -> Tally {
    let steps = place.kept(of: steps(place.job))
    var tally = Tally(count: steps.count)
    let run = SoakRun(seed: place.job)
    for step in steps where run.problems.isEmpty { run.run(step) }
    run.run(.close)
    run.run(.compare)
    run.finish()
    for problem in run.problems.prefix(3) { tally.fail(place, problem) }
    tally.details = run.details
    return tally
  }
}
