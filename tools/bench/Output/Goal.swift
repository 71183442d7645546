/// What Dendro is to reach in one row of the table.
struct Goal: Sendable {
  enum Bound: Sendable {
    case atLeast(Double)
    case atMost(Double)
  }

  enum Reached: Sendable {
    /// A quantity of the first contestant that was measured and is the best of them.
    case value(ContestantResult.Quantity, of: [Entrant])
    /// The best of these, by their rates, divided by the other one, round by round.
    case ratio(ContestantResult.Quantity, of: [Entrant], to: Entrant)
  }

  /// A contestant of a comparison.
  struct Entrant: Sendable {
    let workload: String
    let comparison: String
    let contestant: String

    init(_ workload: String, _ comparison: String, _ contestant: String) {
      self.workload = workload
      self.comparison = comparison
      self.contestant = contestant
    }
  }

  let row: String
  let title: String
  let bound: Bound
  /// What the bound and the reached value count.
  let unit: String
  let reached: Reached
}

/// What was reached of a goal.
struct GoalOutcome: Encodable, Sendable {
  let row: String
  let title: String
  let goal: String
  let reached: Spread
  /// Of a ratio of rates: the CPU time of the other one divided by that of Dendro, which other programs of the
  /// machine disturb less.
  let processorTime: Spread?
  /// The contestant that reached it.
  let contestant: String
  let isMet: Bool
  /// What Dendro was divided by, if that is another database, with its name for people.
  let peer: String?
}

extension Goal {
  /// Nil if something that it compares was not measured: another workload was named, or this build has not
  /// the peer.
  func outcome(in results: [ContestantResult]) throws -> GoalOutcome? {
    let entrants: [Entrant]
    let quantity: ContestantResult.Quantity
    var other: ContestantResult?
    switch reached {
    case .value(let value, let ways): (quantity, entrants) = (value, ways)
    case .ratio(let value, let ways, let divisor):
      (quantity, entrants) = (value, ways)
      guard let found = try results.find(divisor) else { return nil }
      other = found
    }
    guard let best = try results.best(of: entrants, quantity, isLessBetter: bound.isUpper)
    else { return nil }
    var values = best.values(quantity)
    var processorTimes: [Double] = []
    if let other {
      values = zip(values, other.values(quantity)).map { $0 / $1 }
      if quantity == .rate {
        processorTimes = zip(other.values(.processorTime), best.values(.processorTime))
          .map { $0 / $1 }
      }
    }
    guard let spread = Spread(values) else { return nil }
    let isPeer = other.map { !$0.isDendro } ?? false
    return GoalOutcome(
      row: row, title: title, goal: "\(bound.text) \(unit)", reached: spread,
      processorTime: Spread(processorTimes), contestant: best.contestant,
      isMet: bound.isMet(by: spread.median),
      peer: isPeer ? String(unit.trimmingPrefix("times ")) : nil)
  }
}

extension Goal.Entrant {
  /// The peer; nil for Dendro and the system.
  fileprivate var kind: PeerKind? {
    contestant.split(separator: ",").first.flatMap { PeerKind(rawValue: String($0)) }
  }
}

extension Goal.Bound {
  fileprivate var isUpper: Bool { if case .atMost = self { true } else { false } }

  fileprivate var text: String {
    switch self {
    case .atLeast(let value): "≥ \(value.formatted)"
    case .atMost(let value): "≤ \(value.formatted)"
    }
  }

  fileprivate func isMet(by value: Double) -> Bool {
    switch self {
    case .atLeast(let bound): value >= bound
    case .atMost(let bound): value <= bound
    }
  }
}

extension Double {
  fileprivate var formatted: String { rounded() == self ? String(Int(self)) : String(self) }
}

extension [ContestantResult] {
  /// Nil if it was not measured.
  ///
  /// - Throws: if there is no such contestant at all, and it is no peer that this build lacks.
  fileprivate func find(_ entrant: Goal.Entrant) throws -> ContestantResult? {
    let found = first {
      $0.workload == entrant.workload && $0.comparison == entrant.comparison
        && $0.contestant == entrant.contestant
    }
    let isMissing = found == nil && contains { $0.workload == entrant.workload }
    if isMissing, entrant.kind?.isBuilt ?? true {
      throw UnknownEntrant(entrant: entrant)
    }
    return found
  }

  /// The contestant with the best median; nil if none was measured.
  fileprivate func best(
    of entrants: [Goal.Entrant], _ quantity: ContestantResult.Quantity, isLessBetter: Bool
  ) throws -> ContestantResult? {
    let candidates = try entrants.compactMap { entrant -> (median: Double, ContestantResult)? in
      guard let result = try find(entrant), let spread = Spread(result.values(quantity))
      else { return nil }
      return (spread.median, result)
    }
    let best =
      isLessBetter
      ? candidates.min { $0.median < $1.median } : candidates.max { $0.median < $1.median }
    return best?.1
  }
}

private struct UnknownEntrant: Error, CustomStringConvertible {
  let entrant: Goal.Entrant

  var description: String {
    "a goal names \(entrant.contestant) in \(entrant.workload), \(entrant.comparison), which is none"
  }
}
