/// All turns of one contestant.
struct ContestantResult: Sendable {
  let workload: String
  let comparison: String
  /// What rates count, in the plural.
  let noun: String
  let contestant: String
  let isDendro: Bool
  let turns: [Measurement]

  /// A quantity that each turn measures.
  enum Quantity: Hashable, Sendable {
    /// Times a second.
    case rate
    /// Microseconds of CPU time a time, the server's included.
    case processorTime
    /// An extra, by its name.
    case extra(String)
  }

  /// The values of all rounds; empty if it was not measured.
  func values(_ quantity: Quantity) -> [Double] {
    turns.compactMap { turn in
      let count = Double(turn.count)
      return switch quantity {
      case .rate: turn.count == 0 ? nil : count / turn.cost.seconds
      case .processorTime:
        turn.count == 0
          ? nil
          : (turn.cost.processorSeconds + (turn.serverProcessorSeconds ?? 0)) * 1e6 / count
      case .extra(let name): turn.extras.first { $0.name == name }?.value
      }
    }
  }

  /// All of them.
  var figures: [Figure] {
    [
      figure("rate", "\(noun) a second", values(.rate)),
      figure("CPU time", "µs each", values(.processorTime)),
    ].compactMap(\.self) + figuresBesides
  }

  /// All but the rate and the CPU time.
  var figuresBesides: [Figure] {
    let serverTimes = turns.compactMap { turn in
      turn.serverProcessorSeconds.map { $0 * 1e6 / Double(max(1, turn.count)) }
    }
    let extras = turns.first?.extras ?? []
    return [figure("CPU time of the server alone", "µs each", serverTimes)].compactMap(\.self)
      + extras.compactMap { figure($0.name, $0.unit, values(.extra($0.name))) }
  }

  private func figure(_ name: String, _ unit: String, _ values: [Double]) -> Figure? {
    Spread(values).map {
      Figure(
        workload: workload, comparison: comparison, contestant: contestant, name: name, unit: unit,
        spread: $0)
    }
  }
}

/// A measured figure.
struct Figure: Encodable, Sendable {
  let workload: String
  let comparison: String
  let contestant: String
  let name: String
  let unit: String
  let spread: Spread
}

extension [ContestantResult] {
  /// The result with the highest median rate.
  var fastest: ContestantResult? {
    self.max { (Spread($0.values(.rate))?.median ?? 0) < (Spread($1.values(.rate))?.median ?? 0) }
  }
}
