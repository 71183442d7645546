extension Report {
  /// The table of goals, and below it all figures.
  static func markdown(
    machine: Machine, isQuick: Bool, results: [ContestantResult], goals: [GoalOutcome]
  ) -> String {
    var lines = ["\(machine.description)\(isQuick ? ", a twentieth of the work" : "")", ""]
    if !goals.isEmpty { lines += table(goals) + [""] }
    return (lines + table(results)).joined(separator: "\n")
  }

  private static func table(_ goals: [GoalOutcome]) -> [String] {
    let head = [
      "\(goals.filter(\.isMet).count) of \(goals.count) goals met.", "",
      "| row | workload | goal | reached (min … max) | by CPU time | with | |",
      "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return head
      + goals.map {
        row(
          $0.row, $0.title, $0.goal, $0.reached.textWithRange, $0.processorTime?.text ?? "",
          $0.contestant, $0.isMet ? "met" : "**not met**")
      }
  }

  private static func table(_ results: [ContestantResult]) -> [String] {
    let head = [
      "| workload | contestant | rate (min … max) | CPU time each | besides |",
      "| --- | --- | --- | --- | --- |",
    ]
    return head
      + results.map { result in
        let rate = Spread(result.values(.rate)).map {
          "\($0.text) \(result.noun) a second\($0.range)"
        }
        let time = Spread(result.values(.processorTime)).map { "\($0.text) µs" }
        let besides = result.figuresBesides.map { "\($0.name) \($0.spread.text) \($0.unit)" }
        return row(
          "\(result.workload), \(result.comparison)", result.contestant, rate ?? "", time ?? "",
          besides.joined(separator: "; "))
      }
  }

  private static func row(_ cells: String...) -> String {
    "| \(cells.joined(separator: " | ")) |"
  }
}
