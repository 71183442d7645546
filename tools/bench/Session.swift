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

  /// Runs every contestant once in each round, with alternating order. Records the median of each, and
  /// the ratio of the first contestant to each other one: the median of the ratios of all rounds.
  func compare(_ workload: String, unit: String, _ contestants: [Contestant]) async throws {
    var results: [[Double]] = contestants.map { _ in [] }
    for round in 0..<rounds {
      let order = Array(contestants.indices)
      for index in round.isMultiple(of: 2) ? order : order.reversed() {
        results[index].append(try await contestants[index].round())
      }
    }
    for (contestant, values) in zip(contestants, results) {
      record(Figure(workload, contestant.name, unit, values))
    }
    for index in contestants.indices.dropFirst() {
      let ratios = zip(results[0], results[index]).map { $0 / $1 }
      record(
        Figure(workload, "\(contestants[0].name)/\(contestants[index].name)", "times", ratios))
    }
  }
}

/// Runs `body` and returns the seconds that it took.
func seconds(_ body: () async throws -> Void) async rethrows -> Double {
  let start = ContinuousClock.now
  try await body()
  return (ContinuousClock.now - start) / .seconds(1)
}
