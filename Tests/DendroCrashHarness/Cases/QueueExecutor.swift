import Dispatch
import Foundation

/// Runs a task beside the pool, whose threads may all be waiting for it.
final class QueueExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "dendro.tasks")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Waits until all that it was given so far was run.
  func settle() { queue.sync {} }

  /// Has a task go through a sequence, which `body` notes; behind that it notes «end», or the error, and
  /// signals. Returns once the first was noted and the task waits for the next one.
  func follow(
    _ told: Told, _ isOver: DispatchSemaphore, _ body: @escaping @Sendable () async throws -> Void
  ) -> Task<Void, Never> {
    let task = Task(executorPreference: self) {
      do {
        try await body()
        told.note("end")
      } catch {
        told.note("\(error)")
      }
      isOver.signal()
    }
    while told.all.isEmpty { usleep(200) }
    settle()
    return task
  }
}
