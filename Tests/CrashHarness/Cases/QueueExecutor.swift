import Dispatch

/// Runs a task beside the pool, whose threads may all be waiting for it.
final class QueueExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "dendro.tasks")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Waits until all that it was given so far was run.
  func settle() { queue.sync {} }
}
