import Dispatch

/// Runs tasks beside the pool of the process, whose threads other tests may block for minutes.
package final class QueueExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "dendro.tasks")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Waits until all that it was given so far was run.
  package func settle() { queue.sync {} }
}
