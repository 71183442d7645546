import Foundation

/// One run of the benchmark: its scale, its folder, and the figures so far.
///
/// Only one task uses it at a time, hence `@unchecked Sendable`.
final class Session: @unchecked Sendable {
  let workspace: URL
  let rounds: Int
  private let isQuick: Bool
  private let isSilent: Bool
  private(set) var figures: [Figure] = []
  private var directoryCount = 0

  init(_ options: BenchOptions) throws {
    isQuick = options.isQuick
    isSilent = options.printsJSON
    rounds = options.rounds
    let parent =
      options.directory.map { URL(fileURLWithPath: $0, isDirectory: true) }
      ?? FileManager.default.temporaryDirectory
    workspace = parent.appendingPathComponent(
      "dendro-bench-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: workspace, withIntermediateDirectories: true)
  }

  func removeWorkspace() { try? FileManager.default.removeItem(at: workspace) }

  /// Scales the size of a workload: `--quick` does a twentieth.
  func scaled(_ count: Int) -> Int { isQuick ? max(1, count / 20) : count }

  /// A new path in the workspace, at which nothing exists yet.
  func newDirectory() -> URL {
    directoryCount += 1
    return workspace.appendingPathComponent("\(directoryCount)")
  }

  /// Runs `body` with a path at which nothing exists, and removes what it created there.
  func withDirectory<R>(_ body: (URL) async throws -> R) async throws -> R {
    let url = newDirectory()
    defer { try? FileManager.default.removeItem(at: url) }
    return try await body(url)
  }

  func record(_ figure: Figure) {
    figures.append(figure)
    if !isSilent { print("  \(figure)") }
  }

  /// Runs every contestant once in each round, with alternating order. Records the medians of its rate and
  /// its CPU time, and the ratios of the first contestant to each other one: the medians of the ratios of
  /// all rounds.
  ///
  /// - Parameter noun: what a contestant does `count` of.
  func compare(_ workload: String, _ noun: String, _ contestants: [Contestant]) async throws {
    var costs: [[Cost]] = contestants.map { _ in [] }
    for round in 0..<rounds {
      let order = Array(contestants.indices)
      for index in round.isMultiple(of: 2) ? order : order.reversed() {
        costs[index].append(try await contestants[index].round())
      }
    }
    for (contestant, costs) in zip(contestants, costs) {
      let count = Double(contestant.count)
      record(
        Figure(workload, contestant.name, "\(noun)s a second", costs.map { count / $0.seconds }))
      record(
        Figure(
          workload, "\(contestant.name), CPU time", "µs a \(noun)",
          costs.map { $0.processorSeconds * 1e6 / count }))
    }
    for index in contestants.indices.dropFirst() {
      let pairs = zip(costs[0], costs[index])
      let name = "\(contestants[0].name)/\(contestants[index].name)"
      record(Figure(workload, name, "times", pairs.map { $1.seconds / $0.seconds }))
      record(
        Figure(
          workload, "\(name), CPU time", "times",
          pairs.map { $1.processorSeconds / $0.processorSeconds }))
    }
  }
}
