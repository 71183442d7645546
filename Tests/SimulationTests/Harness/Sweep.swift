import Foundation
import Synchronization
import Testing

/// Many independent jobs on all cores, and one line at the end that says how much was judged.
enum Sweep {
  /// What one job found.
  struct Tally: Sendable {
    /// States judged.
    var count = 0
    /// One line each, with what reproduces it.
    var failures: [String] = []
    /// Counts beside the main one, by name.
    var details: [String: Int] = [:]

    /// After so many failures a job need not go on.
    var isHopeless: Bool { failures.count >= 3 }

    mutating func add(_ other: Tally) {
      count += other.count
      failures += other.failures
      details.merge(other.details, uniquingKeysWith: +)
    }
  }

  /// The share of the work that is done: all of it in a release build, a little in a debug build,
  /// and as much as `DENDRO_SIMULATION_SCALE` says where it is set.
  static let scale: Double = {
    if let text = ProcessInfo.processInfo.environment["DENDRO_SIMULATION_SCALE"],
      let scale = Double(text), scale > 0
    {
      return scale
    }
    #if DEBUG
      return 0.01
    #else
      return 1
    #endif
  }()

  /// `count` of the scale; at least one.
  static func scaled(_ count: Int) -> Int { max(1, Int((Double(count) * scale).rounded(.up))) }

  /// Runs the jobs, prints `"<name>: <count> <unit>, <seconds> s"`, and fails the test with the first
  /// failures, and where less was judged than `goal`.
  static func run<Job: Sendable>(
    _ name: String, _ jobs: [Job], unit: String = "states", goal: Int,
    _ body: @escaping @Sendable (Job) -> Tally,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let started = ContinuousClock.now
    let board = Board(jobCount: jobs.count)
    await withTaskGroup { group in
      for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount) {
        group.addTask {
          while let index = board.next() { board.add(body(jobs[index])) }
        }
      }
    }
    let tally = board.total
    let seconds = (ContinuousClock.now - started).seconds
    let details = tally.details.sorted { $0.key < $1.key }
      .map { ", \(grouped($0.value)) \($0.key)" }.joined()
    print("\(name): \(grouped(tally.count)) \(unit)\(details), \(Int(seconds.rounded())) s")
    for failure in tally.failures.prefix(12) {
      Issue.record(Comment(rawValue: failure), sourceLocation: sourceLocation)
    }
    if tally.failures.isEmpty {
      #expect(tally.count >= goal, "\(name)", sourceLocation: sourceLocation)
    }
  }

  /// What the tasks share.
  private final class Board: Sendable {
    private let jobCount: Int
    private let state = Mutex((next: 0, tally: Tally()))

    init(jobCount: Int) { self.jobCount = jobCount }

    var total: Tally { state.withLock { $0.tally } }

    func next() -> Int? {
      state.withLock { state in
        guard state.next < jobCount, state.tally.failures.count < 12 else { return nil }
        state.next += 1
        return state.next - 1
      }
    }

    func add(_ tally: Tally) { state.withLock { $0.tally.add(tally) } }
  }

  static func grouped(_ number: Int) -> String {
    var digits = Array(String(number).reversed())
    var place = 3
    while place < digits.count {
      digits.insert(",", at: place)
      place += 4
    }
    return String(digits.reversed())
  }
}

extension Duration {
  var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
