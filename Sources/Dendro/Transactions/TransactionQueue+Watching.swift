import DendroEngine
import Dispatch
import Synchronization

// What is done about transactions that take long.

extension TransactionQueue {
  /// How long a block may take before others that have nothing in common with it go on beside it.
  private static let slow = Duration.milliseconds(100)
  private static let watch = DispatchQueue(label: "dendro.transactions.watch")

  /// Looks after what runs, ten times a second as long as something does.
  func watch(_ state: inout State) {
    if state.isWatched { return }
    state.isWatched = true
    Self.watch.asyncAfter(deadline: .now() + .milliseconds(100)) { [weak self] in
      ThreadName.transactions.during { self?.look() }
    }
  }

  private func look() {
    let now = ContinuousClock.now
    var lines: [LogEvent] = []
    var late: [TransactionJob] = []
    state.withLock { state in
      state.isWatched = false
      if state.running.isEmpty { return }
      for index in state.running.indices {
        let job = state.running[index].entry.job
        if let start = job.start, now - start >= Self.slow { state.running[index].isSlow = true }
        if let start = job.blockStart, now - start >= reportTime,
          !state.running[index].isReported
        {
          state.running[index].isReported = true
          lines.append(
            LogEvent(
              .warning,
              "the block of a transaction has been running for \(reportTime)",
              ["location": "\(job.path)", "waiting": "\(state.waiting.count)"]))
        }
      }
      if let timeLimit { late = state.takeLate(startedBefore: now - timeLimit) }
      goOn(&state)
      watch(&state)
    }
    for line in lines { log(line) }
    guard let timeLimit else { return }
    for job in late { withdraw(job, DatabaseError.timedOut(job.path, timeLimit)) }
  }
}

extension TransactionQueue.State {
  /// Those that have taken too long, each once.
  fileprivate mutating func takeLate(startedBefore time: ContinuousClock.Instant)
    -> [TransactionJob]
  {
    var late: [TransactionJob] = []
    for index in running.indices where !running[index].isLate {
      let job = running[index].entry.job
      guard job.hasTimeLimit, job.started <= time else { continue }
      running[index].isLate = true
      late.append(job)
    }
    for job in waiting.values.map(\.job)
    where job.hasTimeLimit && job.started <= time && !job.isDiscarded { late.append(job) }
    return late
  }
}
