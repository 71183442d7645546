import Dispatch

/// Runs tasks on the server's own threads: those of the concurrency pool may all be busy with the app's work, or blocked by
/// it.
///
/// Unchecked: Dispatch's queues may be used on any thread.
final class WorkerExecutor: TaskExecutor, @unchecked Sendable {
  private let queue: DispatchQueue

  init(_ queue: DispatchQueue) { self.queue = queue }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
