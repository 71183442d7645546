import Foundation

/// One run of the benchmark: how much is done, where, and the figures so far.
///
/// Used by one task at a time.
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

  /// The size of a workload: all of it, or a twentieth.
  func scaled(_ count: Int) -> Int { isQuick ? max(1, count / 20) : count }

  /// Where no file is yet.
  func newDirectory() -> URL {
    directoryCount += 1
    return workspace.appendingPathComponent("\(directoryCount)")
  }

  /// Runs `body` with a path where nothing is, and removes afterwards what it left there.
  func withDirectory<R>(_ body: (URL) async throws -> R) async throws -> R {
    let url = newDirectory()
    defer { try? FileManager.default.removeItem(at: url) }
    return try await body(url)
  }

  func record(_ figure: Figure) {
    figures.append(figure)
    if !isSilent { print("  \(figure)") }
  }

  /// Runs every contestant once a round, in turn and in changing order, and records their medians
  /// and the ratio of the first to each other one, as the median of the ratios of the rounds.
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

/// One of those who do the same work in turns.
struct Contestant {
  let name: String
  /// Does the work once; returns its rate: more is better.
  let round: () async throws -> Double
}

/// Seconds that `body` took.
func seconds(_ body: () async throws -> Void) async rethrows -> Double {
  let start = ContinuousClock.now
  try await body()
  return (ContinuousClock.now - start) / .seconds(1)
}
