import Foundation

/// One run of the benchmark: it gives every contestant its turns, each in a process of its own.
struct Session {
  let workspace: URL
  private let rounds: Int
  private let isQuick: Bool

  init(_ options: BenchOptions) throws {
    isQuick = options.isQuick
    rounds = options.rounds
    let parent =
      options.directory.map { URL(fileURLWithPath: $0, isDirectory: true) }
      ?? FileManager.default.temporaryDirectory
    workspace = parent.appendingPathComponent(
      "dendro-bench-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: workspace, withIntermediateDirectories: true)
  }

  func removeWorkspace() { try? FileManager.default.removeItem(at: workspace) }

  /// Runs every contestant that lacks nothing once in each round, with alternating order.
  func run(_ comparison: Comparison, of workload: Workload) throws -> [ContestantResult] {
    let contestants = comparison.contestants.filter { $0.lack?() == nil }
    var turns: [[Measurement]] = contestants.map { _ in [] }
    for round in 0..<rounds * comparison.turnsPerRound {
      let order = Array(contestants.indices)
      for index in round.isMultiple(of: 2) ? order : order.reversed() {
        turns[index].append(
          try measurement(of: contestants[index], comparison, workload))
      }
    }
    return zip(contestants, turns).map {
      ContestantResult(
        workload: workload.name, comparison: comparison.name, noun: comparison.noun,
        contestant: $0.name, isDendro: $0.isDendro, turns: $1)
    }
  }

  private func measurement(
    of contestant: Contestant, _ comparison: Comparison, _ workload: Workload
  ) throws -> Measurement {
    let directory = workspace.appendingPathComponent("turn")
    defer { try? FileManager.default.removeItem(at: directory) }
    func run(_ step: ChildTurn.Step) throws -> Data {
      try ChildTurn(
        step: step, workload: workload.name, comparison: comparison.name,
        contestant: contestant.name, turn: Turn(directory: directory, isQuick: isQuick)
      ).start(isKilled: step == .prepare && contestant.isKilledAfterPreparing)
    }
    if contestant.prepare != nil { _ = try run(.prepare) }
    return try JSONDecoder().decode(Measurement.self, from: try run(.measure))
  }
}
