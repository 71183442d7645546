import Foundation

/// The output in its three forms.
enum Report {
  // MARK: Text

  /// The figures of one comparison, and the ratios of its fastest way of Dendro to each peer.
  static func text(_ comparison: String, _ results: [ContestantResult]) -> String {
    var lines = ["  \(comparison)"]
    for result in results { lines += self.lines(result) }
    for ratio in ratios(results) {
      lines.append("    \(column(ratio.spread.text, 8)) times \(ratio.name)  \(ratio.spread.range)")
    }
    return lines.joined(separator: "\n")
  }

  private static func lines(_ result: ContestantResult) -> [String] {
    let name = result.contestant.padding(
      toLength: max(56, result.contestant.count), withPad: " ", startingAt: 0)
    var line = "    \(name)"
    if let rate = Spread(result.values(.rate)) {
      line += "\(column(rate.text, 10)) \(result.noun) a second \(rate.range)"
    }
    if let time = Spread(result.values(.processorTime)) {
      line += ", CPU time \(time.text) µs each \(time.range)"
    }
    return [line]
      + result.figuresBesides.map {
        "        \($0.name): \($0.spread.text) \($0.unit) \($0.spread.range)"
      }
  }

  static func text(_ goals: [GoalOutcome]) -> String {
    var lines = ["goals: \(goals.filter(\.isMet).count) of \(goals.count) met"]
    for goal in goals {
      let processorTime = goal.processorTime.map { ", by CPU time \($0.text)" } ?? ""
      let reached = "\(goal.reached.text) \(goal.reached.range)\(processorTime)"
      lines.append(
        "  \(goal.isMet ? "met" : "NOT") \(goal.row) \(goal.title): \(goal.goal); reached \(reached) "
          + "by \(goal.contestant)")
    }
    return lines.joined(separator: "\n")
  }

  private static func column(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  /// The rates of the fastest way of Dendro divided by those of each peer, round by round.
  private static func ratios(_ results: [ContestantResult]) -> [(name: String, spread: Spread)] {
    guard let best = results.filter(\.isDendro).fastest else { return [] }
    let rates = best.values(.rate)
    return results.filter { !$0.isDendro }.compactMap { peer in
      let values = zip(rates, peer.values(.rate)).map { $0 / $1 }
      return Spread(values).map { ("\(peer.contestant), by \(best.contestant)", $0) }
    }
  }

  // MARK: JSON

  private struct Document: Encodable {
    let machine: Machine
    let isQuick: Bool
    let figures: [Figure]
    let goals: [GoalOutcome]
  }

  static func json(
    machine: Machine, isQuick: Bool, results: [ContestantResult], goals: [GoalOutcome]
  ) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let document = Document(
      machine: machine, isQuick: isQuick, figures: results.flatMap(\.figures), goals: goals)
    return String(decoding: try encoder.encode(document), as: UTF8.self)
  }

  // MARK: Markdown

  static func markdown(
    machine: Machine, isQuick: Bool, results: [ContestantResult], goals: [GoalOutcome]
  ) -> String {
    var lines = ["\(machine.description)\(isQuick ? ", a twentieth of the work" : "")", ""]
    if !goals.isEmpty {
      lines += [
        "\(goals.filter(\.isMet).count) of \(goals.count) goals met.", "",
        "| row | workload | goal | reached (min … max) | by CPU time | by | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
      ]
      for goal in goals {
        lines.append(
          "| \(goal.row) | \(goal.title) | \(goal.goal) | \(goal.reached.text) "
            + "\(goal.reached.range) | \(goal.processorTime?.text ?? "") | \(goal.contestant) | \(goal.isMet ? "met" : "**not met**") |"
        )
      }
      lines.append("")
    }
    lines += [
      "| workload | contestant | rate (min … max) | CPU time each | besides |",
      "| --- | --- | --- | --- | --- |",
    ]
    for result in results {
      let rate = Spread(result.values(.rate)).map {
        "\($0.text) \(result.noun) a second \($0.range)"
      }
      let time = Spread(result.values(.processorTime)).map { "\($0.text) µs" }
      let besides = result.figuresBesides.map { "\($0.name) \($0.spread.text) \($0.unit)" }
      lines.append(
        "| \(result.workload), \(result.comparison) | \(result.contestant) | \(rate ?? "") "
          + "| \(time ?? "") | \(besides.joined(separator: "; ")) |")
    }
    return lines.joined(separator: "\n")
  }
}
