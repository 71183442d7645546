import Foundation
import Synchronization

/// Many independent jobs, numbered, each of which judges states of one kind.
///
/// A job is a pure function of its number, by which it can be run again.
package struct Sweep: Sendable {
  /// One word, by which `crashlab replay` finds it.
  package let id: String
  /// As it is printed.
  package let name: String
  /// What is counted.
  package let unit: String
  /// All jobs that there are; of a sweep that draws, every number.
  package let jobs: Range<UInt64>
  /// How many steps a job's workload has; nil if there is no workload that could be shortened.
  package let stepCount: (@Sendable (UInt64) -> Int)?
  /// How often a job that failed once is tried before it counts as one that holds: more than once
  /// if threads meet in it, whose turns no seed decides.
  package let trialCount: Int
  /// Runs a job, or the part of it that the reproduction names.
  package let judge: @Sendable (Reproduction) -> Tally

  package init(
    _ id: String, name: String? = nil, unit: String = "states",
    jobs: Range<UInt64> = 0..<UInt64.max, trialCount: Int = 1,
    stepCount: (@Sendable (UInt64) -> Int)? = nil,
    judge: @escaping @Sendable (Reproduction) -> Tally
  ) {
    self.id = id
    self.name = name ?? id
    self.unit = unit
    self.jobs = jobs
    self.trialCount = trialCount
    self.stepCount = stepCount
    self.judge = judge
  }

  /// `judge`, again and again until it fails: `trialCount` times at most, and for so long at most.
  package func tried(_ place: Reproduction, for timeMax: Duration = .seconds(20)) -> Tally {
    let deadline = ContinuousClock.now + timeMax
    var tally = JobsUnderWay.run(place, judge)
    var count = 1
    while tally.failures.isEmpty, count < trialCount, ContinuousClock.now < deadline {
      tally.add(JobsUnderWay.run(place, judge))
      count += 1
    }
    return tally
  }

  /// Where a run ends before its jobs do: at whichever comes first.
  package struct End: Sendable {
    /// So many judged.
    package var count: Int?
    package var deadline: ContinuousClock.Instant?
    /// Of what was found, what the count counts; nil for what the sweep counts.
    package var figure: (@Sendable (Tally) -> Int)?
    /// Asked before each job.
    package var isInterrupted: (@Sendable () -> Bool)?

    package init(
      count: Int? = nil, deadline: ContinuousClock.Instant? = nil,
      figure: (@Sendable (Tally) -> Int)? = nil, isInterrupted: (@Sendable () -> Bool)? = nil
    ) {
      self.count = count
      self.deadline = deadline
      self.figure = figure
      self.isInterrupted = isInterrupted
    }

    fileprivate func isReached(_ tally: Tally) -> Bool {
      if let count, figure?(tally) ?? tally.count >= count { return true }
      if let deadline, ContinuousClock.now >= deadline { return true }
      return isInterrupted?() ?? false
    }
  }

  /// Runs the jobs of the range on all cores, and stops early after a dozen failures.
  ///
  /// - `watch`: called after each job with the failures so far and the number of jobs begun; called from
  ///   any thread.
  package func run(
    _ range: Range<UInt64>? = nil, every stride: Int = 1, until end: End = End(),
    watch: (@Sendable (Tally, UInt64) -> Void)? = nil
  ) async -> Tally {
    let board = Board(jobs: (range ?? jobs).clamped(to: jobs), stride: UInt64(stride), end: end)
    await JobThreads.run {
      while let job = board.next() {
        let tally = JobsUnderWay.run(Reproduction(id, job), judge)
        let (total, jobCount) = board.add(tally)
        watch?(total, jobCount)
      }
      board.finish()
    }
    return board.total
  }

  /// What the tasks share.
  private final class Board: Sendable {
    private let jobs: Range<UInt64>
    private let stride: UInt64
    private let end: End
    private let state: Mutex<(next: UInt64, tally: Tally)>
    private let started = Mutex<ContinuousClock.Instant?>(nil)

    init(jobs: Range<UInt64>, stride: UInt64, end: End) {
      self.jobs = jobs
      self.stride = stride
      self.end = end
      state = Mutex((jobs.lowerBound, Tally()))
    }

    var total: Tally { state.withLock { $0.tally } }

    func next() -> UInt64? {
      started.withLock { if $0 == nil { $0 = .now } }
      return state.withLock { state in
        guard state.next < jobs.upperBound, state.tally.failures.count < 12,
          !end.isReached(state.tally)
        else { return nil }
        defer { state.next += stride }
        return state.next
      }
    }

    /// Notes how long it took, without the time that it waited for other sweeps.
    func finish() {
      guard let started = started.withLock({ $0 }) else { return }
      state.withLock { $0.tally.duration = ContinuousClock.now - started }
    }

    func add(_ tally: Tally) -> (Tally, jobCount: UInt64) {
      state.withLock { state in
        state.tally.add(tally)
        return (state.tally, (state.next - jobs.lowerBound) / stride)
      }
    }
  }
}
