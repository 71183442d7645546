import Foundation

/// The output as text and as JSON; as Markdown in `Report+Markdown.swift`.
enum Report {
  // MARK: Text

  /// The figures of one comparison, and the ratios of its fastest way of Dendro to each peer.
  static func text(_ comparison: String, _ results: [ContestantResult]) -> String {
    let lines = ["  \(comparison)"] + results.flatMap(lines) + ratios(results)
    return lines.joined(separator: "\n")
  }

  private static func lines(_ result: ContestantResult) -> [String] {
    var parts: [String] = []
    if let rate = Spread(result.values(.rate)) {
      parts.append("\(column(rate.text, 10)) \(result.noun) a second\(rate.range)")
    }
    if let time = Spread(result.values(.processorTime)) {
      parts.append("CPU time \(time.textWithRange) µs each")
    }
    let name = result.contestant.padding(
      toLength: max(56, result.contestant.count), withPad: " ", startingAt: 0)
    let besides = result.figuresBesides.map {
      "        \($0.name): \($0.spread.textWithRange) \($0.unit)"
    }
    return ["    \(name)\(parts.joined(separator: ", "))"] + besides
  }

  /// The rates of the fastest way of Dendro divided by those of each peer, round by round.
  private static func ratios(_ results: [ContestantResult]) -> [String] {
    guard let best = results.filter(\.isDendro).fastest else { return [] }
    let rates = best.values(.rate)
    return results.filter { !$0.isDendro }.compactMap { peer in
      let values = zip(rates, peer.values(.rate)).map { $0 / $1 }
      return Spread(values).map {
        "    \(column($0.text, 8)) times \(peer.contestant)\($0.range), by \(best.contestant)"
      }
    }
  }

  private static func column(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  static func text(_ goals: [GoalOutcome]) -> String {
    var lines = ["goals: \(goals.filter(\.isMet).count) of \(goals.count) met"]
    for goal in goals {
      let processorTime = goal.processorTime.map { ", \($0.text) by CPU time" } ?? ""
      lines.append(
        "  \(goal.isMet ? "met" : "NOT") \(goal.row) \(goal.title): \(goal.goal); reached "
          + "\(goal.reached.textWithRange)\(processorTime), by \(goal.contestant)")
    }
    return lines.joined(separator: "\n")
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
}
