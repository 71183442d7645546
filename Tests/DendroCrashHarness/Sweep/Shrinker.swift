/// Makes a failing workload short: steps are dropped while it still fails.
package struct Shrinker: Sendable {
  /// Runs of the workload at most.
  package var attemptMax = 400
  /// Time at most; a run that has begun is finished.
  package var timeMax = Duration.seconds(30)

  package init() {}

  /// The shortest failure that was found, with only what is needed of the workload; the failure
  /// itself if nothing could be dropped.
  ///
  /// Drops halves, then quarters, … then single steps (Zeller and Hildebrandt's ddmin, TSE 2002).
  /// Whether the shorter one fails in the same way is not asked: any failure is one too many.
  package func shrink(_ failure: Tally.Failure, of sweep: Sweep) -> Tally.Failure {
    guard let stepCount = sweep.stepCount else { return failure }
    let job = failure.reproduction.job
    var kept = failure.reproduction.kept ?? Array(0..<stepCount(job))
    var best = failure
    var attemptCount = 0
    let deadline = ContinuousClock.now + timeMax
    var length = max(1, kept.count / 2)
    while true {
      var start = 0
      var isShorter = false
      while start < kept.count {
        guard attemptCount < attemptMax, ContinuousClock.now < deadline else { return best }
        attemptCount += 1
        var candidate = kept
        candidate.removeSubrange(start..<min(start + length, kept.count))
        var reproduction = Reproduction(sweep.id, job)
        reproduction.kept = candidate
        if let found = sweep.tried(reproduction, for: timeMax / 50).failures.first {
          kept = candidate
          best = found
          isShorter = true
        } else {
          start += length
        }
      }
      if length > 1 {
        length = max(1, length / 2)
      } else if !isShorter {
        return best
      }
    }
  }
}
