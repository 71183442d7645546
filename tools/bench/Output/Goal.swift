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
  /// The contestant that reached it.
  let contestant: String
  let isMet: Bool
  /// What Dendro was divided by, where that is another database, with its name for people.
  let peer: String?
}

extension Goal {
  /// Nil where something that it compares was not measured: another workload was named, or this build has not
  /// the peer.
  func outcome(in results: [ContestantResult]) throws -> GoalOutcome? {
    let measured: (values: [Double], contestant: String)?
    switch reached {
    case .value(let quantity, let entrants):
      measured = try results.best(of: entrants, quantity, isLessBetter: bound.isUpper)
    case .ratio(let quantity, let entrants, let other):
      guard let divisors = try results.find(other)?.values(quantity),
        let best = try results.best(of: entrants, quantity, isLessBetter: bound.isUpper)
      else { return nil }
      measured = (zip(best.values, divisors).map { $0 / $1 }, best.contestant)
    }
    guard let measured, let spread = Spread(measured.values) else { return nil }
    var peer: String?
    if case .ratio(_, _, let other) = reached, other.kind != nil {
      peer = String(unit.trimmingPrefix("times "))
    }
    return GoalOutcome(
      row: row, title: title, goal: "\(bound.text) \(unit)", reached: spread,
      contestant: measured.contestant, isMet: bound.isMet(by: spread.median), peer: peer)
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
  /// Nil where it was not measured.
  ///
  /// - Throws: where there is no such contestant at all, and it is no peer that this build lacks.
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

  fileprivate func best(
    of entrants: [Goal.Entrant], _ quantity: ContestantResult.Quantity, isLessBetter: Bool
  ) throws -> (values: [Double], contestant: String)? {
    let candidates = try entrants.compactMap { entrant -> (Double, [Double], String)? in
      guard let values = try find(entrant)?.values(quantity), let spread = Spread(values)
      else { return nil }
      return (spread.median, values, entrant.contestant)
    }
    let best =
      isLessBetter
      ? candidates.min { $0.0 < $1.0 } : candidates.max { $0.0 < $1.0 }
    return best.map { ($0.1, $0.2) }
  }
}

private struct UnknownEntrant: Error, CustomStringConvertible {
  let entrant: Goal.Entrant

  var description: String {
    "a goal names \(entrant.contestant) in \(entrant.workload), \(entrant.comparison), which is none"
  }
}
